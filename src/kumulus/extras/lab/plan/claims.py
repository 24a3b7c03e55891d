"""Pods that ask for their GPUs by ResourceClaim: a claim replaces requests in their template."""

from __future__ import annotations

from dataclasses import replace

from kumulus.extras.lab.errors import LabError
from kumulus.extras.lab.file.load import Loaded
from kumulus.extras.lab.file.model import OWN
from kumulus.extras.lab.file.workload import Workload
from kumulus.extras.lab.plan.gpu_claims import REQUEST, claim_template, rounded, template_name
from kumulus.extras.lab.plan.pods import WORKLOAD_LABEL, Object
from kumulus.extras.lab.policies import Pod
from kumulus.extras.lab.policies.pod import WHOLE_GPU
from kumulus.model.gfd import GPU_RESOURCE, SHARE_RESOURCE
from kumulus.model.quantity import NANO, parse

_ABLE = (OWN, "native", "kube-scheduler")
"""Schedulers that allocate claims here; docs/traces.md says how others treat claims."""
_BY_CLAIM = (GPU_RESOURCE, SHARE_RESOURCE)
_MOST_DEVICES = 32
"""The most devices of one claim (k8s.io/api/resource/v1, AllocationResultsMaxSize)."""


def allocated_by(loaded: Loaded) -> None:
    """Check that an experiment's scheduler allocates the claims of its pods."""
    experiment = loaded.experiment
    for workload in experiment.workloads:
        if not workload.resourceClaims:
            continue
        where = f"workload {workload.name}: resourceClaims: {workload.resourceClaims}"
        if experiment.policy:
            raise LabError(
                f"{where} cannot be beside policy: {experiment.policy}, which counts GPUs by an account of its own\n"
                "  Leave one of them out; kube-scheduler allocates claims, and no policy is asked"
            )
        if experiment.scheduler.name not in _ABLE:
            raise LabError(
                f"{where} cannot be beside scheduler: {experiment.scheduler.name}, which allocates no claims here\n"
                f"  Write scheduler: {' or '.join(_ABLE)}; or milliGpus: true in arrival.trace, which it counts"
            )


def by_claim(template: Object, workload: Workload, templates: dict[str, Object]) -> None:
    """Have a pod ask for its GPUs by claim, if it asks for any.

    Args:
        template: the pod's metadata and spec; changed in place.
        templates: the claim templates so far, by name; one is added for each new amount.
    """
    parts = workload.resourceClaims
    [container] = template["spec"]["containers"]
    resources = container["resources"]
    requests = resources.get("requests", {})
    gpus, milli = (parse(requests.get(name, "0")).nanos // NANO for name in _BY_CLAIM)
    if not parts or not (gpus or milli):
        return
    if gpus > _MOST_DEVICES or (milli > WHOLE_GPU and not gpus):
        raise LabError(
            f"workload {workload.name}: a pod asks for {gpus or milli:,} {'GPUs' if gpus else 'thousandths of a GPU'}, "
            f"and a ResourceClaim has at most {_MOST_DEVICES} devices, or a part of one\n  Leave out resourceClaims"
        )
    if not gpus and milli == WHOLE_GPU:
        gpus = 1
    name = template_name(workload.name, gpus, 0 if gpus else milli, parts)
    labels = {WORKLOAD_LABEL: workload.name}
    templates.setdefault(name, claim_template(name, labels, gpus, 0 if gpus else milli, parts))
    trace = workload.arrival.trace
    # With milliGpus, requests for thousandths stay, and rule out full nodes before claims are allocated.
    instead = {GPU_RESOURCE} if trace is not None and trace.milliGpus else set(_BY_CLAIM)
    rest = {key: amount for key, amount in requests.items() if key not in instead}
    container["resources"] = {**({"requests": rest, "limits": rest} if rest else {}), "claims": [{"name": REQUEST}]}
    template["spec"]["resourceClaims"] = [{"name": REQUEST, "resourceClaimTemplateName": name}]


def as_taken(pod: Pod, workload: Workload) -> Pod:
    """A recorded pod with what its claim takes: with `mig`, a part of a GPU is rounded up to a MIG device."""
    if workload.resourceClaims != "mig" or not pod.shares_gpu:
        return pod
    return replace(pod, gpu_milli=rounded(pod.gpu_milli, "mig"))

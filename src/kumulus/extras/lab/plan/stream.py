"""The jobs of a recorded trace: what they ask for, also by claims, and their order, as recorded or drawn."""

import random
import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, TypeVar

from kumulus.extras.lab.errors import LabError
from kumulus.extras.lab.file.load import LoadedExperiment
from kumulus.extras.lab.file.model import OWN
from kumulus.extras.lab.file.trace import TraceJob, WorkerRequests
from kumulus.extras.lab.file.workload import Workload
from kumulus.extras.lab.plan.gpu_claims import REQUEST, claim_template, rounded, template_name
from kumulus.extras.lab.plan.pods import WORKLOAD_LABEL, Object
from kumulus.extras.lab.policies import Pod
from kumulus.extras.lab.policies.nodes import WHOLE_GPU
from kumulus.model.gfd import GPU_RESOURCE, SHARE_RESOURCE
from kumulus.model.quantity import NANO, parse

State = tuple[Any, ...]
"""The state of a source of random numbers."""
T = TypeVar("T")
USER_LABEL = "kumulus.io/user"
QOS_LABEL = "kumulus.io/qos"
_LONGEST_VALUE = 63


_ABLE = (OWN, "native", "kube-scheduler")
"""Schedulers that allocate claims here; docs/traces.md says how others treat claims."""
_BY_CLAIM = (GPU_RESOURCE, SHARE_RESOURCE)
_MOST_DEVICES = 32
"""The most devices of one claim (k8s.io/api/resource/v1, AllocationResultsMaxSize)."""


def jobs_drawn(loaded: LoadedExperiment, workload: Workload, gpus: int, source: random.Random) -> list[TraceJob]:
    """A workload's recorded jobs, in the order of their creation.

    Drawn jobs come one right after the other, as their recorded times do not fit the drawn order.
    """
    recorded, trace = loaded.traces.get(workload.name, []), workload.arrival.trace
    if trace is None or (trace.inflate is None and trace.shuffle is None):
        return recorded

    def asks(job: TraceJob) -> int:
        pod = pod_recorded(job)
        return pod.total_gpu_milli * (job.size or workload.workers) if pod is not None else 0

    stream = drawn(recorded, asks, gpus * WHOLE_GPU, trace.inflate, source)
    return [replace(job, arrival=0.0) for job in stream]


def pods_recorded(loaded: LoadedExperiment) -> list[Pod]:
    """What the pods of all traces ask for, with an entry for each pod."""
    return [
        as_taken(pod, workload)
        for workload in loaded.experiment.workloads
        for job in loaded.traces.get(workload.name, [])
        if (pod := pod_recorded(job)) is not None
        for _ in range(job.size or workload.workers)
    ]


def pod_recorded(job: TraceJob) -> Pod | None:
    """What a pod of a recorded job asks for; None where the trace does not say."""
    asked = job.asked
    if asked is None:
        return None
    return Pod(asked.name, asked.cpu, asked.memory, asked.gpus, asked.gpu_milli, asked.models)


def drawn(
    items: Sequence[T], asks: Callable[[T], int], gpu_milli: int, inflate: float | None, source: random.Random
) -> list[T]:
    """All pods once in a random order, then pods drawn from them until all together ask for a share of the GPUs.

    As in the published study, the first pod that would exceed the share ends the stream. If the pods exceed the share
    to begin with, pods drawn at random are left out.

    Args:
        asks: the milli-GPU that one asks for.
        gpu_milli: milli-GPU of all GPUs together.
        inflate: the share, such as 1.3 for 130 %; None for every pod once.
    """
    stream = list(items)
    source.shuffle(stream)
    if inflate is None:
        return stream
    wanted, demand = inflate * gpu_milli, sum(map(asks, stream))
    if not demand:
        raise LabError("no task asks for a GPU, so inflate has nothing to reach\n  Leave inflate out")
    while demand > wanted:
        demand -= asks(stream.pop(source.randrange(len(stream))))
    if len(stream) < len(items):
        return stream
    while True:
        item = items[source.randrange(len(items))]
        if demand + asks(item) > wanted:
            return stream
        demand += asks(item)
        stream.append(item)


def playable(loaded: LoadedExperiment) -> None:
    """Check that a cluster can play an experiment's traces."""
    for workload in loaded.experiment.workloads:
        lasting = sum(job.duration is not None for job in loaded.traces.get(workload.name, []))
        if lasting and workload.kind in ("Pod", "Deployment"):
            what = f"{lasting:,} jobs of the trace have a duration, and the pods of a {workload.kind} have no end"
            raise LabError(f"workload {workload.name}: {what}\n  Write kind: Job, or stay: true in arrival.trace")
    if loaded.experiment.policy:
        return
    for workload in loaded.experiment.workloads:
        if workload.resourceClaims or (workload.arrival.trace is not None and workload.arrival.trace.milliGpus):
            continue
        recorded = (job.asked for job in loaded.traces.get(workload.name, []))
        shares = sum(asked is not None and 0 < asked.gpu_milli < WHOLE_GPU for asked in recorded)
        if shares:
            what = f"{shares:,} jobs ask for a part of a GPU, which a policy has to account for"
            remedy = (
                f"Write policy: KubeScheduler, or FGD; or milliGpus: true, where nodes declare {SHARE_RESOURCE}; or "
                "resourceClaims: milli, where they publish GPUs that claims share"
            )
            raise LabError(f"workload {workload.name}: {what}\n  {remedy}")


def asking(workload: Workload, asked: WorkerRequests) -> Workload:
    """The workload as it is for one recorded job: with its requests, priority, user and quality of service."""
    share = asked.gpus == 1 and 0 < asked.gpu_milli < WHOLE_GPU
    trace = workload.arrival.trace
    milli = asked.gpus * asked.gpu_milli if share or (trace is not None and trace.milliGpus) else 0
    wanted = {
        "cpu": f"{asked.cpu}m" if asked.cpu else "",
        "memory": f"{asked.memory}Mi" if asked.memory else "",
        GPU_RESOURCE: str(asked.gpus) if asked.gpus and not share else "",
        SHARE_RESOURCE: str(milli) if milli else "",
    }
    labels = {USER_LABEL: _value(asked.user), QOS_LABEL: _value(asked.qos)}
    update: dict[str, object] = {
        "requests": workload.requests | {name: amount for name, amount in wanted.items() if amount},
        "labels": workload.labels | {key: value for key, value in labels.items() if value},
    }
    if asked.priority is not None:
        update["priority"] = asked.priority
    return workload.model_copy(update=update)


def in_users_queue(workload: Workload, asked: WorkerRequests | None) -> Workload:
    """The workload in the queue of a recorded job's user, if its trace has `userQueues`."""
    trace = workload.arrival.trace
    if asked is None or trace is None or not trace.userQueues or not (queue := _name(asked.user)):
        return workload
    return workload.model_copy(update={"queue": queue})


def on_models(template: Object, asked: WorkerRequests, product_label: str) -> None:
    """Keep a pod on nodes with the GPU models that its job may run on."""
    if not asked.models:
        return
    term = {"matchExpressions": [{"key": product_label, "operator": "In", "values": sorted(asked.models)}]}
    affinity = template["spec"].setdefault("affinity", {})
    affinity["nodeAffinity"] = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}


def _name(text: str) -> str:
    return re.sub(r"[^a-z0-9-]", "-", text.lower())[:_LONGEST_VALUE].strip("-")


def _value(text: str) -> str:
    return re.sub(r"[^A-Za-z0-9._-]", "-", text)[:_LONGEST_VALUE].strip("-._")


def allocated_by(loaded: LoadedExperiment) -> None:
    """Check that an experiment's scheduler allocates the claims of its pods."""
    experiment = loaded.experiment
    for workload in experiment.workloads:
        if not workload.resourceClaims:
            continue
        where = f"workload {workload.name}: resourceClaims: {workload.resourceClaims}"
        if experiment.policy:
            raise LabError(
                f"{where} cannot be combined with policy: {experiment.policy}, which counts GPUs "
                "by an account of its own\n"
                "  Leave one of them out; kube-scheduler allocates claims, and no policy is asked"
            )
        if experiment.scheduler.name not in _ABLE:
            raise LabError(
                f"{where} cannot be combined with scheduler: {experiment.scheduler.name}, which "
                "allocates no claims here\n"
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

"""The users of a plan's jobs, and what the jobs' pods ask for."""

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Any

from kumulus.extras.lab.file.load import LoadedExperiment
from kumulus.extras.lab.file.model import ExperimentSpec
from kumulus.extras.lab.plan.gpu_claims import GpuDemand, claimed, demands
from kumulus.extras.lab.plan.plan import RepetitionPlan
from kumulus.extras.lab.plan.pods import PlannedJob
from kumulus.extras.lab.plan.stream import USER_LABEL, pods_recorded
from kumulus.extras.lab.policies import Pod
from kumulus.extras.lab.policies.nodes import WHOLE_GPU
from kumulus.extras.schedulers.manifests import counted_templates, expected_pods, pod_templates
from kumulus.extras.schedulers.pod_requests import lenient, spec_requests
from kumulus.model.gfd import GPU_RESOURCE, SHARE_RESOURCE
from kumulus.model.quantity import NANO, ZERO, Quantity


def pods_planned(plan: RepetitionPlan, product_label: str) -> list[Pod]:
    """What the pods of a plan ask for, with an entry for each pod, named after its job."""
    found: list[Pod] = []
    known = claims_planned(plan)
    for job in plan.jobs:
        for each in job.objects:
            templates = list(pod_templates(each))
            for template in templates:
                pod = pod_of(job.name, template["spec"], product_label, known)
                found += [pod] * max(1, expected_pods(each) // len(templates))
    return found


def asked_at_once(jobs: Iterable[PlannedJob]) -> dict[str, Quantity]:
    """The most that jobs which come at one moment ask for, by resource; claims are not among it."""
    moments: dict[tuple[bool, float], dict[str, Quantity]] = {}
    for job in jobs:
        asked = moments.setdefault((job.once, job.at), {})
        for template, count in (each for made in job.objects for each in counted_templates(made)):
            for resource, amount in spec_requests(template["spec"], lenient).items():
                asked[resource] = asked.get(resource, ZERO) + amount * count
    found: dict[str, Quantity] = {}
    for asked in moments.values():
        for resource, amount in asked.items():
            found[resource] = max(found.get(resource, ZERO), amount, key=lambda each: each.nanos)
    return found


def pods_typical(loaded: LoadedExperiment, plan: RepetitionPlan) -> list[Pod]:
    """The pods to be expected, with an entry for each: those of the traces, or of the plan if there is no trace."""
    return pods_recorded(loaded) or pods_planned(plan, loaded.experiment.productLabel)


def claims_planned(plan: RepetitionPlan) -> dict[str, GpuDemand]:
    """What each ResourceClaimTemplate of a plan's setup and its jobs' manifests asks for, by its name."""
    return demands([*plan.setup, *(each for job in plan.jobs for each in job.objects)])


def users_planned(plan: RepetitionPlan, experiment: ExperimentSpec) -> dict[str, str]:
    """The user of each job that has one: the trace's, else the queue of its workload or of the recording."""
    queues = {each.name: each.queue for each in experiment.workloads}
    recorded = {job: queue for replay in plan.replays.values() for job, queue in replay.queues.items()}
    found = {}
    for job in plan.jobs:
        labels = [template.get("metadata", {}).get("labels") or {} for template in pod_templates(list(job.objects))]
        named = next((each[USER_LABEL] for each in labels if USER_LABEL in each), "")
        if user := named or recorded.get(job.name, "") or queues.get(job.workload, ""):
            found[job.name] = user
    return found


def pod_of(
    name: str, spec: Mapping[str, Any], product_label: str, known: Mapping[str, GpuDemand] = MappingProxyType({})
) -> Pod:
    """What a pod asks for.

    Args:
        known: what the ResourceClaimTemplates ask for, by their names.
    """
    asked, by_claim = spec_requests(spec, lenient), claimed(spec, known)
    whole = _rounded_up(asked.get(GPU_RESOURCE, ZERO), NANO) + by_claim.gpus
    # A pod that asks for whole GPUs may ask for their thousandths as well.
    share = 0 if whole else by_claim.milli or _rounded_up(asked.get(SHARE_RESOURCE, ZERO), NANO)
    gpus = whole or int(share > 0)
    return Pod(
        name,
        cpu=_rounded_up(asked.get("cpu", ZERO), NANO // 1000),
        memory=_rounded_up(asked.get("memory", ZERO), NANO << 20),
        gpus=gpus,
        gpu_milli=share or (WHOLE_GPU if gpus else 0),
        models=_models(spec, product_label) if gpus else frozenset(),
    )


def _models(spec: Mapping[str, Any], product_label: str) -> frozenset[str]:
    """The GPU models that a pod's node selector or node affinity restricts it to."""
    if chosen := (spec.get("nodeSelector") or {}).get(product_label):
        return frozenset([chosen])
    affinity = (spec.get("affinity") or {}).get("nodeAffinity") or {}
    required = affinity.get("requiredDuringSchedulingIgnoredDuringExecution") or {}
    found: set[str] = set()
    for term in required.get("nodeSelectorTerms") or ():
        values = [
            each.get("values") or ()
            for each in term.get("matchExpressions") or ()
            if each.get("key") == product_label and each.get("operator") == "In"
        ]
        if not values:
            return frozenset()
        found.update(*values)
    return frozenset(found)


def _rounded_up(amount: Quantity, unit: int) -> int:
    return -(-amount.nanos // unit)

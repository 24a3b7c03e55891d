"""What the pods of a recorded job ask for, in terms of Kubernetes."""

from __future__ import annotations

import re

from kumulus.extras.lab.errors import LabError
from kumulus.extras.lab.file.load import Loaded
from kumulus.extras.lab.file.trace import Asked
from kumulus.extras.lab.file.workload import Workload
from kumulus.extras.lab.plan.pods import Object
from kumulus.model.gfd import GPU_RESOURCE, SHARE_RESOURCE

USER_LABEL = "kumulus.io/user"
QOS_LABEL = "kumulus.io/qos"
_WHOLE_GPU = 1000
_LONGEST_VALUE = 63


def playable(loaded: Loaded) -> None:
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
        shares = sum(asked is not None and 0 < asked.gpu_milli < _WHOLE_GPU for asked in recorded)
        if shares:
            what = f"{shares:,} jobs ask for a part of a GPU, which a policy has to account for"
            remedy = (
                f"Write policy: KubeScheduler, or FGD; or milliGpus: true, where nodes declare {SHARE_RESOURCE}; or "
                "resourceClaims: milli, where they publish GPUs that claims share"
            )
            raise LabError(f"workload {workload.name}: {what}\n  {remedy}")


def asking(workload: Workload, asked: Asked) -> Workload:
    """The workload as it is for one recorded job: with its requests, priority, user and quality of service."""
    share = asked.gpus == 1 and 0 < asked.gpu_milli < _WHOLE_GPU
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


def in_users_queue(workload: Workload, asked: Asked | None) -> Workload:
    """The workload in the queue of a recorded job's user, if its trace has `userQueues`."""
    trace = workload.arrival.trace
    if asked is None or trace is None or not trace.userQueues or not (queue := _name(asked.user)):
        return workload
    return workload.model_copy(update={"queue": queue})


def on_models(template: Object, asked: Asked, product_label: str) -> None:
    """Keep a pod on nodes with the GPU models that its job may run on."""
    if not asked.models:
        return
    term = {"matchExpressions": [{"key": product_label, "operator": "In", "values": sorted(asked.models)}]}
    affinity = template["spec"].setdefault("affinity", {})
    affinity["nodeAffinity"] = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}


def _name(text: str) -> str:
    """A text as a queue's name, a DNS-1123 label."""
    return re.sub(r"[^a-z0-9-]", "-", text.lower())[:_LONGEST_VALUE].strip("-")


def _value(text: str) -> str:
    """A text as a label's value."""
    return re.sub(r"[^A-Za-z0-9._-]", "-", text)[:_LONGEST_VALUE].strip("-._")

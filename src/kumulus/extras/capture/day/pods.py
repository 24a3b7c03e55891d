"""What happened to the recorded pods: when each was created, bound and ended, its requests, and whether preempted."""

import statistics
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from kumulus.extras.schedulers.pod_requests import spec_requests
from kumulus.model.quantity import NANO, QuantityError, parse

_GPU = "nvidia.com/gpu"
_ENDED = ("Succeeded", "Failed")
_PREEMPTED = "PreemptionByScheduler"


@dataclass
class RecordedPod:
    """A recorded pod; times are in seconds since 1970, None if not recorded.

    Attributes:
        job: the key of its workload.
        queue: the queue that the workload waited in.
        preempted: whether a scheduler evicted it for others.
        cpu: milli-CPU that it requested.
        memory: MiB that it requested.
        leaving: whether its deletion was requested.
    """

    job: str
    queue: str
    created: float
    bound: float | None = None
    running: float | None = None
    ended: float | None = None
    node: str = ""
    preempted: bool = False
    cpu: int = 0
    memory: int = 0
    gpus: int = 0
    leaving: bool = False

    def plain(self, since: float) -> dict[str, Any]:
        """The pod in the format of the recording, with times relative to the recording's beginning."""
        times = {"at": self.created, "bound": self.bound, "ended": self.ended}
        found: dict[str, Any] = {"queue": self.queue} | {
            key: round(at - since, 3) for key, at in times.items() if at is not None
        }
        amounts: dict[str, Any] = {"cpu": self.cpu, "memory": self.memory, "gpus": self.gpus}
        amounts |= {"preempted": self.preempted, "node": self.node}
        return found | {key: value for key, value in amounts.items() if value}


@dataclass
class PodsThen:
    """All pods of a recording."""

    there: dict[tuple[str, str], RecordedPod] = field(default_factory=dict)
    """Pods that exist, by namespace and name."""
    every: list[RecordedPod] = field(default_factory=list)

    def create(self, key: tuple[str, str], at: float, job: str, queue: str, spec: Any, node: str = "") -> None:
        """Record that a pod was created."""
        pod = RecordedPod(job, queue, at, bound=at if node else None, node=node)
        pod.cpu, pod.memory, pod.gpus = asked(spec)
        self.there[key] = pod
        self.every.append(pod)

    def bind(self, key: tuple[str, str], at: float, node: str) -> None:
        """Record that a pod was bound to a node."""
        pod = self.there.get(key)
        if pod is not None and pod.bound is None:
            pod.bound, pod.node = at, node

    def status(self, key: tuple[str, str], at: float, status: Any) -> None:
        """Record that a pod's status was written."""
        pod = self.there.get(key)
        if pod is None or not isinstance(status, Mapping):
            return
        if status.get("phase") == "Running" and pod.running is None:
            pod.running = at
        if status.get("phase") in _ENDED and pod.ended is None:
            pod.ended = at
        conditions = status.get("conditions")
        for each in conditions if isinstance(conditions, list) else ():
            if isinstance(each, Mapping) and each.get("type") == "DisruptionTarget":
                pod.preempted |= each.get("reason") == _PREEMPTED

    def remove(self, key: tuple[str, str], at: float) -> None:
        """Record that a pod is gone; one that had not ended before did not end by itself."""
        pod = self.there.pop(key, None)
        if pod is not None and pod.ended is None:
            pod.ended, pod.leaving = at, True


def ran(pods: Iterable[RecordedPod]) -> dict[str, float]:
    """The median run time of each workload's pods in seconds, only of pods that ended by themselves."""
    lasted: dict[str, list[float]] = {}
    for pod in pods:
        begun = pod.running if pod.running is not None else pod.bound
        if begun is not None and pod.ended is not None and not pod.leaving:
            lasted.setdefault(pod.job, []).append(max(0.0, pod.ended - begun))
    return {job: statistics.median(each) for job, each in lasted.items()}


def over(pods: Iterable[RecordedPod], end: float) -> dict[str, float]:
    """When the last pod of each workload had ended; the end of the recording if one had not."""
    found: dict[str, float] = {}
    for pod in pods:
        found[pod.job] = max(found.get(pod.job, 0.0), end if pod.ended is None else pod.ended)
    return found


def asked(spec: Any) -> tuple[int, int, int]:
    """What a pod requests: milli-CPU, MiB and GPUs; zeros if that cannot be parsed."""
    if not isinstance(spec, Mapping):
        return 0, 0, 0
    try:
        found = spec_requests(spec, lambda part: {key: parse(str(value)) for key, value in part.items()})
    except (QuantityError, AttributeError, TypeError):
        return 0, 0, 0
    nanos = {key: amount.nanos for key, amount in found.items()}
    return (
        nanos.get("cpu", 0) * 1000 // NANO,
        nanos.get("memory", 0) // (NANO << 20),
        nanos.get(_GPU, 0) // NANO,
    )

"""What became of the pods then: when each came, got a node and ended, what it asked for, and who was preempted."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from kumulus.model.pod_requests import spec_requests
from kumulus.model.quantity import NANO, QuantityError, parse

_GPU = "nvidia.com/gpu"
_ENDED = ("Succeeded", "Failed")
_PREEMPTED = "PreemptionByScheduler"


@dataclass
class PodThen:
    """A pod, as it was recorded; times in seconds since 1970, None for what was not.

    Attributes:
        job: the workload it was of, by its key.
        queue: in which that waited.
        created, bound, running, ended: when.
        node: where it was bound.
        preempted: whether a scheduler evicted it for others.
        cpu: milli-CPU that it asked for.
        memory: MiB.
        gpus: how many.
        leaving: whether its end was asked for.
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
        """As the recording has it, with times counted from its beginning."""
        times = {"at": self.created, "bound": self.bound, "ended": self.ended}
        found: dict[str, Any] = {"queue": self.queue} | {
            key: round(at - since, 3) for key, at in times.items() if at is not None
        }
        amounts: dict[str, Any] = {"cpu": self.cpu, "memory": self.memory, "gpus": self.gpus}
        amounts |= {"preempted": self.preempted, "node": self.node}
        return found | {key: value for key, value in amounts.items() if value}


@dataclass
class PodsThen:
    """All pods of a recording.

    Attributes:
        there: those that live, by namespace and name.
        every: all of them, in the order in which they came.
    """

    there: dict[tuple[str, str], PodThen] = field(default_factory=dict)
    every: list[PodThen] = field(default_factory=list)

    def create(self, key: tuple[str, str], at: float, job: str, queue: str, spec: Any, node: str = "") -> None:
        """A pod came."""
        pod = PodThen(job, queue, at, bound=at if node else None, node=node)
        pod.cpu, pod.memory, pod.gpus = asked(spec)
        self.there[key] = pod
        self.every.append(pod)

    def bind(self, key: tuple[str, str], at: float, node: str) -> None:
        """A pod got a node."""
        pod = self.there.get(key)
        if pod is not None and pod.bound is None:
            pod.bound, pod.node = at, node

    def status(self, key: tuple[str, str], at: float, status: Any) -> None:
        """A pod's status was written."""
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
        """A pod is gone."""
        pod = self.there.pop(key, None)
        if pod is not None and pod.ended is None:
            pod.ended = at


def ran(pods: Iterable[PodThen]) -> dict[str, float]:
    """How many seconds the pods of each workload ran that came to their end by themselves: the median."""
    lasted: dict[str, list[float]] = {}
    for pod in pods:
        begun = pod.running if pod.running is not None else pod.bound
        if begun is not None and pod.ended is not None and not pod.leaving:
            lasted.setdefault(pod.job, []).append(max(0.0, pod.ended - begun))
    return {job: statistics.median(each) for job, each in lasted.items()}


def asked(spec: Any) -> tuple[int, int, int]:
    """What a pod asks for: milli-CPU, MiB and GPUs; nothing where that cannot be read."""
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

"""Pod lifecycles: which pods they apply to, how long each step takes, and how the containers end."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from kumulus.model.distributions import Distribution

DELAY_ANNOTATION = "pod-complete.stage.kwok.x-k8s.io/delay"
"""On a Job's pod without a lifecycle: how long it runs, a Go duration; see docs/pods.md."""
EMULATED = "kumulus.io/Emulated"
"""The condition of a pod that has ended, or must not begin: no container has run."""
EXIT_CODE_ASSUMED = "ExitCodeAssumed"
"""Its reason where nobody has declared how the pod ends."""


@dataclass(frozen=True)
class PodSelection:
    """Pods that match every field; all pods if no field is set.

    Args:
        labels: labels and values that a pod must have.
        namespaces: the pod is in one of them.
        owner_kinds: the pod belongs to a workload of one of these kinds.
    """

    labels: Mapping[str, str] = field(default_factory=dict)
    namespaces: tuple[str, ...] = ()
    owner_kinds: tuple[str, ...] = ()

    def covers(self, other: PodSelection) -> bool:
        """Whether every pod that the other selects is certainly selected by this one too."""
        return (
            _within(self.labels, other.labels)
            and _narrower(other.namespaces, self.namespaces)
            and _narrower(other.owner_kinds, self.owner_kinds)
        )

    def apart_from(self, other: PodSelection) -> bool:
        """Whether it is certain that no pod is selected by both."""
        return any(other.labels.get(key, value) != value for key, value in self.labels.items()) or bool(
            self.namespaces and other.namespaces and not set(self.namespaces) & set(other.namespaces)
        )


@dataclass(frozen=True)
class Failure:
    """One way in which a container ends with an error.

    Args:
        share: the fraction of the container's runs that end this way, from 0 to 1.
        reason: as a kubelet reports it.
        message: the message in the container's status.
        container: which container fails; empty for the pod's first.
        after: how long it runs until then; None for as long as it would have run anyway.
    """

    share: float
    exit_code: int
    reason: str
    message: str = ""
    container: str = ""
    after: Distribution | None = None


@dataclass(frozen=True)
class Lifecycle:
    """The lifecycle of a selection of pods. A step that is None takes no time; without ``run`` they run forever.

    Args:
        name: the lifecycle's.
        selection: the pods it applies to, unless an earlier lifecycle selects them.
        seed: the same seed draws the same durations for the same pods.
        image_pull: from the pod's start until its images are pulled.
        init: how long each init container runs, one after the other.
        start_up: how long the containers run until they are ready.
        run: how long they run from then on.
        failures: how they may fail; the rest, 1 minus all shares, succeeds.
        must_run: what becomes of them where only a real container would do: they ``fail``, or stay ``pending``; empty
            for pods that may pretend.
    """

    name: str
    selection: PodSelection
    seed: int = 0
    image_pull: Distribution | None = None
    init: Distribution | None = None
    start_up: Distribution | None = None
    run: Distribution | None = None
    failures: tuple[Failure, ...] = ()
    must_run: Literal["", "fail", "pending"] = ""


def _within(some: Mapping[str, str], more: Mapping[str, str]) -> bool:
    return all(more.get(key) == value for key, value in some.items())


def _narrower(inner: tuple[str, ...], outer: tuple[str, ...]) -> bool:
    return not outer or (bool(inner) and set(inner) <= set(outer))


@dataclass(frozen=True)
class Amount:
    """How much: an absolute quantity, or a share of what the container requests.

    Args:
        number: in units (cores, bytes), or the share: 0.8 for 80 %.
        relative: whether it is a share.
    """

    number: float
    relative: bool


@dataclass(frozen=True)
class Usage:
    """Use over time: points of a pod's age in seconds and an amount, joined by lines; the last amount stays.

    Args:
        points: at least one; ages ascend.
        upper: for a range, the upper bound of each random reading, with the single point's as the lower; else None.
    """

    points: tuple[tuple[float, Amount], ...]
    upper: Amount | None = None


@dataclass(frozen=True)
class PodUsage:
    """What the containers of a selection of pods use while they run; None for nothing.

    Args:
        selection: which pods; the first usage that selects a pod applies to it.
        cpu: cores of each container.
        memory: bytes of each container.
        gpu: how busy each of a container's GPUs is.
        gpu_memory: how full the memory of each of them is.
    """

    selection: PodSelection
    cpu: Usage | None = None
    memory: Usage | None = None
    gpu: Usage | None = None
    gpu_memory: Usage | None = None

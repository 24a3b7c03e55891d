"""Pod lifecycles: which pods they apply to, how long each step takes, and how the containers end."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from kumulus.model.distributions import Distribution
from kumulus.model.plain import plain

DELAY_ANNOTATION = "pod-complete.stage.kwok.x-k8s.io/delay"
"""On a Job's pod without a lifecycle: how long it runs, a Go duration; see docs/pods.md."""
EMULATED_CONDITION = "kumulus.io/Emulated"
"""The condition of a pod that has ended, or must not begin: no container has run."""
EXIT_CODE_ASSUMED = "ExitCodeAssumed"
"""Its reason where nobody has declared how the pod ends."""


@dataclass(frozen=True)
class PodSelection:
    """Pods that match every field; all pods if no field is set."""

    labels: Mapping[str, str] = field(default_factory=dict)
    """Labels and values that a pod must have."""
    namespaces: tuple[str, ...] = ()
    """The pod is in one of them."""
    owner_kinds: tuple[str, ...] = ()
    """The pod belongs to a workload of one of these kinds."""

    def to_plain(self) -> dict[str, Any]:
        """The plain form, JSON-able."""
        return dict(plain(self))

    def covers(self, other: PodSelection) -> bool:
        """Whether every pod that the other selects is certainly selected by this one too."""
        return (
            self.labels.items() <= other.labels.items()
            and _narrower(other.namespaces, self.namespaces)
            and _narrower(other.owner_kinds, self.owner_kinds)
        )

    def apart_from(self, other: PodSelection) -> bool:
        """Whether it is certain that no pod is selected by both."""
        other_labels = any(other.labels.get(key, value) != value for key, value in self.labels.items())
        other_namespaces = self.namespaces and other.namespaces and not {*self.namespaces} & {*other.namespaces}
        return other_labels or bool(other_namespaces)


@dataclass(frozen=True)
class ContainerFailure:
    """One way in which a container ends with an error."""

    share: float
    """The fraction of the container's runs that end this way, from 0 to 1."""
    exit_code: int
    reason: str
    """As a kubelet reports it."""
    message: str = ""
    """The message in the container's status."""
    container: str = ""
    """Which container fails; empty for the pod's first."""
    after: Distribution | None = None
    """How long it runs until then; None for as long as it would have run anyway."""


@dataclass(frozen=True)
class ResizeRefusal:
    """One way in which a resize in place is not accepted."""

    share: float
    """The fraction of resizes that it happens to, from 0 to 1."""
    outcome: Literal["deferred", "infeasible"]
    """As a kubelet calls it."""
    after: Distribution | None = None
    """How long it is deferred until it is accepted; None for as long as nobody resizes the pod again."""


@dataclass(frozen=True)
class Lifecycle:
    """The lifecycle of a selection of pods. A step that is None takes no time; without ``run`` they run forever."""

    name: str
    selection: PodSelection
    """The pods it applies to, unless an earlier lifecycle selects them."""
    seed: int = 0
    """The same seed draws the same durations for the same pods."""
    image_pull: Distribution | None = None
    """From the pod's start until its images are pulled."""
    init: Distribution | None = None
    """How long each init container runs, one after the other."""
    start_up: Distribution | None = None
    """How long the containers run until they are ready."""
    run: Distribution | None = None
    """How long they run from then on."""
    failures: tuple[ContainerFailure, ...] = ()
    """How they may fail; the rest, 1 minus all shares, succeeds."""
    resizes: tuple[ResizeRefusal, ...] = ()
    """What may become of their resizes; the rest is accepted."""
    termination: Distribution | None = None
    """How long their containers run on once they are deleted, unless their grace period ends before."""
    must_run: Literal["", "fail", "pending"] = ""
    """What becomes of them where only a real container would do: they ``fail``, or stay ``pending``; empty for pods
    that may pretend."""


def _narrower(inner: tuple[str, ...], outer: tuple[str, ...]) -> bool:
    """Whether every inner value is an outer one; an empty tuple stands for all values."""
    return not outer or (bool(inner) and set(inner) <= set(outer))


@dataclass(frozen=True)
class Amount:
    """How much: an absolute quantity, or a share of what the container requests."""

    number: float
    """In units (cores, bytes), or the share: 0.8 for 80 %."""
    relative: bool
    """Whether it is a share."""


@dataclass(frozen=True)
class Usage:
    """Use over time: points of a pod's age in seconds and an amount, joined by lines; the last amount stays."""

    points: tuple[tuple[float, Amount], ...]
    """At least one; ages ascend."""
    upper: Amount | None = None
    """For readings at random in a range: its upper bound. The amount of the only point is the lower one. Else None."""
    shared: bool = False
    """Whether the amount of the only point is a load, which the containers of all ready pods share."""


@dataclass(frozen=True)
class PodUsage:
    """What the containers of a selection of pods use while they run; None for nothing."""

    selection: PodSelection
    """Which pods; the first usage that selects a pod applies to it."""
    cpu: Usage | None = None
    """Cores of each container."""
    memory: Usage | None = None
    """Bytes of each container."""
    gpu: Usage | None = None
    """How busy each of a container's GPUs is."""
    gpu_memory: Usage | None = None
    """How full the memory of each of them is."""

    @property
    def shared(self) -> bool:
        """Whether some of it is a load that the pods share."""
        return any(each is not None and each.shared for each in (self.cpu, self.memory))

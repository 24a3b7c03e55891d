"""What a fault does to a node, in plain dataclasses: the provider plugin imports this file."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from kumulus.model.plain import made_from, plain
from kumulus.model.pools import Taint, taints_from
from kumulus.model.quantity import ZERO, Quantity, parse

KUBELETS = ("", "silent", "notReady", "reboot", "gone")
"""The states of a node's kubelet under a fault: unaffected; silent (its lease is not renewed); reporting not ready;
restarting with its machine; gone together with its node."""

XID_ANNOTATION = "kumulus.io/gpu-xid"
"""The last XID that the GPU driver reported; DCGM_FI_DEV_XID_ERRORS shows it when the stack has `podUsage`."""


REMOVE, TAINT = "remove", "taint"
DEVICES = (REMOVE, TAINT)
"""What becomes of the devices of a slice that a fault takes: published no more, or with a taint."""


@dataclass(frozen=True)
class Condition:
    """A condition of a node.

    Args:
        status: True, False or Unknown.
        reason: one word for programs.
        message: a sentence for people.
    """

    status: str
    reason: str
    message: str

    def to_plain(self) -> dict[str, str]:
        """The condition as Kubernetes writes it, without its type and times."""
        return {"status": self.status, "reason": self.reason, "message": self.message}


@dataclass(frozen=True)
class NodeEffects:
    """What a fault does to each of its nodes.

    Args:
        conditions: by type.
        taints: put on it.
        labels, annotations: set on it.
        capacity: what is left of a resource, "7", or what is lost of it, "-1".
        kubelet: silent, notReady, reboot or gone; empty when nothing became of it.
        down: how long a reboot takes, in seconds.
        devices: one of :data:`DEVICES`; empty is the first.
    """

    conditions: Mapping[str, Condition] = field(default_factory=dict)
    taints: tuple[Taint, ...] = ()
    labels: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)
    capacity: Mapping[str, str] = field(default_factory=dict)
    kubelet: str = ""
    down: float = 0.0
    devices: str = ""

    def to_plain(self) -> dict[str, object]:
        """The plain form, JSON-able, without empty values."""
        found = {**plain(self), "taints": [taint.to_plain() for taint in self.taints]}
        return {key: value for key, value in found.items() if value}

    def claims(self) -> dict[str, str | None]:
        """What it sets on a node, and to which value; None where no other fault may set it on the same node.

        If two faults reduced one resource, the result would match neither of them, and a kubelet cannot both be silent
        and restart.
        """
        found: dict[str, str | None] = {f"condition {kind}": repr(each) for kind, each in self.conditions.items()}
        found |= {f"taint {taint.key}:{taint.effect}": taint.value for taint in self.taints}
        found |= {f"label {key}": value for key, value in self.labels.items()}
        # Of several XIDs only the last is shown, as in DCGM.
        noted = {key: value for key, value in self.annotations.items() if key != XID_ANNOTATION}
        found |= {f"annotation {key}": value for key, value in noted.items()}
        found |= {f"capacity of {name}": None for name in self.capacity}
        return {**found, **({"kubelet": None} if self.kubelet else {})}


def node_effects_from(raw: Mapping[str, object]) -> NodeEffects:
    """Effects from the plain form that `NodeEffects.to_plain` writes."""
    return replace(made_from(NodeEffects, {**raw, "taints": None}), taints=taints_from(raw.get("taints")))


def lost(capacity: str, change: str) -> Quantity:
    """How much of a resource a fault takes from a node: never more than the node has, and never less than 0.

    Args:
        change: what is left, "7", or what is lost, "-1".
    """
    has, written = parse(capacity), parse(change)
    gone = ZERO - written if written.nanos < 0 else has - written
    return Quantity(min(max(gone.nanos, 0), has.nanos), has.format)


def reduced(resources: Mapping[str, str], capacity: Mapping[str, str], changes: Mapping[str, str]) -> dict[str, str]:
    """Resources of a node after the loss; a resource that the node does not have is not added.

    Args:
        resources: the node's capacity or allocatable.
        capacity: the node's capacity, from which the loss is computed.
        changes: the fault's changes of capacity.
    """
    left = dict(resources)
    for name, change in changes.items():
        if name in resources and name in capacity:
            has, gone = parse(resources[name]), lost(capacity[name], change)
            left[name] = str(Quantity(max(has.nanos - gone.nanos, 0), has.format))
    return left

"""What a fault does to nodes, pods and an autoscaler's offerings, as plain dataclasses, which the plugin imports.

Their docstrings also describe the fields in the schema of Pulumi's package.
"""

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase

from kumulus.model import durations
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
"""What becomes of the devices that a fault takes: their node publishes them no more, or with a taint."""


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
        kubelet: silent, notReady, reboot or gone; empty where it is not affected.
        down: how long a reboot takes, in seconds.
        devices: what becomes of the devices that a loss of capacity takes: remove or taint; empty for remove.
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

    def settings(self) -> dict[str, str | None]:
        """What it sets on a node, and to which value; None where no other fault may set it on the same node.

        If two faults reduced one resource, the result would match neither of them, and a kubelet cannot both be silent
        and restart.
        """
        found: dict[str, str | None] = {f"condition {kind}": repr(each) for kind, each in self.conditions.items()}
        found |= {f"taint {taint.key}:{taint.effect}": taint.value for taint in self.taints}
        found |= {f"label {key}": value for key, value in self.labels.items()}
        # Of several XIDs only the last is shown, as in DCGM.
        found |= {f"annotation {key}": value for key, value in self.annotations.items() if key != XID_ANNOTATION}
        found |= {f"capacity of {name}": None for name in self.capacity}
        if self.kubelet:
            found["kubelet"] = None
        return found


def node_effects_from(raw: Mapping[str, object]) -> NodeEffects:
    """Effects from the plain form that `NodeEffects.to_plain` writes."""
    return replace(made_from(NodeEffects, {**raw, "taints": None}), taints=taints_from(raw.get("taints")))


def lost(capacity: str, change: str) -> Quantity:
    """How much of a resource a fault takes from a node; `change`: what is left, "7", or what is lost, "-1"."""
    has, amount = parse(capacity), parse(change)
    gone = ZERO - amount if amount.nanos < 0 else has - amount
    return Quantity(min(max(gone.nanos, 0), has.nanos), has.format)


def reduced(resources: Mapping[str, str], capacity: Mapping[str, str], changes: Mapping[str, str]) -> dict[str, str]:
    """A node's resources after a fault's changes; a resource that the node does not have is not added.

    Args:
        resources: its capacity, or its allocatable.
        capacity: its capacity, from which the loss is computed.
        changes: what is left or lost of each resource, as for :func:`lost`.
    """
    left = dict(resources)
    for name, change in changes.items():
        if name in resources and name in capacity:
            has, gone = parse(resources[name]), lost(capacity[name], change)
            left[name] = str(Quantity(max(has.nanos - gone.nanos, 0), has.format))
    return left


ACTIONS = ("fail", "failInit", "evict", "imagePull", "stuck")
"""A container fails; an init container fails; the kubelet evicts the pod; an image cannot be pulled; a deleted pod is
stuck."""


@dataclass(frozen=True)
class PodEffects:
    """What a fault does to each pod it selects.

    Args:
        action: fail, failInit, evict, imagePull or stuck.
        container: the name of the container; empty for those with one of the images, or the first.
        exit_code: of the container that fails.
        reason, message: why it failed, or why the pod was evicted, or why the image is not there.
        delay: seconds from the pod's start to the fault.
        jitter: up to this many seconds more, evenly spread over the pods.
        repeat: whether every pod is hit, and a restarted container again; otherwise each pod that is there when the
            fault begins, once.
        percent: how many of the selected pods are hit.
        labels: those that a pod has to have.
        namespaces: it is in one of them; empty for any.
        owner_kinds: it belongs to a workload of one of these kinds; empty for any.
        images: one of its containers has one of these images, in which `*` stands for any characters; empty for any.
    """

    action: str
    container: str = ""
    exit_code: int = 1
    reason: str = ""
    message: str = ""
    delay: float = 0.0
    jitter: float = 0.0
    repeat: bool = True
    percent: float = 100.0
    labels: Mapping[str, str] = field(default_factory=dict)
    namespaces: tuple[str, ...] = ()
    owner_kinds: tuple[str, ...] = ()
    images: tuple[str, ...] = ()

    @property
    def containers_key(self) -> str:
        """The key of a pod's spec under which the containers that it hits are listed."""
        return "initContainers" if self.action == "failInit" else "containers"

    @property
    def image_pattern(self) -> str:
        """The images as one regular expression; empty for any."""
        patterns = [".*".join(map(re.escape, image.split("*"))) for image in self.images]
        return f"^(?:{'|'.join(patterns)})$" if patterns else ""

    def to_plain(self) -> dict[str, object]:
        """The plain form, JSON-able."""
        # Earlier versions wrote no images.
        return dict(plain(self, optional=("images",)))


DEFAULT_NOTICE_S = 120.0
"""AWS gives two minutes' notice before it interrupts a spot instance."""

RECLAIM_ANNOTATION = "kumulus.io/reclaimed-at"
"""When a node's machine is taken back, RFC 3339 in UTC; KWOK deletes the node then."""


@dataclass(frozen=True)
class Interruption:
    """How machines of an autoscaler are taken back.

    Args:
        notice: seconds from the notice until they are gone.
        labels: what their nodes have to have.
        count: at most this many of them; 0 for all.
        percent: only this share of them, in per cent.
        seed: what they are drawn with.
    """

    notice: float = DEFAULT_NOTICE_S
    labels: Mapping[str, str] = field(default_factory=dict)
    count: int = 0
    percent: float = 100.0
    seed: str = ""

    def drawn(self, among: Sequence[str]) -> tuple[str, ...]:
        """The machines that are taken back, drawn by the seed; at least one if there are any.

        Args:
            among: names of all candidates, in an order that is the same in every run: an autoscaler chooses random
                names, so positions in that order are drawn here.
        """
        order = sorted(range(len(among)), key=lambda at: hashlib.blake2b(f"{self.seed}/{at}".encode()).digest())
        wanted = max(1, round(len(order) * self.percent / 100))
        if self.count:
            wanted = min(wanted, self.count)
        return tuple(among[at] for at in sorted(order[:wanted]))

    def described(self, which: str) -> str:
        """A description: `20% of the spot machines go after a notice of 2m: e2-standard-4 in us-central1-a`.

        Args:
            which: types and zones; empty for all.
        """
        much = "all"
        if self.count:
            much = f"{self.count} of the"
        elif self.percent < 100:
            much = f"{self.percent:g}% of the"
        selected = [which] if which else []
        selected += [f"{key}={value}" for key, value in sorted(self.labels.items())]
        text = f"{much} spot machines go after a notice of {durations.written(self.notice)}"
        return f"{text}: {', '.join(selected)}" if selected else text


OFFERINGS_ANNOTATION = "kumulus.io/offerings"
"""On an autoscaler's node class: the active effects on its offerings, a JSON list of :meth:`OfferEffects.to_plain`."""


@dataclass(frozen=True)
class OfferEffects:
    """What a fault does to the offerings that it selects.

    Args:
        sold_out: whether none can be had.
        price_factor: what their price is multiplied by.
        zones: they are in one of them, `*` standing for any characters; empty for any.
        instance_types: they are of one of them, likewise; empty for any.
        capacity_types: they are on-demand or spot; empty for both.
        limits: how much there may be of all of them together, quantities by resource, `nodes` for machines.
        interruption: how machines of them are taken back; None if they are not.
    """

    sold_out: bool = False
    price_factor: float = 1.0
    zones: tuple[str, ...] = ()
    instance_types: tuple[str, ...] = ()
    capacity_types: tuple[str, ...] = ()
    limits: Mapping[str, str] = field(default_factory=dict)
    interruption: Interruption | None = None

    def selects(self, instance_type: str, zone: str, capacity_type: str) -> bool:
        """Whether it affects an offering."""
        return (
            _matches(self.instance_types, instance_type)
            and _matches(self.zones, zone)
            and _matches(self.capacity_types, capacity_type)
        )

    def to_plain(self) -> dict[str, object]:
        """The plain form, JSON-able, which Karpenter's provider reads too."""
        return dict(plain(self, optional=("limits", "interruption")))

    def described(self) -> str:
        """What it does to which offerings: `none available: e2-standard-16 in us-central1-a, on-demand`."""
        where = f" in {', '.join(self.zones)}" if self.zones else ""
        if self.interruption is not None:
            return self.interruption.described(f"{', '.join(self.instance_types)}{where}".strip())
        how = f", {' and '.join(self.capacity_types)}" if self.capacity_types else ""
        return f"{self._what()}: {', '.join(self.instance_types) or 'every instance type'}{where}{how}"

    def _what(self) -> str:
        if self.limits:
            return "at most " + ", ".join(f"{amount} {name}" for name, amount in self.limits.items())
        return "none available" if self.sold_out else f"{self.price_factor:g} times the price"


def _matches(patterns: tuple[str, ...], value: str) -> bool:
    return not patterns or any(fnmatchcase(value, pattern) for pattern in patterns)


def offer_effects_from(raw: Mapping[str, object]) -> OfferEffects:
    """Effects from the plain form that `OfferEffects.to_plain` writes."""
    found = made_from(OfferEffects, {**raw, "interruption": raw.get("interruption") or None})
    # Sorted, because Pulumi passes mappings in a different order each time.
    return replace(found, limits=dict(sorted(found.limits.items())))

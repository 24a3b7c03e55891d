"""A node as the views see it, read from a watch."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from kumulus.extras.watch.live.admission import ORDINARY, Nature, nature_of
from kumulus.extras.watch.live.amounts import Amounts, amounts
from kumulus.model.active_faults import FAULTS_ANNOTATION
from kumulus.model.gfd import GPU_PRODUCT_LABEL
from kumulus.model.pools import GROUP_LABEL, INSTANCE_TYPE_LABEL, POOL_LABEL, ZONE_LABEL
from kumulus.nodes.catalog.prices import Prices

State = Literal["ready", "cordoned", "faulted", "not ready"]
STATES: tuple[State, ...] = ("ready", "cordoned", "faulted", "not ready")
"""From best to worst."""

# The label in KEMU's files, whose nodes lack the labels of GPU Feature Discovery.
_KEMU_PRODUCT_LABEL = "datastrophic.io/gpu-type"
_KWOK_TAINT = "kwok.x-k8s.io/node"


@dataclass(frozen=True, slots=True)
class ClusterNode:
    """A node.

    Attributes:
        zone, group, pool, rack, block: where it belongs; empty if its labels do not say.
        product: its GPU product; empty when it has no GPUs. Without a product label it is the group's name.
        allocatable: what pods can have of it.
        capacity: what it has; a fault may have taken some of it.
        ready: status of its condition Ready: True, False or Unknown; Unknown when it has none.
        cordoned: it takes no new pods.
        conditions: the types of its other conditions that are True; each is a problem.
        taints: ``key=value:effect``, without KWOK's own.
        faults: names of its active faults.
        nature: what decides which pods may go to it.
        hourly: what it costs, in US dollars per hour; None where no price is known.
    """

    name: str
    zone: str
    group: str
    pool: str
    rack: str
    block: str
    product: str
    allocatable: Amounts
    capacity: Amounts
    ready: str
    cordoned: bool
    conditions: tuple[str, ...]
    taints: tuple[str, ...]
    faults: tuple[str, ...]
    nature: Nature = ORDINARY
    hourly: float | None = None

    @property
    def state(self) -> State:
        """The worst state that applies."""
        if self.ready != "True":
            return "not ready"
        if self.faults or self.conditions or self.allocatable.gpus < self.capacity.gpus:
            return "faulted"
        return "cordoned" if self.cordoned else "ready"


@dataclass(frozen=True)
class PlaceLabels:
    """The labels that say where a node stands.

    Attributes:
        racks, blocks: label keys; the first one that a node has counts.
    """

    racks: tuple[str, ...]
    blocks: tuple[str, ...]

    @classmethod
    def of(cls, presets: Iterable[Mapping[str, str]]) -> PlaceLabels:
        """The keys of presets, which map levels to label keys, as in ``kumulus.stackfile.group_topology.PRESETS``."""
        found = list(presets)
        racks, blocks = (tuple(dict.fromkeys(p[level] for p in found if level in p)) for level in ("rack", "block"))
        return cls(racks, blocks)


NOWHERE = PlaceLabels((), ())
"""No label says where a node stands."""


def node_from(message: Any, places: PlaceLabels, prices: Prices | None = None) -> ClusterNode:
    """Read a ``ClusterNode`` of :mod:`kumulus.kube.messages`."""
    metadata, spec, status = message.metadata, message.spec, message.status
    labels = metadata.labels
    group = labels.get(GROUP_LABEL) or labels.get(INSTANCE_TYPE_LABEL, "")
    capacity, allocatable = amounts(status.capacity), amounts(status.allocatable)
    product = labels.get(GPU_PRODUCT_LABEL) or labels.get(_KEMU_PRODUCT_LABEL) or (group if capacity.gpus else "")
    price = prices.of_node(labels) if prices else None
    ready, bad = "Unknown", []
    for condition in status.conditions:
        if condition.type == "Ready":
            ready = condition.status
        elif condition.status == "True":
            bad.append(condition.type)
    return ClusterNode(
        name=metadata.name,
        zone=labels.get(ZONE_LABEL, ""),
        group=group,
        pool=labels.get(POOL_LABEL, ""),
        rack=_first(labels, places.racks),
        block=_first(labels, places.blocks),
        product=product,
        allocatable=allocatable,
        capacity=capacity,
        ready=ready,
        cordoned=spec.unschedulable,
        conditions=tuple(bad),
        taints=tuple(_taint(taint) for taint in spec.taints if taint.key != _KWOK_TAINT),
        faults=tuple(filter(None, metadata.annotations.get(FAULTS_ANNOTATION, "").split(","))),
        nature=nature_of(message),
        hourly=price.hourly if price else None,
    )


def _first(labels: Mapping[str, str], keys: tuple[str, ...]) -> str:
    return next((labels[key] for key in keys if key in labels), "")


def _taint(taint: Any) -> str:
    return f"{taint.key}{'=' if taint.value else ''}{taint.value}:{taint.effect}"

"""A moment of a fleet, as plain values: what the terminal shows, what `--json` prints."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from kumulus.extras.watch.live.amounts import Amounts
from kumulus.extras.watch.live.fleet import Live
from kumulus.extras.watch.live.health import HealthCheck
from kumulus.extras.watch.live.model import Group, sorted_groups
from kumulus.extras.watch.live.node import STATES
from kumulus.extras.watch.live.pod import PHASES
from kumulus.model.durations import timestamp
from kumulus.model.totals import NO_ZONE

NO_PRODUCT = "(no GPU)"
"""The product under which nodes without GPUs are counted."""


@dataclass(frozen=True)
class CapacityShare:
    """Some nodes and what is taken of them.

    Attributes:
        name: of the product or zone.
        nodes: how many.
        states: how many in each of ``kumulus.extras.watch.live.node.STATES``, without zeros.
        allocatable, taken: what pods can have and have.
        priced: how many have a known price.
        hourly: what these cost, in US dollars per hour.
    """

    name: str
    nodes: int
    states: Mapping[str, int]
    allocatable: Amounts
    taken: Amounts
    priced: int = 0
    hourly: float = 0.0


@dataclass(frozen=True)
class Summary:
    """A fleet at a moment.

    Attributes:
        at: seconds since 1970.
        total: all nodes.
        by_product, by_zone: in the order of their names.
        phases: pods by phase, in Kubernetes' order.
        waiting: pods that wait for a scheduler.
        refused: pods that the API server does not let a Job or another controller create.
        reasons: why both wait, with the number of pods, the most frequent first; a pod can have several.
        bindings: pods bound in each of the last sixty seconds, the latest last.
        bound_per_second: the mean of the last ten of them.
        checks: the health of each component of the control plane.
        lost: why a watch is interrupted; empty when all is well.
        lost_for: for how long, in seconds.
    """

    at: float
    total: CapacityShare
    by_product: Sequence[CapacityShare]
    by_zone: Sequence[CapacityShare]
    phases: Mapping[str, int]
    waiting: int
    refused: int
    reasons: Sequence[tuple[str, int]]
    bindings: Sequence[int]
    bound_per_second: float
    checks: Mapping[str, HealthCheck]
    lost: str
    lost_for: float

    def to_plain(self) -> dict[str, Any]:
        """JSON-able; CPU in cores, memory in bytes."""
        return {
            "time": timestamp(datetime.fromtimestamp(self.at, UTC)),
            **_plain(self.total),
            "byProduct": {share.name: _plain(share) for share in self.by_product},
            "byZone": {share.name: _plain(share) for share in self.by_zone},
            "podsByPhase": dict(self.phases),
            "unscheduled": self.waiting,
            "notCreated": self.refused,
            "pendingReasons": dict(self.reasons),
            "boundPerSecond": self.bound_per_second,
            "controlPlane": {name: {"status": c.status, "detail": c.detail} for name, c in self.checks.items()},
        }


def summary(live: Live) -> Summary:
    """The summary of a fleet now."""
    fleet, now = live.fleet, time.monotonic()
    return Summary(
        at=time.time(),
        total=_share("", fleet.total),
        by_product=[_share(name or NO_PRODUCT, group) for name, group in sorted_groups(fleet.by_product)],
        by_zone=[_share(name or NO_ZONE, group) for name, group in sorted_groups(fleet.by_zone)],
        phases={phase: fleet.phases[phase] for phase in PHASES},
        waiting=fleet.waiting,
        refused=live.refused.total(),
        reasons=sorted((fleet.reasons + live.refused).items(), key=lambda item: (-item[1], item[0])),
        bindings=fleet.bindings.history(now),
        bound_per_second=fleet.bindings.per_second(now),
        checks=dict(live.checks),
        lost=str(live.lost) if live.lost else "",
        lost_for=now - live.lost_at if live.lost else 0.0,
    )


def _share(name: str, group: Group) -> CapacityShare:
    states: dict[str, int] = {state: group.states[state] for state in STATES if group.states[state]}
    return CapacityShare(name, group.nodes, states, group.allocatable, group.taken, group.priced, group.hourly)


def _plain(share: CapacityShare) -> dict[str, Any]:
    return {
        "nodes": share.nodes,
        "nodesByState": dict(share.states),
        "allocatable": _amounts(share.allocatable),
        "allocated": _amounts(share.taken),
        "costPerHour": round(share.hourly, 4),
        "nodesWithoutPrice": share.nodes - share.priced,
    }


def _amounts(found: Amounts) -> dict[str, Any]:
    return {"cpu": found.cpu / 1000, "memory": found.memory, "gpus": found.gpus, "pods": found.pods}

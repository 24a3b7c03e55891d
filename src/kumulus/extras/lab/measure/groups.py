"""What becomes of Kubernetes' own groups of pods: by their conditions, and by the pods that name them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from kumulus.extras.lab.measure.states import PREEMPTED, PodRecord, Timed
from kumulus.extras.lab.measure.statistics import Measured, Times

VERSION = "scheduling.k8s.io/v1beta1"
_PLACED = "PodGroupInitiallyScheduled"


@dataclass(slots=True)
class GroupRecord(Timed):
    """A PodGroup."""

    created: float
    """When it was first seen."""
    minimum: int
    """How many of its pods get nodes together or not at all; 1 if it is no gang."""
    bound: float | None = None
    """When its condition said that it was placed; None if it did not."""


class Groups:
    """The PodGroups that were seen, by `namespace/name`."""

    def __init__(self) -> None:
        self._seen: dict[str, GroupRecord] = {}

    def put(self, name: str, found: Mapping[str, Any], now: float, since: float) -> None:
        """Add or update a group; the times are those of :meth:`kumulus.extras.lab.measure.records.Records.put`."""
        record = self._seen.get(name)
        if record is None:
            gang = found["spec"]["schedulingPolicy"].get("gang") or {}
            record = self._seen[name] = GroupRecord(now, gang.get("minCount", 1))
            record.reach("created", now, since)
        conditions = (found.get("status") or {}).get("conditions") or ()
        placed = any(each["type"] == _PLACED and each["status"] == "True" for each in conditions)
        if placed and record.bound is None:
            record.reach("bound", now, since)

    def measures(self, pods: Iterable[PodRecord]) -> dict[str, Measured]:
        """The measures of the groups that an experiment's pods name; none if they name none."""
        placed: Counter[str] = Counter()
        preempted = set[str]()
        for pod in pods:
            if pod.group in self._seen:
                placed[pod.group] += pod.bound is not None and (pod.ended is None or pod.phase == "Succeeded")
                if pod.disrupted == PREEMPTED:
                    preempted.add(pod.group)
        if not placed:
            return {}
        groups = {name: self._seen[name] for name in placed}
        took = Times()
        for group in groups.values():
            took.add(group.between("created", "bound"))
        return {
            "groups.total": len(groups),
            "groups.admitted": sum(group.bound is not None for group in groups.values()),
            "groups.partlyPlaced": sum(0 < placed[name] < group.minimum for name, group in groups.items()),
            "groups.preempted": len(preempted),
            **{f"groupTimeToPlacement.{part}": value for part, value in took.spread().items()},
        }


def victims(pods: Iterable[PodRecord]) -> dict[str, int]:
    """How many pods of each group the scheduler evicted for others, the most first."""
    return dict(Counter(pod.group for pod in pods if pod.group and pod.disrupted == PREEMPTED).most_common())

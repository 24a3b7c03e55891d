"""The bounds between which an autoscaler chooses a pool's number of nodes."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import cast

from kumulus.model.checks import problem, replicas_problems
from kumulus.model.errors import Problem, Where


@dataclass(frozen=True)
class Bounds:
    """The bounds between which an autoscaler chooses a pool's number of nodes."""

    least: int
    """The minimum number of nodes."""
    most: int
    """The maximum number of nodes."""

    def nearest(self, count: int) -> int:
        """The number of nodes within the bounds that is nearest to `count`."""
        return max(self.least, min(count, self.most))


def bounds_from(raw: Mapping[str, object]) -> Bounds | None:
    """The bounds from checked `minReplicas` and `maxReplicas`; None without the latter."""
    most = raw.get("maxReplicas")
    return None if most is None else Bounds(int(cast(float, raw.get("minReplicas") or 0)), int(cast(float, most)))


def bounds_problems(where: Where, raw: Mapping[str, object], replicas: object) -> list[Problem]:
    """Problems of `minReplicas` and `maxReplicas`: numbers of nodes, the first not above the second, replicas between.

    Args:
        replicas: the initial number of nodes; may be malformed, which is reported elsewhere.
    """
    least, most = raw.get("minReplicas"), raw.get("maxReplicas")
    found = [
        each
        for key, value in (("minReplicas", least), ("maxReplicas", most))
        if value is not None
        for each in replicas_problems((*where, key), value)
    ]
    if found or (least is None and most is None):
        return found
    if most is None:
        return [problem((*where, "minReplicas"), "has no effect without maxReplicas", "write maxReplicas as well")]
    low, high = int(cast(float, least or 0)), int(cast(float, most))
    if low > high:
        return [problem((*where, "minReplicas"), f"is {low}, more than maxReplicas, {high}", f"write {high} or less")]
    if not isinstance(replicas, int | float) or replicas_problems((), replicas) or low <= replicas <= high:
        return []
    message = f"are {int(replicas)} replicas, and the group's bounds are {low} and {high}"
    return [problem((*where, "replicas"), message, f"write a number from {low} to {high}")]

"""What each user, or queue, had: how long pods waited, how much longer they took for it, their share over time.

A user is one that the trace names, or else the queue of the workload. Shares are of GPUs, including parts of them; if
no pod wants any, they are of CPUs.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from kumulus.extras.lab.measure.records import PodRecord
from kumulus.extras.lab.measure.statistics import spread
from kumulus.extras.lab.policies.pod import WHOLE_GPU

MOST_DRAWN = 9
"""How many users, those who had most, have a line of their own over time; the others share one."""
OTHERS = "others"
_MOMENTS = 200
# A pod that ran for less counts as having run this long: the slowdown of one that ends at once would be unbounded
# (Feitelson and Rudolph, "Metrics and Benchmarking for Parallel Job Scheduling", 1998).
_SHORTEST = 1.0


@dataclass
class User:
    """One user.

    Attributes:
        pods: how many were created.
        scheduled: how many got a node.
        waited: seconds from a pod's creation to its binding, of those that got a node.
        slowdown: of the pods that completed, the time from creation to end over the time that they ran.
        had: resource-seconds of GPUs, or of CPUs.
        asked: likewise, if every pod had had its node at once.
        allocations: the start, end and amount of each allocation.
    """

    pods: int = 0
    scheduled: int = 0
    waited: list[float] = field(default_factory=list)
    slowdown: list[float] = field(default_factory=list)
    had: float = 0.0
    asked: float = 0.0
    allocations: list[tuple[float, float, float]] = field(default_factory=list)


@dataclass(frozen=True)
class Users:
    """All users of a repetition.

    Args:
        by_name: each user.
        of: gpus or cpus: what shares are of.
        until: seconds that the repetition lasted.
    """

    by_name: Mapping[str, User]
    of: str
    until: float

    def measures(self) -> dict[str, float]:
        """Slowdowns of all pods, and how fairly users were served; the latter only for two users or more."""
        slowed = spread(value for user in self.by_name.values() for value in user.slowdown)
        found = {f"slowdown.{part}": value for part, value in slowed.items()}
        named = [user for name, user in self.by_name.items() if name and user.asked]
        if len(named) > 1:
            found["fairness.users"] = len(named)
            found["fairness.jain"] = jain([min(1.0, user.had / user.asked) for user in named])
            found["fairness.jainShare"] = jain([user.had for user in named])
        return found

    def shares(self) -> dict[str, list[float]]:
        """Each user's share of what all users had, at moments `t` in seconds; 0 where nobody had anything."""
        named = sorted((name for name in self.by_name if name), key=lambda name: (-self.by_name[name].had, name))
        if not named or not self.until:
            return {}
        times = [self.until * number / _MOMENTS for number in range(_MOMENTS + 1)]
        drawn = {name: _allocated_at(self.by_name[name].allocations, times) for name in named[:MOST_DRAWN]}
        if rest := named[MOST_DRAWN:]:
            drawn[OTHERS] = _allocated_at((each for name in rest for each in self.by_name[name].allocations), times)
        totals = [math.fsum(column) for column in zip(*drawn.values(), strict=True)]
        share = {
            name: [round(value / total, 4) if total > 0 else 0.0 for value, total in zip(values, totals, strict=True)]
            for name, values in drawn.items()
        }
        return {"t": [round(each, 3) for each in times], **share}


def users_of(pods: Iterable[PodRecord], names: Mapping[str, str], until: float) -> Users:
    """What each user had.

    Args:
        pods: of a repetition.
        names: the user of each job; pods of other jobs have none.
        until: seconds until the measurement ended.
    """
    records = list(pods)
    gpus = any(record.wants.gpus or record.share for record in records)
    found: dict[str, User] = defaultdict(User)
    for record in records:
        user = found[names.get(record.job, "")]
        amount = record.wants.gpus * WHOLE_GPU + record.share if gpus else record.wants.cpu
        _count(user, record, amount / 1000, until)
    return Users(dict(found), "gpus" if gpus else "cpus", until)


def _count(user: User, record: PodRecord, amount: float, until: float) -> None:
    user.pods += 1
    end = until if record.ended is None else record.ended
    user.asked += amount * (end - record.created)
    if record.bound is None:
        return
    user.scheduled += 1
    user.waited.append(record.bound - record.created)
    user.had += amount * (end - record.bound)
    if amount:
        user.allocations.append((record.bound, end, amount))
    if record.phase == "Succeeded" and record.ended is not None:
        ran = max(_SHORTEST, record.ended - (record.bound if record.running is None else record.running))
        user.slowdown.append(max(1.0, (record.ended - record.created) / ran))


def _allocated_at(allocations: Iterable[tuple[float, float, float]], times: Sequence[float]) -> list[float]:
    changes = sorted(change for start, end, amount in allocations for change in ((start, amount), (end, -amount)))
    now, next_change, found = 0.0, 0, []
    for time in times:
        while next_change < len(changes) and changes[next_change][0] <= time:
            now += changes[next_change][1]
            next_change += 1
        found.append(max(0.0, round(now, 6)))
    return found


def jain(values: Sequence[float]) -> float:
    """Jain's index: 1 where all are equal, 1/n where one of n has everything; 1 where nobody has anything.

    Source: Jain, Chiu and Hawe, "A Quantitative Measure of Fairness and Discrimination", DEC-TR-301, 1984.

    Args:
        values: at least one, none negative.
    """
    squares = math.fsum(value * value for value in values)
    return math.fsum(values) ** 2 / (len(values) * squares) if squares else 1.0

"""What becomes of the nodes and pods that a timeline's faults struck: cordons, evacuation, recovery."""

import math
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from kumulus.extras.lab.file.expect import Expectation, OfFault
from kumulus.extras.lab.measure.states import PodRecord
from kumulus.extras.lab.measure.statistics import Between, Measured, known_time

EVACUATE, RECOVER = "timeToEvacuate", "timeToRecover"


@dataclass
class Struck:
    """A fault, and the nodes that it struck."""

    fault: str
    nodes: frozenset[str]
    began: float
    """When it began, before the first node was changed."""
    ended: float = math.inf
    """When it had ended; infinite until then."""
    cordoned: frozenset[str] = frozenset()
    """Those of its nodes that were cordoned when it began."""


class Faulted:
    """The faults of a timeline, and when nodes were cordoned.

    Attributes:
        faults: those on nodes, in the order of their begin.
        lasted: when the measurement ended; infinite until then.
    """

    def __init__(self) -> None:
        self.faults: list[Struck] = []
        self.lasted = math.inf
        self._cordons: dict[str, list[tuple[float, bool]]] = {}

    def begin(self) -> None:
        """Count from now on, where the clock starts anew."""
        for each in self.faults:
            each.began = 0.0
        self._cordons = {node: [(0.0, reported[-1][1])] for node, reported in self._cordons.items()}

    def struck(self, fault: str, nodes: Collection[str], now: float) -> None:
        """A fault begins on nodes."""
        if nodes:
            cordoned = frozenset(each for each in nodes if each in self._cordons and self._cordons[each][-1][1])
            self.faults.append(Struck(fault, frozenset(nodes), now, cordoned=cordoned))

    def over(self, fault: str, now: float) -> None:
        """A fault has ended."""
        for each in self.faults:
            if each.fault == fault:
                each.ended = min(each.ended, now)

    def node(self, name: str, cordoned: bool, now: float) -> None:
        """Note whether a node is cordoned."""
        reported = self._cordons.get(name, [(0.0, False)])
        if cordoned != reported[-1][1]:
            self._cordons[name] = [*reported, (now, cordoned)]

    def cordoned_at(self, node: str, since: float, cordoned: bool) -> float:
        """When a node was first cordoned, or not, from some time on; infinite if it never was."""
        reported = self._cordons.get(node, [])
        if next((each for at, each in reversed(reported) if at <= since), False) == cordoned:
            return since
        return next((at for at, each in reported if at > since and each == cordoned), math.inf)

    def unproven(self, struck: Struck, node: str, cordoned: bool) -> bool:
        """Whether a node's being cordoned, or schedulable again, is no reaction to the fault: it was so all along."""
        first = self.cordoned_at(node, struck.began, True)
        if cordoned:
            return node in struck.cordoned and first == struck.began
        return node not in struck.cordoned and not first <= struck.ended

    def had(self, struck: Struck, pods: Iterable[PodRecord]) -> bool:
        """Whether any of some pods was on a fault's nodes when it began."""
        return any(_there(pod, struck.began) for pod in self.pods_on(struck, pods))

    def pods_on(self, struck: Struck, pods: Iterable[PodRecord]) -> list[PodRecord]:
        """The pods that were on a fault's nodes while it was active."""
        return [
            each
            for each in pods
            if each.node in struck.nodes
            and each.bound is not None
            and each.bound < struck.ended
            and (each.ended is None or each.ended > struck.began)
        ]

    def decided_at(self, expected: Sequence[Expectation]) -> float:
        """Until when a repetition has to last, so that what is expected after its faults is decided."""
        found = [0.0]
        for each in expected:
            wait = each.bounds().get("atMost", 0.0) if each.measure in (EVACUATE, RECOVER) else each.seconds or 0.0
            for struck in self.faults if wait else ():
                if isinstance(each.nodes, OfFault) and each.nodes.fault != struck.fault:
                    continue
                since = struck.ended if each.cordoned is False else struck.began
                found.append(since + wait if since < math.inf else 0.0)
        return max(found)

    def measures(self, pods: Collection[PodRecord]) -> dict[str, Measured]:
        """How long it took at most to evacuate the nodes of a fault, and to recover; nothing without pods there.

        Where none of them ran yet, there is nothing to recover.
        """
        struck = [each for each in self.faults if self.had(each, pods)]
        stopped = [each for each in struck if self.had(each, _running(pods, each.began))]
        found: dict[str, Measured] = {}
        for name, times in (
            (EVACUATE, [self._to_evacuate(each, pods) for each in struck]),
            (RECOVER, [self._to_recover(each, pods) for each in stopped]),
        ):
            whole = [each for each in times if each is not None]
            if times and len(whole) == len(times):
                longest = known_time(Between(*map(max, zip(*whole, strict=True))))
                found |= {name: longest} if longest is not None else {}
        return found

    def _to_evacuate(self, struck: Struck, pods: Iterable[PodRecord]) -> Between | None:
        """From a fault's begin until no pod was on its nodes; None if that was not while it lasted."""
        ends = [each.when("ended") for each in self.pods_on(struck, pods)]
        known = [each for each in ends if each is not None and each.most <= struck.ended]
        if len(known) < len(ends):
            return None
        return Between(*(max(0.0, max(each) - struck.began) for each in zip(*known, strict=True)))

    def _to_recover(self, struck: Struck, pods: Collection[PodRecord]) -> Between | None:
        """From a fault's begin until as many pods ran elsewhere, or had completed, as ran before; None if never."""
        before = sum(_there(each, struck.began) for each in _running(pods, struck.began))
        least, most = (_regained(struck, pods, before, late) for late in (False, True))
        if most == math.inf:
            return None
        return Between(least, most)


def most_at_once(pods: Collection[PodRecord], begin: float, end: float) -> int:
    """The most of some pods that had their node at one time between two times."""
    bound = [each.bound for each in pods if each.bound is not None and begin < each.bound < end]
    return max(sum(_there(each, at) for each in pods) for at in (begin, *bound))


def _running(pods: Iterable[PodRecord], at: float) -> Iterator[PodRecord]:
    return (each for each in pods if each.running is not None and each.running <= at)


def _there(pod: PodRecord, at: float) -> bool:
    return pod.bound is not None and pod.bound <= at and (pod.ended is None or pod.ended > at)


def _regained(struck: Struck, pods: Iterable[PodRecord], wanted: int, late: bool) -> float:
    """Seconds after a fault's begin from which on never fewer pods ran than were wanted; infinite if there are none."""
    # The time of the begin itself, at which some may have run nowhere else.
    changes: list[tuple[float, int]] = [(struck.began, 0)]
    for pod in pods:
        for start, end in _sound(pod, struck, late):
            if end > struck.began:
                changes += [(max(start, struck.began), 1), (end, -1)]
    run, regained = 0, math.inf
    times = sorted(change for change in changes if change[0] < math.inf)
    for (at, change), (following, _) in pairwise([*times, (math.inf, 0)]):
        run += change
        if following > at:
            regained = math.inf if run < wanted else min(regained, at)
    return regained - struck.began


def _sound(pod: PodRecord, struck: Struck, late: bool) -> Iterator[tuple[float, float]]:
    """When a pod counts as running elsewhere than on faulted nodes, or as completed.

    Args:
        late: by the latest start and the earliest end that it may have; otherwise the other way round.
    """
    ran, ended = pod.when("running"), pod.when("ended")
    if ran is None:
        return
    start = ran.most if late else ran.least
    end = math.inf if ended is None else ended.least if late else ended.most
    succeeded = pod.phase == "Succeeded"
    if pod.node not in struck.nodes:
        yield start, math.inf if succeeded else end
        return
    yield start, min(end, struck.began)
    if succeeded:
        yield max(end, struck.began), math.inf
    elif end > struck.ended and not _there(pod, struck.began):
        # One that sat the fault out has recovered from nothing.
        yield max(start, struck.ended), end

"""Which filters refused nodes in an attempt to schedule a pod: combines the notes of `asked` with the log's lines.

kube-scheduler makes one attempt after the other. A note's counts include everything since the previous note. Attempts
in between that called no extender, because the pod fitted nowhere, are subtracted.
"""

import re
from collections import Counter, deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from kumulus.extras.schedulers.decisions.asked import FilterCounts
from kumulus.extras.schedulers.decisions.filters import PARALLELISM, order, refused

BETWEEN = "an attempt that was not counted came between"
UNREAD = "kube-scheduler's metrics could not be read"
UNEVEN = "the counts do not add up"
"""Reasons why it is not known what the filters did."""
_NEVER = -1
# Limit of different messages that are kept between two notes.
_MOST_MESSAGES = 1000
_FIT = "NodeResourcesFit"
# Reasons of plugins that give a node only one; NodeResourcesFit may give several for one node.
_REASONS = {
    "node(s) were unschedulable": "NodeUnschedulable",
    "node(s) didn't match the requested node name": "NodeName",
    "node(s) had untolerated taint(s)": "TaintToleration",
    "node(s) didn't match Pod's node affinity/selector": "NodeAffinity",
    "node(s) didn't have free ports for the requested pod ports": "NodePorts",
    "node(s) exceed max volume count": "NodeVolumeLimits",
    "node(s) had no available volume zone": "VolumeZone",
    "node(s) didn't match pod topology spread constraints": "PodTopologySpread",
    "node(s) didn't match pod topology spread constraints (missing required label)": "PodTopologySpread",
}
_MESSAGE = re.compile(
    r"0/(\d+) nodes are available: (.*?)\.(?: (?:no new claims to deallocate, )?preemption: (.*))?", re.DOTALL
)
_PART = re.compile(r"(\d+) (.*)", re.DOTALL)
_SCARCE = re.compile(r"Insufficient \S+|Too many pods")
# With these messages, no filter was run to find out which pods would have to be preempted.
_NOT_TRIED = re.compile(r"\d+ (No preemption victims found for incoming pod|Preemption is not helpful for scheduling)")


@dataclass(frozen=True)
class Filtered:
    """What filters did in an attempt."""

    passed: int
    """How many nodes passed all of them."""
    refused: dict[str, int] = field(default_factory=dict)
    """How many each of them refused, in their order; empty if none did, or if it is not known."""
    unknown: str = ""
    """Why it is not known; empty if it is known."""


@dataclass(frozen=True)
class _Note:
    passed: int
    profile: str
    run: dict[str, int] | None
    unknown: str = ""


class SchedulingAttempts:
    """Follows a kube-scheduler's attempts.

    Args:
        profiles: the names of its profiles, in the order of its configuration.
        parallelism: on how many nodes filters are run at once.
    """

    def __init__(
        self, profiles: Sequence[str], notes: Callable[[], Iterable[FilterCounts]], parallelism: int = PARALLELISM
    ) -> None:
        self._profiles, self._notes, self._parallelism = tuple(profiles), notes, parallelism
        self._orders: list[tuple[str, ...]] = []
        self._queue: deque[FilterCounts] = deque()
        self._found: dict[str, _Note] = {}
        self._number, self._pod, self._began, self._failed = 0, "", "", ""
        # The (empty) counts of a kube-scheduler before its first attempt.
        self._before = FilterCounts("", "", 0, "", "")
        self._until = 0
        # The messages of the attempts since then in which the pod fitted nowhere.
        self._nowhere: Counter[str] = Counter()

    def begins(self, line: bytes) -> bool:
        """Take a line if kube-scheduler logs it at its start; returns whether it was one."""
        found = order(line)
        if found is None:
            return False
        self._orders.append(found)
        return True

    def attempt(self, pod: str, at: str) -> None:
        """Record that an attempt begins, and that the previous one is over; `at` is as klog writes it."""
        self._settle(at)
        self._found.pop(pod, None)
        self._number, self._pod, self._began, self._failed = self._number + 1, pod, at, ""

    def failed(self, pod: str, at: str, message: str) -> None:
        """Record that the attempt has failed, after kube-scheduler tried preemption."""
        if pod != self._pod:
            return
        self._settle(None)
        self._failed = at
        if self._until < self._number:
            self._nowhere[message] += 1
            if len(self._nowhere) > _MOST_MESSAGES:
                self._until = _NEVER
                self._nowhere.clear()
        elif not tried_nothing(message):
            self._until = _NEVER

    def bound(self, pod: str, evaluated: int, feasible: int) -> Filtered | None:
        """What filters did in the attempt that bound a pod (``namespace/name``); None if no extender was called."""
        if pod == self._pod:
            self._settle(None)
        note = self._found.pop(pod, None)
        if note is None:
            return None
        if note.run is None:
            return Filtered(note.passed, unknown=note.unknown)
        places = {name: place for place, name in enumerate(self._profiles)}
        place = places.get(note.profile, len(self._orders))
        known = len(self._orders) == len(self._profiles) and place < len(self._orders)
        found = refused(
            self._orders[place] if known else (),
            note.run,
            passed=note.passed,
            evaluated=evaluated,
            feasible=feasible,
            parallelism=self._parallelism,
        )
        return Filtered(note.passed, found or {}, UNEVEN if found is None else "")

    def _settle(self, before: str | None) -> None:
        """Take the notes of the attempt; the next one began at ``before``, None while none is known of."""
        self._queue.extend(self._notes())
        while self._queue:
            note = self._queue[0]
            if note.end >= before if before is not None else note.pod not in ("", self._pod):
                return
            self._queue.popleft()
            if note.pod:
                self._asked(note)
            elif self._failed and max(self._failed, self._began) < note.begin and note.counts:
                self._begin(note)

    def _asked(self, note: FilterCounts) -> None:
        run, unknown = None, ""
        if not note.counts:
            unknown = UNREAD
        else:
            run = self._run(note)
            unknown = "" if run is not None else BETWEEN
        self._found[note.pod] = _Note(note.passed, note.profile, run, unknown)
        self._begin(note)

    def _begin(self, note: FilterCounts) -> None:
        """Count from this note on."""
        self._before, self._until = note, self._number if note.counts else _NEVER
        self._nowhere.clear()

    def _run(self, note: FilterCounts) -> dict[str, int] | None:
        """How often each filter was run in this attempt alone; None if not known."""
        nowhere = self._nowhere.total()
        if self._until == _NEVER or max(self._number - 1 - self._until, 0) != nowhere:
            return None
        run = _since(note.counts, self._before.counts, note.profile)
        if not nowhere:
            return run
        if len(self._profiles) != 1 or len(self._orders) != 1:
            return None
        # A filter prepared for every pod or for none is run for every pod or for none; without PreFilter, always.
        prepared = _since(note.prepared, self._before.prepared, note.profile)
        if any(0 < count <= nowhere for count in prepared.values()):
            return None
        active = {name: prepared.get(name, 1) > 0 for name in self._orders[0]}
        for message, times in self._nowhere.items():
            taken = runs(message, self._orders[0], active)
            if taken is None:
                return None
            run = {name: count - times * taken.get(name, 0) for name, count in run.items()}
        return run


def _since(now: dict[str, dict[str, int]], before: dict[str, dict[str, int]], profile: str) -> dict[str, int]:
    then = before.get(profile, {})
    return {name: count - then.get(name, 0) for name, count in now.get(profile, {}).items()}


def tried_nothing(message: str) -> bool:
    """Whether no filter was run for preemption, according to the message about a pod that fits nowhere."""
    match = _MESSAGE.fullmatch(message)
    text = (match and match[3]) or ""
    if text.startswith("not eligible due to "):
        return True
    tried = _MESSAGE.fullmatch(text)
    return tried is not None and all(_NOT_TRIED.fullmatch(each) for each in tried[2].split(", "))


def runs(message: str, filters: Sequence[str], active: Mapping[str, bool]) -> dict[str, int] | None:
    """How often each filter was run in such an attempt; None if that cannot be computed.

    A filter that is not ``active`` was skipped for this pod.
    """
    match = _MESSAGE.fullmatch(message)
    if match is None or not tried_nothing(message):
        return None
    every, refused, scarce = int(match[1]), Counter[str](), False
    for text in match[2].split(", "):
        part = _PART.fullmatch(text)
        if part is None:
            return None
        if _SCARCE.fullmatch(part[2]):
            scarce = True
        elif part[2] in _REASONS:
            refused[_REASONS[part[2]]] += int(part[1])
        else:
            return None
    rest = every - refused.total()
    if scarce:
        refused[_FIT] = rest
        rest = 0
    if rest or min(refused.values()) <= 0 or not all(active.get(name) for name in refused):
        return None
    found, left = {}, every
    for name in filters:
        if active.get(name):
            found[name] = left
            left -= refused[name]
    return found if not left else None

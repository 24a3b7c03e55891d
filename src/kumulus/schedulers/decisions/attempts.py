"""Which filters refused nodes in an attempt to schedule a pod: the notes of `asked`, laid beside the log's lines.

kube-scheduler makes one attempt after the other. What a note says is since the note before; it is of one attempt only
if there was none between that no extender was asked in, as the pod fitted nowhere.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from kumulus.schedulers.decisions.asked import Asked
from kumulus.schedulers.decisions.filters import PARALLELISM, order, refused

BETWEEN = "an attempt that was not counted came between"
UNREAD = "kube-scheduler's metrics could not be read"
UNEVEN = "the counts do not add up"
"""Why the filters are not known."""
_NEVER = -1
_PREEMPTION = re.compile(r" preemption: (.*)$", re.DOTALL)
_LOOKED_AT = re.compile(r"^0/\d+ nodes are available: ")
# With these, no filter was run to find out what would have to go.
_NOT_TRIED = re.compile(
    r"(\d+ )?(No preemption victims found for incoming pod|Preemption is not helpful for scheduling)"
)


@dataclass(frozen=True)
class Filtered:
    """What filters did in an attempt.

    Attributes:
        passed: how many nodes passed all of them.
        refused: how many each of them refused, in their order; empty where none did, or it is not known.
        unknown: why it is not known; empty where it is.
    """

    passed: int
    refused: dict[str, int] = field(default_factory=dict)
    unknown: str = ""


@dataclass(frozen=True)
class _Note:
    passed: int
    profile: str
    run: dict[str, int] | None
    unknown: str = ""


class Attempts:
    """Follows a kube-scheduler's attempts.

    Args:
        profiles: the names of its profiles, in the order of its configuration.
        notes: gives what was noted since it was called before.
        parallelism: on how many nodes filters are run at once.
    """

    def __init__(
        self, profiles: Sequence[str], notes: Callable[[], Iterable[Asked]], parallelism: int = PARALLELISM
    ) -> None:
        self._profiles, self._notes, self._parallelism = tuple(profiles), notes, parallelism
        self._orders: list[tuple[str, ...]] = []
        self._queue: deque[Asked] = deque()
        self._found: dict[str, _Note] = {}
        self._number, self._pod, self._began, self._failed = 0, "", "", ""
        # The counts of a kube-scheduler that has just been started, before its first attempt.
        self._before: dict[str, dict[str, int]] = {}
        self._until = 0

    def begins(self, line: bytes) -> bool:
        """Take a line that kube-scheduler logs at its start; returns whether it was one."""
        found = order(line)
        if found is None:
            return False
        self._orders.append(found)
        return True

    def attempt(self, pod: str, at: str) -> None:
        """An attempt begins, and the one before is over.

        Args:
            pod: namespace/name.
            at: when, as klog writes it.
        """
        self._settle(at)
        self._found.pop(pod, None)
        self._number, self._pod, self._began, self._failed = self._number + 1, pod, at, ""

    def failed(self, pod: str, at: str, message: str) -> None:
        """The attempt has failed, after what kube-scheduler tried by preemption."""
        if pod != self._pod:
            return
        self._settle(None)
        self._failed = at
        if self._until == self._number and not tried_nothing(message):
            self._until = _NEVER

    def bound(self, pod: str, evaluated: int, feasible: int) -> Filtered | None:
        """What filters did in the attempt that a pod is bound by; None where no extender was asked.

        Args:
            pod: namespace/name.
            evaluated: how many nodes were looked at.
            feasible: how many were left.
        """
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
        """Take the notes of the attempt.

        Args:
            before: when the next one began; None while it is not known whether there is one.
        """
        self._queue.extend(self._notes())
        while self._queue:
            note = self._queue[0]
            if note.end >= before if before is not None else note.pod not in ("", self._pod):
                return
            self._queue.popleft()
            if note.pod:
                self._asked(note)
            elif self._failed and max(self._failed, self._began) < note.begin and note.counts:
                self._before, self._until = note.counts, self._number

    def _asked(self, note: Asked) -> None:
        run, unknown = None, ""
        if not note.counts:
            unknown = UNREAD
        elif self._until < self._number - 1:
            unknown = BETWEEN
        else:
            counted, before = note.counts.get(note.profile, {}), self._before.get(note.profile, {})
            run = {name: count - before.get(name, 0) for name, count in counted.items()}
        self._found[note.pod] = _Note(note.passed, note.profile, run, unknown)
        self._before, self._until = note.counts, self._number if note.counts else _NEVER


def tried_nothing(message: str) -> bool:
    """Whether no filter was run for preemption, by what kube-scheduler says of a pod that fits nowhere."""
    match = _PREEMPTION.search(message)
    if match is None:
        return False
    said = _LOOKED_AT.sub("", match[1]).rstrip(".")
    return all(_NOT_TRIED.fullmatch(each) for each in said.split(", "))

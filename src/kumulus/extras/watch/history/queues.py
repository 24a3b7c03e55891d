"""Record what queues report about themselves, and count the jobs in those that report nothing."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, TypeVar

from kumulus.extras.schedulers.kinds import QueueMember, Quota
from kumulus.extras.watch.history.recorder import Figures, Recorder
from kumulus.extras.watch.live import reports
from kumulus.extras.watch.live.fleet import Take
from kumulus.kube.watch import WatchEvent

_T = TypeVar("_T")
_Source = tuple[str, str]
_Queue = tuple[str, str]
"""Name and kind."""


class Queues:
    """Records the queues of a cluster; ``now`` gives the milliseconds since the beginning of its history."""

    def __init__(self, recorder: Recorder, now: Callable[[], int]) -> None:
        self._recorder, self._now = recorder, now
        self._reported: dict[_Source, list[Quota]] = {}
        self._quotas: dict[_Queue, Quota] = {}
        self._members: dict[_Source, QueueMember] = {}
        self._counts: Counter[QueueMember] = Counter()

    def collections(self) -> Mapping[str, Take]:
        """What to follow, and what takes its events."""
        queues: dict[str, Take] = {path: partial(self._take, path, read) for path, read in reports.QUEUES.items()}
        return queues | {path: partial(self._take_member, path, read) for path, read in reports.MEMBERS.items()}

    def _take(self, path: str, read: Callable[[Any], Sequence[Quota]], event: WatchEvent[Any]) -> None:
        found = list(_read(read, event) or ())
        before = self._reported.pop((path, event.key), [])
        if found:
            self._reported[path, event.key] = found
        there = {(each.name, each.kind): each for each in found}
        for queue in {(each.name, each.kind) for each in before} - there.keys():
            del self._quotas[queue]
            self._record(queue)
        self._quotas |= there
        for queue in there:
            self._record(queue)

    def _take_member(self, path: str, read: Callable[[Any], QueueMember | None], event: WatchEvent[Any]) -> None:
        found = _read(read, event)
        before = self._members.pop((path, event.key), None)
        if found is not None:
            self._members[path, event.key] = found
        if before == found:
            return
        for member, change in ((before, -1), (found, 1)):
            if member is not None:
                self._counts[member] += change
        for queue in {(each.queue, each.kind) for each in (before, found) if each is not None}:
            self._record(queue)

    def _record(self, queue: _Queue) -> None:
        """Record a queue as it is now; members of a queue that is not known yet are counted once it is."""
        name, kind = queue
        reported = self._quotas.get(queue)
        if reported is None:
            self._recorder.queue(name, kind, None, self._now())
            return
        waiting, admitted = (self._counts[QueueMember(kind, name, each)] for each in (False, True))
        figures = Figures(reported.quota, reported.used, reported.waiting + waiting, reported.admitted + admitted)
        self._recorder.queue(name, kind, figures, self._now())

    def cleared(self) -> None:
        """Everything is gone."""
        gone = list(self._quotas)
        for remembered in (self._reported, self._quotas, self._members, self._counts):
            remembered.clear()
        for queue in gone:
            self._record(queue)


def _read(read: Callable[[Any], _T], event: WatchEvent[Any]) -> _T | None:
    return None if event.kind == "DELETED" or event.item is None else read(event.item)

"""Record what queues say of themselves, whoever looks after them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from kumulus.cluster.history.recorder import Figures, Recorder
from kumulus.cluster.live import owners
from kumulus.cluster.live.collections import Take
from kumulus.kube.watch import Event


class Queues:
    """Records the queues of a cluster.

    Args:
        recorder: records them.
        now: milliseconds since the beginning of its history.
    """

    def __init__(self, recorder: Recorder, now: Callable[[], int]) -> None:
        self._recorder, self._now = recorder, now
        self._known: dict[tuple[str, str], list[tuple[str, str]]] = {}

    def collections(self) -> Mapping[str, Take]:
        """What to follow, and what takes it."""
        return {path: partial(self._take, path, read) for path, read in owners.QUEUES.items()}

    def _take(self, path: str, read: Callable[[Any], Sequence[owners.Quota]], event: Event[Any]) -> None:
        found = [] if event.kind == "DELETED" or event.item is None else read(event.item)
        there = [(each.name, each.kind) for each in found]
        for name, kind in self._known.pop((path, event.key), []):
            if (name, kind) not in there:
                self._recorder.queue(name, kind, None, self._now())
        if there:
            self._known[path, event.key] = there
        for each in found:
            figures = Figures(each.quota, each.used, each.waiting, each.admitted)
            self._recorder.queue(each.name, each.kind, figures, self._now())

    def cleared(self) -> None:
        """They are all gone."""
        for names in self._known.values():
            for name, kind in names:
                self._recorder.queue(name, kind, None, self._now())
        self._known.clear()

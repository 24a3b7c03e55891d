"""Keep a live history within bounds: forget what is older than a span, and begin with the state at that time."""

from array import array
from collections.abc import Iterable

from kumulus.extras.watch.history.document import EventKind, History, HistoryEvent, Status

# For each kind: the table that an event's number refers to, and the table that its first value refers to.
_TABLES = {
    EventKind.NODE: ("nodes", "conditions"),
    EventKind.POD: ("pods", ""),
    EventKind.JOB: ("jobs", "facts"),
    EventKind.QUEUE: ("queues", "figures"),
    EventKind.HAPPENED: ("texts", ""),
}


def since(history: History, begin: int) -> History:
    """A history that begins later, with the state at that time and only those table rows that are still referred to."""
    made = _Shorter(history, begin)
    standing: dict[tuple[int, int], HistoryEvent] = {}
    later = []
    for event in history:
        if event.at > begin:
            later.append(event)
        elif event.kind != EventKind.HAPPENED:
            standing[event.kind, event.what] = event
    made.take(each._replace(at=begin) for each in standing.values() if _stands(each))
    made.take(later)
    return made.found


def _stands(event: HistoryEvent) -> bool:
    return event.one < Status.SUCCEEDED if event.kind == EventKind.POD else event.one >= 0


class _Shorter:
    """Copies events, and the table rows that they refer to."""

    def __init__(self, history: History, begin: int) -> None:
        self.old = history
        self.found = History(dict(history.about), begin, history.end, events=array("q"))
        # Kinds of pods and nodes keep their numbers, because the recorder refers to them.
        self.found.fits = list(history.fits)
        self._numbers: dict[str, dict[int, int]] = {}

    def take(self, events: Iterable[HistoryEvent]) -> None:
        for event in events:
            what, one = _TABLES[EventKind(event.kind)]
            number, first, other = self._row(what, event.what), event.one, event.other
            if one and first >= 0:
                first = self._row(one, first)
            if event.kind == EventKind.POD and other >= 0:
                other = self._row("texts" if first == Status.WAITING else "nodes", other)
            self.found.events.extend((event.at, event.kind, number, first, other))

    def _row(self, table: str, number: int) -> int:
        known = self._numbers.setdefault(table, {})
        if number not in known:
            rows = getattr(self.found, table)
            row = getattr(self.old, table)[number]
            if table == "pods":
                row = [row[0], self._row("jobs", row[1]), self._row("requests", row[2])]
            elif table == "requests" and len(row) > 3:
                row = [*row[:3], self._row("rules", row[3])]
            known[number] = len(rows)
            rows.append(row)
        return known[number]

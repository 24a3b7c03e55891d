"""The format: tables of what there is, each row once, and events that name rows by their numbers.

Compact, since a run of 10,000 pods has 40,000 events: times are milliseconds, events five whole numbers each in one
flat list. ``docs/history.md`` describes it for other programs. ``assets/history.js`` has the same numbers.
"""

import gzip
import json
import zlib
from collections.abc import Iterator, MutableSequence
from dataclasses import dataclass, field
from enum import IntEnum
from pathlib import Path
from typing import Any, NamedTuple

from kumulus.host import files

FORMAT = "kumulus-history"
VERSION = 2
_SINCE_2 = ("rules", "fits")
_LARGEST = 512 * 2**20


class EventKind(IntEnum):
    """What an event is about, and what its two values are."""

    NODE = 0
    """A node: the number of its condition, -1 when it is gone; the number of its kind of nodes."""
    POD = 1
    """A pod: one of :class:`Status`; for a waiting pod the text of its reasons, for others the node, -1 for none."""
    JOB = 2
    """A job: the number of its facts, -1 when it is gone; 0."""
    QUEUE = 3
    """A queue: the number of its figures, -1 when it is gone; 0."""
    HAPPENED = 4
    """Something else, such as the beginning of a fault: the event's number is its text's; its :class:`Sort`; 0."""


class Status(IntEnum):
    """A pod's status."""

    WAITING = 1
    BOUND = 2
    RUNNING = 3
    PREEMPTED = 4
    """On its node until it is gone, to make room for a pod of higher priority."""
    EVICTED = 5
    """On its node until it is gone, for another reason, such as a taint."""
    SUCCEEDED = 6
    FAILED = 7
    GONE = 8


class Sort(IntEnum):
    """What sort of thing has happened."""

    OTHER = 0
    FAULT = 1
    RESIZE = 2
    SCHEDULER = 3


HOLDING = frozenset({Status.BOUND, Status.RUNNING, Status.PREEMPTED, Status.EVICTED})
"""The statuses in which a pod takes room on its node."""


class HistoryError(Exception):
    """A file is not a history; the message says which and why."""


class HistoryEvent(NamedTuple):
    """Something that happened.

    Attributes:
        at: milliseconds from the beginning.
        kind: one of :class:`EventKind`.
        what: the number of the node, pod, job or queue in its table; for anything else, the number of its text.
        one, other: see :class:`EventKind`.
    """

    at: int
    kind: int
    what: int
    one: int
    other: int


@dataclass
class History:
    """What happened.

    Attributes:
        about: what it describes: ``title``, ``scheduler``, ``stack``, ``run``, ``began`` (RFC 3339) and so on.
        begin, end: the first and last moment that it covers, in milliseconds.
        nodes: name, zone, group, product, block, rack.
        conditions: a node's state, the reason, and what pods can use: GPUs, thousandths of a core, bytes, pods.
        jobs: name, kind, and namespace or, for an experiment's job, its workload.
        facts: of a job: how many pods it wants, its queue, its priority, what its own objects say of it, and since when
            there is one that was there before, in milliseconds.
        queues: name, kind.
        figures: a queue's quota and use as texts by resource, number of waiting jobs, number of admitted jobs.
        requests: GPUs, thousandths of a core, bytes, and the number of the rule for choosing nodes, which histories of
            version 1 lack.
        rules: where a pod may go: alternatives, each with the number of a kind of pods, the names of the only nodes or
            null, and the names of excluded nodes; and, in words, what else the pod asks for.
        fits: pairs: the number of a kind of pods and that of a kind of nodes that may take them.
        pods: ``namespace/name``, the numbers of its job and of its requests.
        texts: reasons (several reasons of one pod on separate lines), and what happened.
        events: five numbers each; see :class:`HistoryEvent`.
    """

    about: dict[str, Any] = field(default_factory=dict)
    begin: int = 0
    end: int = 0
    nodes: list[list[Any]] = field(default_factory=list)
    conditions: list[list[Any]] = field(default_factory=list)
    jobs: list[list[Any]] = field(default_factory=list)
    facts: list[list[Any]] = field(default_factory=list)
    queues: list[list[Any]] = field(default_factory=list)
    figures: list[list[Any]] = field(default_factory=list)
    requests: list[list[Any]] = field(default_factory=list)
    rules: list[list[Any]] = field(default_factory=list)
    fits: list[list[int]] = field(default_factory=list)
    pods: list[list[Any]] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)
    events: MutableSequence[int] = field(default_factory=list)

    def __iter__(self) -> Iterator[HistoryEvent]:
        numbers = iter(self.events)
        for each in zip(*[numbers] * 5, strict=True):
            yield HistoryEvent(*each)

    def to_plain(self) -> dict[str, Any]:
        """JSON-able."""
        return {"format": FORMAT, "version": VERSION, **vars(self), "events": list(self.events)}


def history_from(plain: Any, where: str) -> History:
    """Read a history.

    Args:
        plain: as :meth:`History.to_plain` gives it.
        where: what it was read from, for the message.

    Raises:
        HistoryError: it is not a history.
    """
    if not isinstance(plain, dict) or plain.get("format") != FORMAT:
        raise HistoryError(f"{where} is no history of a run")
    version = plain.get("version")
    if version not in (1, VERSION):
        raise HistoryError(f"{where} has version {version}; this Kumulus reads versions 1 to {VERSION}")
    found = History()
    for name, empty in vars(found).items():
        value = plain.get(name, [] if version == 1 and name in _SINCE_2 else None)
        if type(value) is not type(empty):
            raise HistoryError(f"{where} is no history of a run: {name} is missing or malformed")
        setattr(found, name, value)
    _check(found, where)
    return found


def _check(found: History, where: str) -> None:
    if len(found.events) % 5 or not all(type(each) is int for each in found.events):
        raise HistoryError(f"{where} is no history of a run: its events are not five whole numbers each")
    sizes: dict[int, int] = {
        EventKind.NODE: len(found.nodes),
        EventKind.POD: len(found.pods),
        EventKind.JOB: len(found.jobs),
        EventKind.QUEUE: len(found.queues),
        EventKind.HAPPENED: len(found.texts),
    }
    latest = found.begin
    for event in found:
        if not 0 <= event.what < sizes.get(event.kind, 0):
            raise HistoryError(f"{where} is no history of a run: an event names what is not in its tables")
        if event.at < latest:
            raise HistoryError(f"{where} is no history of a run: its events are not in the order of time")
        latest = event.at


def save(history: History, file: Path) -> None:
    """Write a history, compressed."""
    text = json.dumps(history.to_plain(), separators=(",", ":"), ensure_ascii=False)
    # Without a time and a file name, the same history gives the same bytes.
    files.write(file, gzip.compress(text.encode(), mtime=0))


def load(file: Path) -> History:
    """Read a history.

    Raises:
        HistoryError: it cannot be read, or is not a history.
    """
    try:
        with gzip.open(file) as packed:
            raw = packed.read(_LARGEST + 1)
        if len(raw) > _LARGEST:
            raise HistoryError(f"{file} is larger than {_LARGEST >> 20} MiB when unpacked")
        return history_from(json.loads(raw), str(file))
    except OSError as error:
        raise HistoryError(f"{file} cannot be read: {error.strerror or error}") from None
    except (ValueError, EOFError, zlib.error) as error:
        raise HistoryError(f"{file} is no history of a run: {error}") from None

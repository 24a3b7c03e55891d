"""The result of converging a pool's nodes, what is not as wanted, and how both are described to users.

Thousands of nodes that differ stay readable: the first few are named, the others are counted.
"""

from __future__ import annotations

import re
import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from kumulus.kube import ApiError, Unreachable
from kumulus.kube.bulk import BulkOutcome, Interrupted
from kumulus.model.node_changes import FieldChange
from kumulus.model.pools import Pool
from kumulus.model.slices import slice_name
from kumulus.model.words import MOST_NAMES, counted, listed
from kumulus.nodes.pools.observe import PoolObservation
from kumulus.nodes.pools.slices import SliceObservation
from kumulus.nodes.reporter import Reporter

# The most differences of a node that are shown, and the most fields of all further nodes.
_SHOWN_DIFFERENCES, _SHOWN_FIELDS = 4, 6
# The plural of a kind in a path of the API.
_PLURAL = re.compile(r"/apis?/(?:[^/]+/)?v[0-9][^/]*/(?:namespaces/[^/]+/)?([^/]+)")
_KINDS = {
    "nodes": "node",
    "resourceslices": "resource slice",
    "pods": "pod",
    "configmaps": "ConfigMap",
    "leases": "lease",
}


@dataclass
class ConvergeResult:
    """What a convergence did.

    Attributes:
        created, changed, removed: how many nodes.
        pods: how many pods went with the removed nodes.
        slices: how many ResourceSlices of already existing nodes were published, changed or withdrawn.
        problems: one line per kind of failure; empty when the pool is as wanted.
        undone: how many nodes and slices are left to do.
        left: what is still not as wanted, as far as the answers to our requests show.
        certain: whether every request that was sent has been answered, so that ``left`` is what exists.
    """

    created: int = 0
    changed: int = 0
    removed: int = 0
    pods: int = 0
    slices: int = 0
    problems: list[str] = field(default_factory=list)
    undone: int = 0
    left: PoolObservation = field(default_factory=PoolObservation)
    certain: bool = True

    @property
    def complete(self) -> bool:
        """Whether the pool is as wanted."""
        return not self.problems and not self.undone

    def add(self, outcome: BulkOutcome[Any]) -> None:
        """Add what a bulk operation failed at and what it left undone."""
        # An interruption by a stop is not a problem to report.
        kinds = Counter(explain(error) for _, error in outcome.failed if not isinstance(error, Interrupted))
        self.problems += [f"{text} ({count} times)" if count > 1 else text for text, count in kinds.items()]
        self.undone += len(outcome.failed) + outcome.skipped
        self.certain &= not any(_unsure(error) for _, error in outcome.failed)

    def add_slices(self, outcome: BulkOutcome[Any]) -> None:
        """Likewise of an operation on ResourceSlices; those that are done are counted."""
        self.slices += len(outcome.done)
        self.add(outcome)

    def recounted(self, before: PoolObservation, after: PoolObservation) -> ConvergeResult:
        """The same with the counts of a second look, because requests without an answer may have taken effect."""
        return replace(
            self,
            created=len(set(before.missing) - set(after.missing)),
            changed=len(before.altered.keys() - after.altered.keys()),
            removed=len(set(before.extra) - set(after.extra)),
            undone=len(after.missing) + len(after.altered) + len(after.extra) + after.slices.count,
            left=after,
            certain=True,
        )

    def describe(self) -> str:
        """One line: what was done and what was not."""
        counts = {"created": self.created, "changed": self.changed, "removed": self.removed}
        done = [f"{count:,} {word}" for word, count in counts.items() if count]
        text = "nodes: " + (", ".join(done) if done else "none changed")
        text += f"; resource slices: {self.slices:,} changed" if self.slices else ""
        return text + (f"; {self.undone:,} left to do" if self.undone else "")


class ProgressMeter:
    """Progress as ``nodes 1,250/2,550 · 910/s``."""

    def __init__(self, report: Reporter) -> None:
        self._report = report
        self._started = time.monotonic()

    def show(self, what: str, done: int, total: int, done_here: int) -> None:
        """Report that `done` of a total are done, `done_here` of them by this operation, which determine the rate."""
        last = done == total
        if done_here % 20 and not last:
            return
        rate = done_here / max(0.001, time.monotonic() - self._started)
        self._report.status(f"{what} {done:,}/{total:,} · {rate:,.0f}/s", last=last)


def describe_drift(pool: Pool, seen: PoolObservation) -> dict[str, object]:
    """Return the drift as properties for the stack's state; empty when the pool is as wanted.

    Names are written as ``2: a-use1-3, a-use1-4``. Of altered nodes, the first few are named with their differences; of
    the others it says how many differ in which fields.
    """
    altered = {pool.node_name(ordinal): seen.altered[ordinal][1] for ordinal in sorted(seen.altered)}
    drift = {
        "missing": _names(map(pool.node_name, seen.missing)),
        "extra": _names(sorted(seen.extra)),
        "realNodes": _names(sorted(seen.foreign)),
        "othersNodes": _names(sorted(seen.others)),
        "altered": _altered(altered, "nodes"),
        "resourceSlices": _slices(pool, seen.slices),
    }
    return {kind: found for kind, found in drift.items() if found}


def _altered(found: Mapping[str, Sequence[FieldChange]], what: str) -> dict[str, str]:
    """The first few altered nodes or slices with their differences, and how many others differ in which fields."""
    altered: dict[str, str] = {}
    for name in list(found)[:MOST_NAMES]:
        differences = found[name]
        altered[name] = "; ".join(map(str, differences[:_SHOWN_DIFFERENCES]))
        if len(differences) > _SHOWN_DIFFERENCES:
            altered[name] += f"; and {len(differences) - _SHOWN_DIFFERENCES} more"
    if len(found) > MOST_NAMES:
        altered[f"and {len(found) - MOST_NAMES:,} more {what}"] = _fields(found.values())
    return altered


def _slices(pool: Pool, seen: SliceObservation) -> dict[str, object]:
    name = partial(slice_name, pool)
    altered = {name(part): seen.altered[part][1] for part in sorted(seen.altered)}
    drift = {
        "missing": _names(map(name, seen.missing)),
        "extra": _names(sorted(seen.extra)),
        "altered": _altered(altered, "slices"),
    }
    return {kind: found for kind, found in drift.items() if found}


def summary_of(drift: Mapping[str, object]) -> str:
    """One line of :func:`describe_drift`'s properties: ``missing 2: a-use1-3, a-use1-4; altered: a-use1-7 …``."""
    texts = ("missing", "extra", "realNodes", "othersNodes", "record")
    parts = [f"{key} {drift[key]}" for key in texts if key in drift]
    altered = drift.get("altered")
    if isinstance(altered, Mapping):
        parts.append("altered " + ", ".join(map(str, altered)))
    slices = drift.get("resourceSlices")
    if isinstance(slices, Mapping):
        parts.append(f"resource slices {summary_of(slices)}")
    return "; ".join(parts)


def _names(names: Iterable[str]) -> str:
    found = list(names)
    return f"{len(found):,}: {listed(found)}" if found else ""


def _fields(found: Iterable[Sequence[FieldChange]]) -> str:
    counts = Counter(difference.path for differences in found for difference in differences)
    most_first = sorted(counts.items(), key=lambda entry: (-entry[1], entry[0]))
    text = ", ".join(f"{path} on {count:,}" for path, count in most_first[:_SHOWN_FIELDS])
    more = len(counts) - _SHOWN_FIELDS
    return f"{text}, and {counted(more, 'more field')}" if more > 0 else text


def explain(error: Exception) -> str:
    """Say what an API error means for the user, with the remedy where there is one."""
    if isinstance(error, ApiError) and error.quota_exceeded:
        return (
            "etcd's storage quota is reached (mvcc: database space exceeded): raise kwok.etcdQuota in the stack file, "
            "or make the fleet smaller"
        )
    if isinstance(error, ApiError):
        # The name of a node would make every message a different one.
        found = _PLURAL.match(error.path)
        what = _KINDS.get(found[1], found[1]) if found else error.path
        return f"{error.verb} {what}: {error.status} {error.reason}: {error.message}"
    return str(error)


def _unsure(error: Exception) -> bool:
    """Whether a failed request may have taken effect; etcd, for one, carries out the write that crosses its quota."""
    return isinstance(error, Interrupted | Unreachable) or (isinstance(error, ApiError) and error.status >= 500)

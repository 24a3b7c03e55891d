"""The result of converging a pool's nodes, and how it is described to users."""

from __future__ import annotations

import re
import time
from dataclasses import dataclass, field, replace
from typing import Any

from kumulus.kube import ApiError, Unreachable
from kumulus.kube.bulk import Interrupted, Outcome
from kumulus.nodes.pools.observe import Observation
from kumulus.nodes.reporter import Reporter

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
class Result:
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
    left: Observation = field(default_factory=Observation)
    certain: bool = True

    @property
    def complete(self) -> bool:
        """Whether the pool is as wanted."""
        return not self.problems and not self.undone

    def add(self, outcome: Outcome[Any]) -> None:
        """Add what a bulk operation failed at and what it left undone."""
        kinds: dict[str, int] = {}
        for _, error in outcome.failed:
            # An interruption by a stop is not a problem to report.
            if not isinstance(error, Interrupted):
                text = explain(error)
                kinds[text] = kinds.get(text, 0) + 1
        self.problems += [f"{text} ({count} times)" if count > 1 else text for text, count in kinds.items()]
        self.undone += len(outcome.failed) + outcome.skipped
        self.certain &= not any(_unsure(error) for _, error in outcome.failed)

    def recounted(self, before: Observation, after: Observation) -> Result:
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
        done = [
            f"{count:,} {word}"
            for count, word in ((self.created, "created"), (self.changed, "changed"), (self.removed, "removed"))
            if count
        ]
        text = "nodes: " + (", ".join(done) if done else "none changed")
        text += f"; resource slices: {self.slices:,} changed" if self.slices else ""
        return text + (f"; {self.undone:,} left to do" if self.undone else "")


class Meter:
    """Progress as ``nodes 1,250/2,550 · 910/s``."""

    def __init__(self, report: Reporter) -> None:
        self._report = report
        self._started = time.monotonic()

    def show(self, what: str, done: int, total: int, counted: int) -> None:
        """Report the progress.

        Args:
            what: the kind of objects.
            done: how many of them exist now.
            total: how many there should be.
            counted: how many this operation has done, from which the rate follows.
        """
        last = done == total
        if counted % 20 and not last:
            return
        rate = counted / max(0.001, time.monotonic() - self._started)
        self._report.status(f"{what} {done:,}/{total:,} · {rate:,.0f}/s", last=last)


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
    """Whether an error leaves it unknown if the request took effect.

    A server error does not tell: etcd carries out the write that crosses its quota, and answers ErrNoSpace
    (its ``quotaApplierV3.Put``).
    """
    return isinstance(error, Interrupted | Unreachable) or (isinstance(error, ApiError) and error.status >= 500)

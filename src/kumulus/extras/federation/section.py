"""A stack file's `federation`: clusters that work as one, with a hub that dispatches its Jobs to workers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

from pydantic import Field

from kumulus.extras.federation.names import ALL_AT_ONCE, LOST_AFTER, NAMESPACE
from kumulus.model.checks import problem
from kumulus.model.durations import duration_problems, of, written
from kumulus.model.errors import Problem, Where, shown
from kumulus.model.fields import checked, short_label, whole
from kumulus.model.names import instead
from kumulus.model.pools import Pool
from kumulus.model.quantity import ZERO, Quantity
from kumulus.model.totals import totals
from kumulus.stackfile.section import Joined, StackSection

if TYPE_CHECKING:
    from kumulus.stackfile.load import LoadedCluster

_LONGEST_NAME = 40
_STEPS = "write dispatcher: incremental, or leave it out"
_LABEL = short_label(_LONGEST_NAME)


def _names_problems(where: Where, raw: object) -> list[Problem]:
    if not isinstance(raw, list | tuple) or not raw:
        return [problem(where, f"is {shown(raw) if raw else 'empty'}", "write a list of names, or leave it out")]
    names = [each for each in raw if isinstance(each, str) and each]
    if len(names) != len(raw):
        return [problem(where, f"is {shown(raw)}", "write a list of names")]
    twice = [name for name in dict.fromkeys(names) if names.count(name) > 1]
    return [problem(where, f"has {shown(name)} twice", "write each name once") for name in twice]


_Names = Annotated[tuple[str, ...], checked(_names_problems, tuple, form="texts")]


class FederationSpec(StackSection):
    """Clusters of this stack that work as one: Jobs queue on the hub and run on one of its workers."""

    about: ClassVar[str] = "Clusters of kumulus:clusters that work as one (docs/many-clusters.md)."

    kind: Literal["multikueue"] = Field(examples=["multikueue"])
    """What joins the clusters: Kueue's MultiKueue."""
    hub: str | None = Field(default=None, examples=["hub"])
    """The cluster on which Jobs are queued; by default the stack's `hub`."""
    workers: _Names | None = Field(default=None, examples=["[worker]"])
    """The clusters that run Jobs; a name with a `count` stands for all of its clusters. By default all but the hub."""
    queue: Annotated[str, _LABEL] = Field(default="default", examples=["research"])
    """The name of the LocalQueue, and of the ClusterQueue behind it, on each cluster."""
    namespaces: _Names = Field(default=("default",), examples=["[default]"])
    """The namespaces that have the LocalQueue, and in which the hub may run Jobs on a worker."""
    workerLostTimeout: Annotated[str, checked(duration_problems, lambda raw: written(of(raw)), form="duration")] = (
        Field(default=LOST_AFTER, examples=["1m"])
    )
    """How long a worker may be silent before its Jobs are queued again for others to run."""
    dispatcher: Literal["allAtOnce", "incremental"] = Field(default=ALL_AT_ONCE, examples=["incremental"])
    """Which workers a Job is offered to: all at once, and the first with room takes it; or some, in the order of
    `workers`, and more after five minutes."""
    stepSize: Annotated[int, whole(1, 1000)] | None = Field(default=None, examples=["1"])
    """How many workers `incremental` offers a Job to at a time; by default Kueue's own 3."""
    kueueNamespace: Annotated[str, _LABEL] = Field(default=NAMESPACE, examples=["kueue-system"])
    """Kueue's namespace in clusters of the runtimes kind and existing."""

    def joined(self, hub: str, entries: Mapping[str, Sequence[str]]) -> tuple[Federated, list[Problem]]:
        """See :meth:`StackSection.joined`."""
        every = [name for names in entries.values() for name in names]
        hub = self.hub or hub
        problems = [
            *_hub_problems(self, hub, every),
            *_worker_problems(self, hub, entries),
        ]
        if self.stepSize is not None and self.dispatcher == ALL_AT_ONCE:
            problems.append(problem(("stepSize",), "has no effect where Jobs are offered to all at once", _STEPS))
        named = every if self.workers is None else [n for each in self.workers for n in entries.get(each, [each])]
        return Federated(hub, tuple(name for name in dict.fromkeys(named) if name != hub), self), problems


@dataclass(frozen=True)
class Federated(Joined):
    """A federation whose clusters exist in the stack file."""

    hub: str
    """The hub's name in the file."""
    workers: tuple[str, ...]
    """The workers' names, in the order of the file."""
    asked: FederationSpec

    def runtime_options(self, name: str, cluster: str) -> dict[str, Any]:
        """See :meth:`Joined.runtime_options`: the options of Kueue for the hub and its workers."""
        if name == self.hub:
            asked = self.asked
            found: dict[str, Any] = {"origin": cluster, "workerLostTimeout": asked.workerLostTimeout}
            if asked.dispatcher != ALL_AT_ONCE:
                found["dispatcher"] = asked.dispatcher
                if asked.stepSize is not None:
                    found["stepSize"] = asked.stepSize
            return {"kueue": found}
        return {"kueue": {"origin": cluster}} if name in self.workers else {}

    def declare(
        self, resource_name: str, clusters: Mapping[str, Any], loaded: Mapping[str, LoadedCluster]
    ) -> Mapping[str, Any]:
        """See :meth:`Joined.declare`."""
        # Imported here: only a program of Pulumi's declares it.
        from kumulus.extras.federation.joined import Federation as Component

        Component(resource_name, self, clusters, loaded)
        return {"hub": self.hub, "workers": list(self.workers)}


def quota(pools: Sequence[Pool]) -> dict[str, Quantity]:
    """The total quota of a cluster's Jobs: all resources of its nodes except the number of pods."""
    return {name: amount for name, amount in totals(pools).resources.items() if name != "pods"}


def together(quotas: Sequence[Mapping[str, Quantity]]) -> dict[str, Quantity]:
    """The sum of several quotas."""
    names = dict.fromkeys(name for each in quotas for name in each)
    return {name: sum((each.get(name, ZERO) for each in quotas), ZERO) for name in names}


def _hub_problems(asked: FederationSpec, hub: str, every: Sequence[str]) -> Iterator[Problem]:
    if not hub:
        yield problem(("hub",), "is missing, and the stack names no hub", "write the name of one of the clusters")
    elif asked.hub and hub not in every:
        yield problem(("hub",), f"{shown(hub)} is none of the clusters", instead(hub, every))
    elif not [name for name in every if name != hub]:
        yield problem((), "has no worker: the hub is the only cluster", "write more clusters")


def _worker_problems(asked: FederationSpec, hub: str, entries: Mapping[str, Sequence[str]]) -> Iterator[Problem]:
    every = [name for names in entries.values() for name in names]
    for index, name in enumerate(asked.workers or ()):
        where = ("workers", index)
        if name == hub:
            yield problem(where, f"{shown(name)} is the hub", "leave it out: a hub runs no Jobs of its queue")
        elif name not in entries and name not in every:
            yield problem(
                where, f"{shown(name)} is none of the clusters", instead(name, dict.fromkeys([*entries, *every]))
            )

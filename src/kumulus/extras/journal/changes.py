"""What a run has changed, or was about to change: plain data, the content of a journal's file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from pydantic import TypeAdapter

EXPERIMENT = "experiment"


@dataclass(frozen=True)
class Stopped:
    """A program of the cluster that was stopped, and how to start it.

    Attributes:
        directory: the cluster's.
        name: the component's.
        command: its command line.
        environment: what it needs of its environment, without anything that could be secret.
        working_directory: where it was started.
    """

    directory: str
    name: str
    command: tuple[str, ...]
    environment: Mapping[str, str]
    working_directory: str


@dataclass(frozen=True)
class SecondScheduler:
    """A scheduler that was started beside the cluster's own.

    Attributes:
        name: in the catalog of schedulers.
        directory: its own; programs that run from there belong to it.
    """

    name: str
    directory: str


@dataclass(frozen=True)
class Exchanged:
    """What an autoscaler had before a run gave it something else.

    Attributes:
        pools: its NodePools, each as JSON; empty if the run leaves them.
        made: paths of NodePools that the run has created in addition.
        delay: the merge patch, as JSON, that restores its node class's delay; empty if the run leaves it.
    """

    pools: tuple[str, ...]
    made: tuple[str, ...]
    delay: str = ""


@dataclass(frozen=True)
class Rerouted:
    """A worker that the hub of a federation reaches through a proxy of the run.

    Attributes:
        secret: path of the Secret on the hub with the worker's kubeconfig.
        server: the worker's own address.
        proxy: the address that the run has put in its place.
    """

    secret: str
    server: str
    proxy: str


@dataclass(frozen=True)
class RaisedQuota:
    """A ResourceQuota whose amounts were raised.

    Attributes:
        path: the quota's.
        former: its own amounts, by resource, as JSON.
        raised: those that it was given instead, as JSON. If it has others by now, somebody else has set them.
    """

    path: str
    former: str
    raised: str


@dataclass(frozen=True)
class Restoring:
    """A snapshot that is being restored.

    Attributes:
        kubeconfig: beside the cluster's files.
        snapshot: the file.
        of_another: whether it is of another cluster, and what users had there comes into this one.
        objects: paths of those that the restore may touch; empty for all, where a cluster's keys are restored.
    """

    kubeconfig: str
    snapshot: str
    of_another: bool = False
    objects: tuple[str, ...] = ()


@dataclass(frozen=True)
class Changes:
    """What a run of a command has changed in a cluster.

    Attributes:
        run: the run's id.
        name: of its experiment, workload, capture or snapshot.
        cluster: UID of the cluster's kube-system namespace.
        process: what runs it, in the form of :mod:`kumulus.host.lifetime`; empty when it has ended and left something.
        namespaces: those it has created.
        outside: paths of objects outside of them, in the order of their creation.
        faults: names of the faults it has begun.
        nodes: paths of the nodes it has added.
        stopped: the cluster's own scheduler, when it was stopped.
        scheduler: the one that was started beside the cluster's own.
        autoscaler: what it had, if the run has given it something else.
        killed: kubeconfigs of workers whose control planes it has killed.
        rerouted: the workers that this cluster, a hub, reaches through a proxy of the run.
        pods: paths of the collections in which it has pods that carry its mark.
        quotas: those it has raised.
        restoring: the snapshot that it is restoring.
        commands: the user's own commands that it has started.
        command: which command it is a run of.
        finish: the command line that finishes what is neither done nor to be undone; None if all of it is undone.
    """

    run: str
    name: str
    cluster: str
    process: str
    namespaces: tuple[str, ...] = ()
    outside: tuple[str, ...] = ()
    faults: tuple[str, ...] = ()
    nodes: tuple[str, ...] = ()
    stopped: Stopped | None = None
    scheduler: SecondScheduler | None = None
    autoscaler: Exchanged | None = None
    killed: tuple[str, ...] = ()
    rerouted: tuple[Rerouted, ...] = ()
    pods: tuple[str, ...] = ()
    quotas: tuple[RaisedQuota, ...] = ()
    restoring: Restoring | None = None
    commands: tuple[str, ...] = ()
    command: str = EXPERIMENT
    finish: str | None = None

    @property
    def what(self) -> str:
        """The run's command and name, as in `experiment training`."""
        return f"{self.command} {self.name}"

    @property
    def empty(self) -> bool:
        """Whether there is nothing to put back or to finish."""
        kept = Changes(self.run, self.name, self.cluster, self.process, command=self.command)
        return self == kept

    def to_plain(self) -> dict[str, Any]:
        """The plain form, JSON-able."""
        return asdict(self)


def changes_from(text: str) -> Changes:
    """Changes from the text of a journal's file.

    Raises:
        ValueError: it is not one.
    """
    return _FORM.validate_json(text)


_FORM = TypeAdapter(Changes)

"""What a run has changed, or was about to change: plain data, the content of a journal's file."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from pydantic import TypeAdapter

EXPERIMENT = "experiment"


@dataclass(frozen=True)
class StoppedProgram:
    """A program of the cluster that was stopped, and how to start it."""

    directory: str
    name: str
    command: tuple[str, ...]
    environment: Mapping[str, str]
    """What it needs of its environment, without anything that could be secret."""
    working_directory: str


@dataclass(frozen=True)
class SecondScheduler:
    """A scheduler that was started in addition to the cluster's own."""

    name: str
    """In the catalog of schedulers."""
    directory: str
    """Its own; programs that run from there belong to it."""


@dataclass(frozen=True)
class Exchanged:
    """What an autoscaler had before a run gave it something else."""

    pools: tuple[str, ...]
    """Its NodePools, each as JSON; empty if the run leaves them."""
    made: tuple[str, ...]
    """Paths of NodePools that the run has created in addition."""
    delay: str = ""
    """The merge patch, as JSON, that restores its node class's delay; empty if the run leaves it."""


@dataclass(frozen=True)
class Rerouted:
    """A worker that the hub of a federation reaches through a proxy of the run."""

    secret: str
    """Path of the Secret on the hub with the worker's kubeconfig."""
    server: str
    proxy: str
    """The address that the run has put in its place."""


@dataclass(frozen=True)
class RaisedQuota:
    """A ResourceQuota whose amounts were raised."""

    path: str
    former: str
    """Its own amounts, by resource, as JSON."""
    raised: str
    """Those that it was given instead, as JSON. If it has others by now, somebody else has set them."""


@dataclass(frozen=True)
class JournaledRestore:
    """A snapshot that is being restored."""

    kubeconfig: str
    """Next to the cluster's files."""
    snapshot: str
    """The file."""
    of_another: bool = False
    """Whether it is of another cluster, and what users had there comes into this one."""
    objects: tuple[str, ...] = ()
    """Paths of those that the restore may touch; empty for all, where a cluster's keys are restored."""


@dataclass(frozen=True)
class JournaledChanges:
    """What a run of a command has changed in a cluster."""

    run: str
    name: str
    """Of its experiment, workload, capture or snapshot."""
    cluster: str
    """UID of the cluster's kube-system namespace."""
    process: str
    """What runs it, in the form of :mod:`kumulus.host.lifetime`; empty when it has ended and left something."""
    namespaces: tuple[str, ...] = ()
    outside: tuple[str, ...] = ()
    """Paths of objects outside of them, in the order of their creation."""
    faults: tuple[str, ...] = ()
    """Names of the faults it has begun."""
    nodes: tuple[str, ...] = ()
    """Paths of the nodes it has added."""
    stopped: StoppedProgram | None = None
    """The cluster's own scheduler, when it was stopped."""
    scheduler: SecondScheduler | None = None
    """The one that was started in addition to the cluster's own."""
    autoscaler: Exchanged | None = None
    """What it had, if the run has given it something else."""
    killed: tuple[str, ...] = ()
    """Kubeconfigs of workers whose control planes it has killed."""
    rerouted: tuple[Rerouted, ...] = ()
    """The workers that this cluster, a hub, reaches through a proxy of the run."""
    pods: tuple[str, ...] = ()
    """Paths of the collections in which it has pods that carry its mark."""
    quotas: tuple[RaisedQuota, ...] = ()
    restoring: JournaledRestore | None = None
    commands: tuple[str, ...] = ()
    command: str = EXPERIMENT
    finish: str | None = None
    """The command line that finishes what is neither done nor to be undone; None if all of it is undone."""

    @property
    def what(self) -> str:
        """The run's command and name, as in `experiment training`."""
        return f"{self.command} {self.name}"

    @property
    def empty(self) -> bool:
        """Whether there is nothing to put back or to finish."""
        kept = JournaledChanges(self.run, self.name, self.cluster, self.process, command=self.command)
        return self == kept

    def to_plain(self) -> dict[str, Any]:
        """The plain form, JSON-able."""
        return asdict(self)


def changes_from(text: str) -> JournaledChanges:
    """Changes from the text of a journal's file.

    Raises:
        ValueError: it is not one.
    """
    return _FORM.validate_json(text)


_FORM = TypeAdapter(JournaledChanges)

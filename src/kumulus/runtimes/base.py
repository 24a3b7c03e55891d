"""The small interface behind which a control plane is had; runtimes never know of each other."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from kumulus.cluster.reporter import Reporter
from kumulus.runtimes.place import Place

if TYPE_CHECKING:
    from kumulus.kube.config import Connection

Health = Literal["running", "degraded", "stopped", "incomplete"]

MISSING = "missing"
"""The state of a component that cannot be brought back: only a new cluster has it again."""


@dataclass(frozen=True)
class Wanted:
    """The control plane a stack asks for.

    Attributes:
        name: the cluster's name.
        owner: who asks: the Pulumi URN and the program's directory. Nobody else's cluster is touched.
        home: directory under which runtimes keep their clusters.
        kubernetes_version: such as ``v1.35.4``; "" where the runtime has its own.
        options: the runtime's own options, as in the stack file's section of that name.
        nodes: how many emulated nodes a new one is made for; None where that is not known.
    """

    name: str
    owner: str
    home: str
    kubernetes_version: str
    options: dict[str, Any] = field(default_factory=dict)
    nodes: int | None = None


@dataclass(frozen=True)
class Observed:
    """A control plane as it was found.

    Attributes:
        identity: UID of the ``kube-system`` namespace, or "" when it could not be asked.
        kubeconfig: path of the kubeconfig file.
        server: the API server's address.
        directory: where the runtime keeps the cluster's files, or "".
        components: each component's state, ``running`` or ``stopped`` (or what else it says), or :data:`MISSING`.
        configuration: fingerprint of the settings that can be changed in place.
        endpoints: where further services answer, by their names: ``prometheus``.
    """

    identity: str
    kubeconfig: str
    server: str
    directory: str
    components: dict[str, str]
    configuration: str = ""
    endpoints: dict[str, str] = field(default_factory=dict)

    @property
    def health(self) -> Health:
        """The control plane as a whole."""
        states = set(self.components.values())
        if states <= {"running"}:
            return "running"
        if MISSING in states:
            return "incomplete"
        return "degraded" if "running" in states else "stopped"


@dataclass(frozen=True)
class Recorded:
    """A control plane as the stack's state has it.

    Attributes:
        name: the cluster's name.
        owner: who made it, as :attr:`Wanted.owner`.
        directory: where the runtime keeps its files.
        kubeconfig: path of the kubeconfig file.
        identity: UID of the ``kube-system`` namespace.
        options: the runtime's own options it was made with.
    """

    name: str
    owner: str
    directory: str
    kubeconfig: str
    identity: str
    options: dict[str, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, wanted: Wanted, seen: Observed) -> Recorded:
        """What would be recorded of a control plane that was asked for and found."""
        return cls(wanted.name, wanted.owner, seen.directory, seen.kubeconfig, seen.identity, wanted.options)


@dataclass(frozen=True)
class Foreseen:
    """A cluster that is there before the stack is, as a first preview sees it.

    Attributes:
        identity: UID of the ``kube-system`` namespace.
        server: the API server's address.
        connection: how it is reached for as long as the stack has no kubeconfig of its own.
    """

    identity: str
    server: str
    connection: Connection


class Runtime(ABC):
    """One way to get a control plane: what is abstract here all have, the rest only some."""

    name: ClassVar[str]
    replaced_by: ClassVar[frozenset[str]]
    """Options whose change needs a new cluster; the others are applied in place."""
    on_one_machine: ClassVar[bool] = True
    """Whether it consists of what only the machine has that it was made on."""

    @abstractmethod
    def place(self, directory: str) -> Place:
        """The files in a directory of a cluster's, as this runtime lays them out."""

    @abstractmethod
    def problems(self, options: dict[str, Any]) -> dict[str, str]:
        """Return what is wrong with the options: property path below the section → what to write instead."""

    def default_version(self) -> str | None:
        """The Kubernetes version used when the stack names none; None where that is the runtime's own affair."""
        return None

    def version_problem(self, version: str) -> str | None:
        """Return why this runtime cannot run that Kubernetes version, with the remedy, or None."""
        return None

    def takes_version(self, old: str, new: str) -> bool:
        """Whether a cluster of one Kubernetes version becomes one of another in place, with all that is in it."""
        return False

    @abstractmethod
    def kubeconfig_path(self, wanted: Wanted) -> str:
        """Where the kubeconfig will be: known before the cluster exists, so that previews know it."""

    def configuration(self, wanted: Wanted) -> str:
        """Fingerprint of the in-place settings wanted, to compare with :attr:`Observed.configuration`."""
        return ""

    def consequences(self, old: dict[str, Any], new: dict[str, Any]) -> list[str]:
        """What a change of the options from the old ones means, a line for each part that needs words."""
        return []

    async def examine(self, wanted: Wanted, identity: str | None, report: Reporter) -> Foreseen | None:
        """Say at each preview and update, before anything is changed, what the cluster itself has to do with it.

        Args:
            wanted: the control plane.
            identity: of the one that was recorded; None before there is one.
            report: takes what is to be said.

        Returns:
            The cluster, where it is there before anything is made.

        Raises:
            ProviderError: the stack must not use it.
        """
        return None

    @abstractmethod
    async def create(self, wanted: Wanted, report: Reporter, stop: asyncio.Event) -> Observed:
        """Make the control plane and wait until it answers.

        Raises:
            ProviderError: it could not be made; nothing of it is left behind.
        """

    @abstractmethod
    async def read(self, recorded: Recorded, report: Reporter) -> Observed | None:
        """Look at it; None when it is gone or another cluster stands in its place."""

    def removed(self, directory: str) -> bool:
        """Whether the cluster's removal was begun, or done, by a process that could not record it.

        Asked by every preview and update, also without ``--refresh``: quick, and without the network.
        """
        return False

    @abstractmethod
    async def repair(self, wanted: Wanted, identity: str, report: Reporter) -> Observed:
        """Bring dead components back and apply the in-place settings.

        Raises:
            ProviderError: a component does not start; the message has its log's last lines.
        """

    @abstractmethod
    async def delete(self, recorded: Recorded, report: Reporter) -> None:
        """Remove every process and file of it; finding nothing is success."""

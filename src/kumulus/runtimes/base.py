"""The small interface of every control plane's runtime; runtimes never know of each other."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from kumulus.nodes.reporter import Reporter
from kumulus.runtimes.place import Place

if TYPE_CHECKING:
    from kumulus.kube.config import Connection

Health = Literal["running", "degraded", "stopped", "incomplete"]

MISSING = "missing"
"""The state of a component that cannot be restored: only a new cluster has it again."""


@dataclass(frozen=True)
class WantedControlPlane:
    """The control plane a stack asks for."""

    name: str
    owner: str
    """The stack, as :func:`kumulus.runtimes.place.owner` writes it. No other owner's cluster is touched."""
    home: str
    """Directory under which runtimes keep their clusters."""
    kubernetes_version: str
    """Such as ``v1.35.4``; "" where the runtime has its own."""
    options: dict[str, Any] = field(default_factory=dict)
    """The runtime's own options, as in the stack file's section of that name."""
    nodes: int | None = None
    """The number of emulated nodes that a cluster is made for; None where it is not known."""


@dataclass(frozen=True)
class Observed:
    """A control plane as it was found."""

    identity: str
    """UID of the ``kube-system`` namespace, or "" when the API server could not be asked."""
    kubeconfig: str
    server: str
    directory: str
    """Where the runtime keeps the cluster's files, or ""."""
    components: dict[str, str]
    """Each component's state: ``running``, ``stopped``, :data:`MISSING`, or another text."""
    configuration: str = ""
    """Fingerprint of the settings that can be changed in place."""
    endpoints: dict[str, str] = field(default_factory=dict)
    """The addresses of further services, by name: ``prometheus``."""

    @property
    def health(self) -> Health:
        """The health of the control plane as a whole."""
        states = set(self.components.values())
        if states <= {"running"}:
            return "running"
        if MISSING in states:
            return "incomplete"
        return "degraded" if "running" in states else "stopped"


@dataclass(frozen=True)
class RecordedControlPlane:
    """A control plane as recorded in the stack's state."""

    name: str
    owner: str
    directory: str
    kubeconfig: str
    identity: str
    options: dict[str, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, wanted: WantedControlPlane, seen: Observed) -> RecordedControlPlane:
        """The record of a control plane that was asked for and found."""
        return cls(wanted.name, wanted.owner, seen.directory, seen.kubeconfig, seen.identity, wanted.options)


@dataclass(frozen=True)
class Foreseen:
    """A cluster that exists before the stack does, as a first preview sees it."""

    identity: str
    server: str
    connection: Connection
    """How to reach it while the stack has no kubeconfig of its own."""


class Runtime(ABC):
    """One way to get a control plane. A runtime has to have the abstract methods, and may override the others.

    Its methods raise ProviderError with what the user can do.
    """

    name: ClassVar[str]
    replaced_by: ClassVar[frozenset[str]]
    """Options whose change needs a new cluster; the others are applied in place."""
    place_type: ClassVar[type[Place]] = Place
    """How it lays out a cluster's files."""
    on_one_machine: ClassVar[bool] = True
    """Whether the cluster exists only on the machine on which it was made."""

    def place(self, directory: str) -> Place:
        """The files in a cluster's directory, as this runtime lays them out."""
        return self.place_type(Path(directory))

    @abstractmethod
    def problems(self, options: dict[str, Any]) -> dict[str, str]:
        """Return what is wrong with the options: property path below the section → what to write instead."""

    def default_version(self) -> str | None:
        """The Kubernetes version used when the stack names none; None where the runtime itself decides."""
        return None

    def version_problem(self, version: str) -> str | None:
        """Return why this runtime cannot run that Kubernetes version, with the remedy, or None."""
        return None

    def takes_version(self, old: str, new: str) -> bool:
        """Whether a cluster can change from one Kubernetes version to another in place, and keep its contents."""
        return False

    def kubeconfig_path(self, wanted: WantedControlPlane) -> str:
        """Where the kubeconfig will be; known before the cluster exists, so that previews can show it."""
        return str(self.place_type.of(wanted.home, wanted.name).kubeconfig)

    def configuration(self, wanted: WantedControlPlane) -> str:
        """Fingerprint of the in-place settings wanted, to compare with :attr:`Observed.configuration`."""
        return ""

    def consequences(self, old: dict[str, Any], new: dict[str, Any]) -> list[str]:
        """The consequences of a change of the options, a line for each that needs an explanation."""
        return []

    async def examine(self, wanted: WantedControlPlane, identity: str | None, report: Reporter) -> Foreseen | None:
        """Check the cluster at each preview and update, before anything is changed, and report on it.

        The identity is that of the recorded control plane; None before there is one. Returns the cluster if it exists
        before anything is made.
        """
        return None

    async def examine_update(self, wanted: WantedControlPlane, report: Reporter) -> None:
        """Check at each preview and update, before anything is changed, what is to be applied to a cluster in place."""
        return

    @abstractmethod
    async def create(self, wanted: WantedControlPlane, report: Reporter, stop: asyncio.Event) -> Observed:
        """Make the control plane and wait until it answers; after a ProviderError, nothing is left behind."""

    @abstractmethod
    async def read(self, recorded: RecordedControlPlane, report: Reporter) -> Observed | None:
        """Look at the control plane; None when it is gone or another cluster has taken its place."""

    def removed(self, directory: str) -> bool:
        """Whether the cluster's removal was begun, or done, by a process that could not record it.

        Every preview and update calls this, even without ``--refresh``, so it is quick and does not use the network.
        """
        return self.place(directory).removed()

    @abstractmethod
    async def repair(self, wanted: WantedControlPlane, identity: str, report: Reporter) -> Observed:
        """Restart dead components and apply the in-place settings."""

    @abstractmethod
    async def delete(self, recorded: RecordedControlPlane, report: Reporter) -> None:
        """Remove all its processes and files; finding none is success."""

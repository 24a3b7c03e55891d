"""The plan of a start, as data: programs to run, files for them, objects in the cluster."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kumulus.kube import Client

Setting = str | int | float | bool
Hook = Callable[["Client"], Awaitable[None]]

CLIENT_QPS = 5000
CLIENT_BURST = 10000
"""KWOK's values for the cluster's own scheduler without limits: the same for all, so that comparisons are fair."""


@dataclass(frozen=True)
class Switches:
    """Settings that only some schedulers have."""

    decisions: bool = False
    """Whether to record how it decides, in a file of that name in its directory, of a kube-scheduler."""
    gates: Mapping[str, bool] = field(default_factory=dict)
    """Feature gates to turn on or off, of a kube-scheduler."""
    places: Sequence[Mapping[str, Any]] | None = None
    """Of one with :attr:`Scheduler.places`: what that gives, if gangs have to be in one place each; None if none has
    to."""


PLAIN = Switches()


@dataclass(frozen=True)
class LaunchRequest:
    """A request to start a scheduler."""

    name: str
    """The scheduler's, in the registry."""
    kubeconfig: Path
    """An absolute path."""
    directory: Path
    """An absolute path, the scheduler's own."""
    config: Path | None
    """The user's configuration, if any."""
    binary: Path | None
    """The user's program in place of the one that schedules, if any."""
    port: Callable[[], int]
    """Gives a free port of 127.0.0.1 each time it is called."""
    switches: Switches = PLAIN
    """Settings that only some have."""
    kubernetes: str = ""
    """The version of the cluster, such as ``v1.35.4``; empty if that does not matter."""


@dataclass(frozen=True)
class SchedulerProgram:
    """One process."""

    name: str
    """The file name it runs as."""
    binary: Path
    arguments: Sequence[str]
    environment: Mapping[str, str]
    """Variables besides the inherited ones."""
    ready: str
    """An address that answers with 200 once it works; https is not verified."""
    through: Sequence[str] = ()
    """A command that its output is piped through on its way to the log; empty for none."""
    ready_too: Sequence[str] = ()
    """Addresses of processes started by that command, which answer in the same way."""
    ready_says: str = ""
    """A text that the answer contains once it works; empty for any answer."""


@dataclass(frozen=True)
class LaunchPlan:
    """A whole start."""

    programs: Sequence[SchedulerProgram]
    """The one that schedules first."""
    version: str
    """Of that one; empty when it is the user's own."""
    scheduler_names: tuple[str, ...]
    """The `spec.schedulerName` values of the pods that it places."""
    settings: Mapping[str, Setting]
    """What must be equal for a fair comparison with another run."""
    files: Mapping[str, str] = field(default_factory=dict)
    """Contents by name, written into the directory."""
    objects: Sequence[dict[str, Any]] = ()
    """Manifests to create, in this order."""
    awaited: Hook | None = None
    """Does what a program waits for while it starts."""
    working: Hook | None = None
    """Returns once the whole of it works, after the programs report that they are ready."""

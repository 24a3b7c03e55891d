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
    """Settings that only kube-scheduler has.

    Attributes:
        decisions: whether to record how it decides, in a file of that name in its directory.
        gates: feature gates to turn on or off.
    """

    decisions: bool = False
    gates: Mapping[str, bool] = field(default_factory=dict)


PLAIN = Switches()


@dataclass(frozen=True)
class Request:
    """A request to start a scheduler.

    Attributes:
        name: the scheduler's, in the registry.
        kubeconfig: absolute path.
        directory: absolute path, the scheduler's own.
        config: the user's configuration, if any.
        binary: the user's program in place of the one that schedules, if any.
        port: gives a free port of 127.0.0.1 each time it is called.
        switches: settings that only kube-scheduler has.
        kubernetes: the version of the cluster, such as ``v1.35.4``; empty if that does not matter.
    """

    name: str
    kubeconfig: Path
    directory: Path
    config: Path | None
    binary: Path | None
    port: Callable[[], int]
    switches: Switches = PLAIN
    kubernetes: str = ""


@dataclass(frozen=True)
class Program:
    """One process.

    Attributes:
        name: the file name it runs as.
        binary: the executable.
        arguments: its command line.
        environment: variables besides the inherited ones.
        ready: an address that answers with 200 once it works; https is not verified.
        ready_says: a text that the answer contains once it works; empty for any answer.
        through: a command that its output is piped through on its way to the log; empty for none.
        ready_too: addresses of processes started by that command, which answer in the same way.
    """

    name: str
    binary: Path
    arguments: Sequence[str]
    environment: Mapping[str, str]
    ready: str
    through: Sequence[str] = ()
    ready_too: Sequence[str] = ()
    ready_says: str = ""


@dataclass(frozen=True)
class Plan:
    """A whole start.

    Attributes:
        programs: the one that schedules first.
        version: of that one; empty when it is the user's own.
        scheduler_names: the `spec.schedulerName` values of the pods that it places.
        settings: what must be equal for a fair comparison with another run.
        files: contents by name, written into the directory.
        objects: manifests to create, in this order.
        awaited: does what a program waits for while it starts.
        working: returns once the whole of it works, after the programs report that they are ready.
    """

    programs: Sequence[Program]
    version: str
    scheduler_names: tuple[str, ...]
    settings: Mapping[str, Setting]
    files: Mapping[str, str] = field(default_factory=dict)
    objects: Sequence[dict[str, Any]] = ()
    awaited: Hook | None = None
    working: Hook | None = None

"""What there is to say of an autoscaler: :class:`Autoscaler`, one for each folder of this room."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kumulus.kube import Client

Manifest = dict[str, Any]
Asked = Mapping[str, Any]
"""What a stack asks of its autoscaler, as the option `autoscaler` of its cluster has it."""


@dataclass(frozen=True)
class Place:
    """Where an autoscaler's processes run.

    Attributes:
        folder: its own, with the files that it reads.
        kubeconfig: by which it reaches the API server, as its own user.
        ports: those that its programs listen on, on 127.0.0.1: `health` of the first, `program/http` of a further one.
        administrator: the kubeconfig of the cluster's administrator.
        pki: the directory of the cluster's certificates.
    """

    folder: Path
    kubeconfig: Path
    ports: Mapping[str, int]
    administrator: Path = Path("/nowhere")
    pki: Path = Path("/nowhere")


def _nothing(asked: Asked, place: Place) -> list[str]:
    return []


def _without(asked: Asked, place: Place) -> dict[str, str]:
    return {}


@dataclass(frozen=True)
class Program:
    """One of an autoscaler's processes.

    Attributes:
        name: of the process, and of its log.
        executable: what is run.
        ports: what the ports it listens on are called.
        arguments: its command line.
        environment: its variables.
        after: those of the autoscaler's processes that are started before it.
    """

    name: str
    executable: Callable[[Asked], Path]
    ports: tuple[str, ...]
    arguments: Callable[[Asked, Place], list[str]] = _nothing
    environment: Callable[[Asked, Place], Mapping[str, str]] = _without
    after: tuple[str, ...] = ()


@dataclass(frozen=True)
class Autoscaler:
    """One autoscaler that can run beside a control plane.

    Attributes:
        name: as a stack file has it, and of its first process.
        about: what it is, for docs/autoscalers.md.
        tool: its program in pins.toml, with which the definitions of its kinds are kept; empty for the user's own.
        user: whom it is for the API server; the roles among its objects are bound to that.
        programs: its processes, itself the first.
        files: what they read, by name, in its folder.
        objects: what it needs in the cluster, in the order in which to make it.
        stages: what KWOK is to do to its nodes besides what it does to all.
        instances: the collections of its kinds whose objects have finalizers that it alone takes away.
        nodes: selects the nodes that it has made, which go with it; empty where node groups have them.
        deployment: all that it needs where it runs in the cluster, itself as a Deployment, in the order in which to
            make it; None for one that runs beside the cluster only.
        forget: deletes, while it does not run, machines that were on their way when it ended and that it would not
            finish, and returns how many; None for one that keeps nothing of them.
    """

    name: str
    about: str
    tool: str
    user: str
    programs: tuple[Program, ...]
    files: Callable[[Asked, Place], Mapping[str, str]]
    objects: Callable[[Asked], list[Manifest]]
    stages: Callable[[Asked], list[Manifest]]
    instances: tuple[str, ...]
    nodes: str
    deployment: Callable[[Asked], list[Manifest]] | None = None
    forget: Callable[[Client], Awaitable[int]] | None = None

"""The description of an autoscaler: :class:`Autoscaler`, one for each folder of this package."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kumulus.kube import Client

Manifest = dict[str, Any]
Asked = Mapping[str, Any]
"""What a stack asks of its autoscaler: the option `autoscaler` of its cluster."""


@dataclass(frozen=True)
class Place:
    """Where an autoscaler's processes run.

    Attributes:
        folder: its own, with the files that it reads.
        kubeconfig: with which it reaches the API server, as its own user.
        ports: those that its programs listen on at 127.0.0.1: `health` of the first, `program/http` of a further one.
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
        executable: the program to run.
        ports: the names of the ports it listens on.
        arguments: its command line.
        environment: its variables.
        after: the autoscaler's processes that start before it.
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
        name: its name in stack files, and that of its first process.
        about: what it is, for docs/autoscalers.md.
        tool: its program in pins.toml, which also brings the CRDs of its kinds; empty for the user's own.
        user: its user name at the API server, to which the roles among its objects are bound.
        programs: its processes, itself first.
        files: the files that they read, by name, in its folder.
        objects: what it needs in the cluster, in the order of creation.
        stages: KWOK's stages for its nodes, besides those for all nodes.
        instances: the collections of its kinds whose objects have finalizers that it alone removes.
        nodes: selects the nodes that it has created, which are removed with it; empty if node groups own them.
        deployment: all that it needs to run in the cluster, including its Deployment, in the order of creation; None
            if it runs only beside the cluster.
        forget: deletes, while it does not run, machines that were being launched when it ended and that it would not
            finish, and returns how many; None for one that remembers nothing about them.
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

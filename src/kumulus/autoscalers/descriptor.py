"""What there is to say of an autoscaler: :class:`Autoscaler`, one for each folder of this room."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

Manifest = dict[str, Any]
Asked = Mapping[str, Any]
"""What a stack asks of its autoscaler, as the option `autoscaler` of its cluster has it."""


@dataclass(frozen=True)
class Place:
    """Where an autoscaler's process runs.

    Attributes:
        folder: its own, with the files that it reads.
        kubeconfig: by which it reaches the API server, as its own user.
        ports: those it listens on, on 127.0.0.1, by what they are called.
    """

    folder: Path
    kubeconfig: Path
    ports: Mapping[str, int]


@dataclass(frozen=True)
class Autoscaler:
    """One autoscaler that can run beside a control plane.

    Attributes:
        name: as a stack file has it, and of its process.
        about: what it is, for docs/autoscalers.md.
        tool: its program in pins.toml; the definitions of its kinds are kept with that.
        user: whom it is for the API server; the roles among its objects are bound to that.
        ports: what the ports it listens on are called.
        files: what it reads, by name, in its folder.
        environment: the variables that say where all of it is.
        objects: what it needs in the cluster, in the order in which to make it.
        stages: what KWOK is to do to its nodes besides what it does to all.
        instances: the collections of its kinds whose objects have finalizers that it alone takes away.
        nodes: selects the nodes that it has made.
    """

    name: str
    about: str
    tool: str
    user: str
    ports: tuple[str, ...]
    files: Callable[[Asked], Mapping[str, str]]
    environment: Callable[[Asked, Place], Mapping[str, str]]
    objects: Callable[[Asked], list[Manifest]]
    stages: Callable[[Asked], list[Manifest]]
    instances: tuple[str, ...]
    nodes: str

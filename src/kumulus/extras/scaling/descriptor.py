"""The description of an autoscaler: :class:`AutoscalerDescriptor`, one for each folder of this package."""

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
class AutoscalerPlace:
    """Where an autoscaler's processes run."""

    folder: Path
    """Its own, with the files that it reads."""
    kubeconfig: Path
    """With which it reaches the API server, as its own user."""
    ports: Mapping[str, int]
    """Those that its programs listen on at 127.0.0.1: `health` of the first, `program/http` of a further one."""
    administrator: Path = Path("/nowhere")
    """The kubeconfig of the cluster's administrator."""
    pki: Path = Path("/nowhere")
    """The directory of the cluster's certificates."""


@dataclass(frozen=True)
class AutoscalerProgram:
    """One of an autoscaler's processes."""

    name: str
    """Of the process, and of its log."""
    executable: Callable[[Asked], Path]
    ports: tuple[str, ...]
    """The names of the ports it listens on."""
    arguments: Callable[[Asked, AutoscalerPlace], list[str]] = lambda asked, place: []
    environment: Callable[[Asked, AutoscalerPlace], Mapping[str, str]] = lambda asked, place: {}
    after: tuple[str, ...] = ()
    """The autoscaler's processes that start before it."""


@dataclass(frozen=True)
class AutoscalerDescriptor:
    """One autoscaler that can run alongside a control plane."""

    name: str
    """Its name in stack files, and that of its first process."""
    about: str
    """What it is, for docs/autoscalers.md."""
    tool: str
    """Its program in pins.toml, which also brings the CRDs of its kinds; empty for the user's own."""
    user: str
    """Its user name at the API server, to which the roles among its objects are bound."""
    programs: tuple[AutoscalerProgram, ...]
    """Itself first."""
    files: Callable[[Asked, AutoscalerPlace], Mapping[str, str]]
    """The files that they read, by name, in its folder."""
    objects: Callable[[Asked], list[Manifest]]
    """What it needs in the cluster, in the order of creation."""
    stages: Callable[[Asked], list[Manifest]]
    """KWOK's stages for its nodes, besides those for all nodes."""
    instances: tuple[str, ...]
    """The collections of its kinds whose objects have finalizers that it alone removes."""
    nodes: str
    """Selects the nodes that it has created, which are removed with it; empty if node groups own them."""
    deployment: Callable[[Asked], list[Manifest]] | None = None
    """All that it needs to run in the cluster, including its Deployment, in the order of creation; None if it runs only
    alongside the cluster."""
    forget: Callable[[Client], Awaitable[int]] | None = None
    """Deletes, while it does not run, machines that were being launched when it ended and that it would not finish, and
    returns how many; None for one that remembers nothing about them."""

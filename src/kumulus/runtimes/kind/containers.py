"""The containers that are kind's nodes, through the command of their engine: docker, podman or nerdctl."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import subprocess
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from kumulus.nodes.errors import ProviderError
from kumulus.runtimes.base import MISSING
from kumulus.runtimes.kind import PROVIDERS, commands

CLUSTER_LABEL = "io.x-k8s.kind.cluster"
ROLE_LABEL = "io.x-k8s.kind.role"
_ENVIRONMENT = "KIND_EXPERIMENTAL_PROVIDER"
# A preview or a refresh does not wait long for an engine that hangs.
_ANSWER_S = 15.0
_START_S = 60.0
# Of a restart: what containers have to end by themselves, and all of it.
_STOP_S, _RESTART_S = 5, 30.0
# A busy engine takes a while from listing a container to having made it.
_HALF_MADE_S = 30.0
_NAMES = {"docker": "Docker", "podman": "Podman", "nerdctl": "containerd (nerdctl)"}


class _NotThere(ProviderError):
    """A container that was listed does not exist."""


@dataclass(frozen=True)
class NodeContainer:
    """A container that is a node of a kind cluster."""

    name: str
    """Such as ``dev-control-plane``."""
    id: str
    """The container's."""
    role: str
    """``control-plane``, ``worker`` or ``external-load-balancer``."""
    state: str
    """As the engine reports it: ``running``, ``paused``, ``exited`` …."""
    created: datetime | None = None
    """When, in UTC; None where the engine does not say."""

    @property
    def health(self) -> str:
        """Its state as a component of the cluster."""
        return self.state if self.state in ("running", "paused") else "stopped"


class ContainerEngine:
    """A container engine: ``docker``, ``podman`` or ``nerdctl``."""

    def __init__(self, provider: str) -> None:
        self.provider = provider

    @classmethod
    def chosen(cls, options: Mapping[str, Any]) -> ContainerEngine:
        """The engine that the options name, or the environment, or the first one installed, in kind's own order."""
        named = options.get("provider") or os.environ.get(_ENVIRONMENT)
        if named in PROVIDERS:
            return cls(str(named))
        return cls(next((each for each in ("docker", "nerdctl", "podman") if shutil.which(each)), "docker"))

    @property
    def environment(self) -> dict[str, str]:
        """The variables that make kind use this engine."""
        return {_ENVIRONMENT: self.provider}

    async def require(self) -> None:
        """Make sure that the engine answers."""
        await self._run("ps", "--quiet", "--last", "1")

    async def nodes(self, cluster: str) -> list[NodeContainer]:
        """The containers of a cluster, control planes first, no matter who created it."""
        deadline = time.monotonic() + _HALF_MADE_S
        while True:
            try:
                return await self._nodes(cluster)
            except _NotThere:
                # A container that is being made, or has just been removed, is listed but cannot be inspected.
                if time.monotonic() > deadline:
                    raise
                await asyncio.sleep(0.3)

    async def _nodes(self, cluster: str) -> list[NodeContainer]:
        label = f"label={CLUSTER_LABEL}={cluster}"
        listed = (await self._run("ps", "--all", "--quiet", "--no-trunc", "--filter", label)).split()
        if not listed:
            return []
        found = [_node(each) for each in json.loads(await self._run("inspect", *listed))]
        return sorted(found, key=lambda node: (node.role != "control-plane", node.name))

    def listed(self, cluster: str) -> list[str]:
        """Ids of a cluster's containers, including those still being made; empty if the engine does not say.

        It blocks, see :func:`kumulus.runtimes.kind.creating.discard`.
        """
        command = [self.provider, "ps", "--all", "--quiet", "--filter", f"label={CLUSTER_LABEL}={cluster}"]
        with suppress(OSError, subprocess.TimeoutExpired):
            return subprocess.run(
                command, capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=_ANSWER_S, check=False
            ).stdout.split()
        return []

    async def start(self, nodes: Sequence[NodeContainer]) -> None:
        """Start the containers that are stopped, and unpause those that are paused."""
        paused = [node.id for node in nodes if node.state == "paused"]
        stopped = [node.id for node in nodes if node.health == "stopped"]
        if paused:
            await self._run("unpause", *paused)
        if stopped:
            await self._run("start", *stopped, timeout=_START_S)

    async def restart(self, nodes: Sequence[NodeContainer]) -> None:
        """Restart running containers."""
        await self._run("restart", "--time", str(_STOP_S), *(node.id for node in nodes), timeout=_RESTART_S)

    async def _run(self, *arguments: str, timeout: float = _ANSWER_S) -> str:
        try:
            ended = await commands.run(self.provider, *arguments, timeout=timeout)
        except FileNotFoundError:
            raise ProviderError(self._absent()) from None
        except commands.CommandTimeout:
            raise ProviderError(
                f"{self._name} does not answer: `{self.provider} {arguments[0]}` took more than {timeout:.0f} s; "
                "restart its engine"
            ) from None
        if ended.code:
            kind = _NotThere if "no such" in ended.stderr.lower() else ProviderError
            raise kind(self._explained(arguments[0], ended.stderr))
        return ended.stdout

    @property
    def _name(self) -> str:
        return _NAMES[self.provider]

    def _absent(self) -> str:
        podman = "kind.provider: podman if there is Podman, or " if self.provider == "docker" else ""
        return (
            f"{self.provider} is not installed, and the nodes of the runtime kind are its containers; "
            f"install {self._name}, or write {podman}runtime: kwok, which needs no containers"
        )

    def _explained(self, command: str, stderr: str) -> str:
        line = next((each.strip() for each in stderr.splitlines() if each.strip()), "no reason given")
        if "permission denied" in stderr:
            return (
                f"{self._name} may not be used by this user: {line[:200]}; "
                f"add the user to the group {self.provider} and log in again, or use a rootless engine"
            )
        if any(text in stderr for text in ("Cannot connect", "failed to connect", "daemon running")):
            return (
                f"{self._name}'s engine does not run: {line[:200]}; start it (`systemctl start {self.provider}`) and "
                "run the command again"
            )
        return f"`{self.provider} {command}` failed: {line[:300]}"


def _node(inspected: Mapping[str, Any]) -> NodeContainer:
    labels = inspected["Config"].get("Labels") or {}
    return NodeContainer(
        name=str(inspected["Name"]).removeprefix("/"),
        id=str(inspected["Id"]),
        role=str(labels.get(ROLE_LABEL, "")),
        state=str(inspected["State"]["Status"]),
        created=_time(inspected.get("Created")),
    )


def _time(written: object) -> datetime | None:
    try:
        found = datetime.fromisoformat(str(written))
    except ValueError:
        return None
    return found.astimezone(UTC)


def components(nodes: Sequence[NodeContainer], recorded: Mapping[str, str]) -> dict[str, str]:
    """Each node's state, by name; a node that is recorded (its name → its container's id) but not there is missing."""
    found = {node.name: node.health for node in nodes}
    return {**dict.fromkeys(recorded, MISSING), **found}

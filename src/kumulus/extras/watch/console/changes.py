"""What the page may change in a cluster, if its user allowed changes: a change is shown first, then applied.

Applying a plan that was shown needs its ticket, which is random, valid once, and expires. So only what was shown is
applied.
"""

import secrets
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from kumulus.extras.watch.live.fleet import Live
from kumulus.kube import ApiError, Client, Unreachable
from kumulus.kube.bulk import for_each
from kumulus.kube.objects import NODES
from kumulus.model.errors import SpecError
from kumulus.model.identity import Owner
from kumulus.model.words import counted, listed
from kumulus.nodes.catalog.faults import fault_kinds
from kumulus.nodes.faults import operations, records, stages
from kumulus.nodes.faults.nodes import FaultsApplied
from kumulus.nodes.faults.records import Record
from kumulus.nodes.ownership import NotOurs
from kumulus.stackfile.fault_now import NoPools, resolved
from kumulus.stackfile.faults import fault_from

LASTS = 300.0
"""Seconds for which a plan can be applied."""

_MOST_PLANS = 50


class ChangeRefused(Exception):
    """A change cannot be made; the message says why."""


@dataclass(frozen=True)
class Planned:
    """A change that was planned."""

    do: Callable[[], Awaitable[str]]
    """Does it; returns what was done, in words."""
    until: float
    """When it expires, on the monotonic clock."""
    client: Client
    """Of the cluster that it is for."""


class ClusterChanges:
    """Changes of one cluster for a stack: it owns the faults it injects, and those of others are left alone."""

    def __init__(self, live: Live, owner: Owner) -> None:
        self._live = live
        self._owner = owner
        self._plans: dict[str, Planned] = {}

    @staticmethod
    def kinds() -> list[str]:
        """The kinds of faults that nodes can have."""
        return sorted(name for name, kind in fault_kinds().items() if kind.of_nodes)

    async def plan(self, asked: Mapping[str, Any]) -> dict[str, str]:
        """What a change would do, and the ticket to do it.

        Args:
            asked: ``do``, one of cordon, uncordon, delete, inject and clear; ``nodes``, ``pod``, ``name``, ``kind``.

        Raises:
            ChangeRefused: it cannot be done.
        """
        makers = {
            "cordon": self._cordon,
            "uncordon": self._cordon,
            "delete": self._delete,
            "inject": self._inject,
            "clear": self._clear,
        }
        maker = makers.get(str(asked.get("do")))
        if maker is None:
            raise ChangeRefused(f"there is no such change; there are {', '.join(makers)}")
        client = self._live.client
        says, do = await maker(asked)
        now = time.monotonic()
        self._plans = {key: plan for key, plan in self._plans.items() if plan.until > now}
        while len(self._plans) >= _MOST_PLANS:
            del self._plans[next(iter(self._plans))]
        ticket = secrets.token_urlsafe(16)
        self._plans[ticket] = Planned(do, now + LASTS, client)
        return {"says": says, "ticket": ticket}

    async def do(self, ticket: object) -> dict[str, str]:
        """Do what was planned, once.

        Raises:
            ChangeRefused: there is no such plan, it is too old, or it cannot be done any more.
        """
        plan = self._plans.pop(ticket, None) if isinstance(ticket, str) else None
        if plan is None or plan.until <= time.monotonic():
            raise ChangeRefused("this was done already, or was said too long ago; ask again what it would do")
        if plan.client is not self._live.client:
            # A new cluster has nodes, pods and faults of the same names.
            raise ChangeRefused("the cluster was made again since; ask again what it would do")
        return {"done": await plan.do()}

    async def _cordon(self, asked: Mapping[str, Any]) -> tuple[str, Callable[[], Awaitable[str]]]:
        nodes, off = self._nodes(asked), asked["do"] == "cordon"
        pods = sum(len(self._live.fleet.on(name)) for name in nodes)
        stay = f"take no new pods; what is on them stays ({counted(pods, 'pod')})" if off else "take pods again"
        says = f"{asked['do']} {counted(len(nodes), 'node')} ({listed(nodes)}): they {stay}"

        async def do() -> str:
            client = self._live.client
            body = {"spec": {"unschedulable": True if off else None}}

            async def patch(name: str) -> None:
                await client.merge_patch(f"{NODES}/{quote(name, safe='')}", body)

            outcome = await for_each(nodes, patch, workers=client.connections)
            if outcome.failed:
                raise ChangeRefused(f"not all are {asked['do']}ed: {outcome.failed[0][1]}")
            return f"{counted(len(nodes), 'node')} {asked['do']}ed"

        return says, do

    async def _delete(self, asked: Mapping[str, Any]) -> tuple[str, Callable[[], Awaitable[str]]]:
        key = str(asked.get("pod"))
        pod = self._live.fleet.pods.get(key)
        if pod is None:
            raise ChangeRefused(f"there is no pod {key[:200]}")
        owner = f"; {pod.owner} may make another one" if pod.owner else "; nothing makes another one"
        says = f"delete the pod {key}, {pod.phase} on {pod.node or 'no node'}{owner}"

        async def do() -> str:
            now = self._live.fleet.pods.get(key)
            # A pod keeps its node for life. Its UID would tell, but in all the views it would take room for each pod.
            if now is None or now.created != pod.created or now.node != (pod.node or now.node):
                raise ChangeRefused(f"{key} is not the same pod as before, or is gone; ask again what it would do")
            place = f"/api/v1/namespaces/{quote(pod.namespace, safe='')}/pods/{quote(pod.name, safe='')}"
            await self._live.client.delete(place)
            return f"deleted {key}"

        return says, do

    async def _inject(self, asked: Mapping[str, Any]) -> tuple[str, Callable[[], Awaitable[str]]]:
        nodes, client = self._nodes(asked), self._live.client
        known = await records.read(client)
        raw = {"name": asked.get("name"), "kind": asked.get("kind"), "target": {"names": nodes}}
        try:
            fault = resolved(fault_from(raw, "the page"), known.of(self._owner).pools, "the page")
        except (SpecError, NoPools) as error:
            raise ChangeRefused(str(error)) from None
        if fault.name in known.faults:
            raise ChangeRefused(f"a fault {fault.name} is already active; give this one another name")
        running = sum(pod.phase == "Running" for name in nodes for pod in self._live.fleet.on(name))
        says = fault.described(running)

        async def do() -> str:
            record = Record(fault.name, fault.kind, fault.nodes, fault.node, fault.pods, owner=self._owner)
            try:
                _, applied = await operations.begin(client, record)
            except (operations.FaultRefused, stages.NoStages) as error:
                raise ChangeRefused(str(error)) from None
            _complain(applied)
            return f"{fault.name} is active on {counted(len(nodes), 'node')}"

        return f"inject {fault.name}: {says}", do

    async def _clear(self, asked: Mapping[str, Any]) -> tuple[str, Callable[[], Awaitable[str]]]:
        name, client = str(asked.get("name")), self._live.client
        there = (await records.read(client)).faults.get(name)
        if there is None:
            raise ChangeRefused(f"no fault {name[:100]} is active")
        if there.declared:
            raise ChangeRefused(f"{name} is declared in the stack file: remove it there, and `pulumi up`")

        async def do() -> str:
            try:
                _, applied = await operations.end(client, name, owner=self._owner)
            except NotOurs as error:
                raise ChangeRefused(f"{error}; it is left alone") from None
            _complain(applied)
            return f"{name} is over; nodes restored: {applied.changed + applied.created}"

        return f"clear {name}: every node of it is as its pool wants it again", do

    def _nodes(self, asked: Mapping[str, Any]) -> list[str]:
        nodes = asked.get("nodes")
        if not isinstance(nodes, list) or not nodes:
            raise ChangeRefused("no nodes are chosen; open one, or find some")
        for name in nodes:
            if not isinstance(name, str) or name not in self._live.fleet.nodes:
                raise ChangeRefused(f"there is no node {str(name)[:200]}")
        return list(dict.fromkeys(nodes))


def failed(error: Exception) -> str:
    """The message to the user about a change that failed."""
    return (
        f"the cluster refused, or gave no answer: {error}" if isinstance(error, ApiError | Unreachable) else str(error)
    )


def _complain(applied: FaultsApplied) -> None:
    if left := applied.left():
        raise ChangeRefused(left)

"""Dry pods and nodes in a clone: the real scheduler decides where they go, and they are deleted again.

They never preempt: the question is whether there is room, and the clone must be the same afterwards as before. A
journal lists all that is created or raised, before it is: what a killed run has left, the next command puts back.
"""

from __future__ import annotations

import asyncio
import json
import re
import secrets
import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from kumulus.extras.capture.probe import DRY_LABEL, GROUPS, Probe, ProbeVerdict, looked_at, unschedulable
from kumulus.extras.journal import recover, undo
from kumulus.extras.journal.changes import RaisedQuota
from kumulus.kube import ApiError, objects
from kumulus.kube.bulk import for_all
from kumulus.kube.errors import tolerating
from kumulus.kube.namespaces import NAMESPACES
from kumulus.kube.objects import NODES
from kumulus.model.identity import RUN_LABEL
from kumulus.model.quantity import equal, parse

if TYPE_CHECKING:
    from kumulus.extras.journal.book import Journal
    from kumulus.kube import Client

_CLASSES = "/apis/scheduling.k8s.io/v1/priorityclasses"
_OURS = ("kumulus.io/", ".kumulus.io/")
_OF_A_NODE = ("capacity", "allocatable", "conditions", "nodeInfo", "declaredFeatures")
_HOSTNAME = "kubernetes.io/hostname"
_LOOK_EVERY, _SECOND_THOUGHT = 0.1, 5.0
# The beginning of a refusal by the API server, with the name of a dry pod.
_NAMED = re.compile(r'^pods "[^"]*" is forbidden: ')
# The highest value of a priority class; higher ones are reserved for the system.
_FIRST = 1_000_000_000


class Undecided(Exception):
    """The scheduler did not decide about every pod in time."""


@asynccontextmanager
async def dry_run(client: Client, name: str, say: Callable[[str], None]) -> AsyncIterator[Dry]:
    """Dry objects in a cluster, all of which are removed at the end; no other run changes the cluster meanwhile.

    What earlier runs had left is said by ``say``, a line for each.
    """
    journal, lines = await recover.begin(client, f"fit-{secrets.token_hex(4)}", name, command="fit")
    for line in lines:
        say(line)
    try:
        yield Dry(client, journal)
    finally:
        ending = asyncio.ensure_future(_end(client, journal))
        try:
            await asyncio.shield(ending)
        except asyncio.CancelledError:
            # Ctrl-C has come while all is being removed; a second one leaves the rest to the next command.
            await ending
            raise


async def _end(client: Client, journal: Journal) -> None:
    try:
        await undo.put_back(client, journal)
    finally:
        await recover.end(journal)


class Dry:
    """Dry objects in a cluster, from `dry_run`; the scheduler has ``within`` seconds to decide about all pods."""

    def __init__(self, client: Client, journal: Journal, within: float = 60.0) -> None:
        self._client, self._journal, self._within = client, journal, within
        self._run = journal.changes.run
        self._tries = 0
        self._kept: list[tuple[str, int]] = []

    async def priority_class(self, probe: Probe) -> str:
        """Create a class whose pods do not preempt, but which the scheduler tries before all others.

        The clone has pending pods that lack room: whenever a pod is removed, hundreds of them are tried again, each
        on all nodes, and the dry pods would wait for them for minutes.
        """
        if named := probe.spec.get("priorityClassName"):
            await self._client.get(f"{_CLASSES}/{named}")
        self._journal.add(outside=[f"{_CLASSES}/{self._run}"])
        metadata = {"name": self._run, "labels": {RUN_LABEL: self._run}}
        body = {"metadata": metadata, "value": _FIRST, "preemptionPolicy": "Never"}
        await self._client.write("POST", _CLASSES, body)
        return self._run

    async def namespace(self, name: str) -> None:
        """Make sure that the pods' namespace exists; if it is created here, it is removed again.

        Raises:
            Undecided: it gets no service account in time.
        """
        self._journal.add(namespaces=[name], pods=[f"{NAMESPACES}/{name}/pods"])
        with tolerating(409):
            metadata = {"name": name, "labels": {RUN_LABEL: self._run}}
            await self._client.write("POST", NAMESPACES, {"metadata": metadata})
        if not await objects.wait_for_account(self._client, name, self._within):
            raise Undecided(f"the namespace {name} gets no service account")

    async def pods(
        self, probe: Probe, count: int, priority_class: str, *, keep: bool = False, among: int = 0
    ) -> ProbeVerdict:
        """Create pods and wait for the scheduler's decision about each.

        Args:
            keep: leave them until the end, so that they occupy room for later ones; otherwise they are removed at once.
            among: how many nodes the scheduler must have considered for its refusal to count.

        Raises:
            Undecided: the scheduler did not decide about all, or the cluster has no groups for pods of one.
        """
        self._tries += 1
        attempt, path = self._tries, f"{NAMESPACES}/{probe.namespace}/pods"
        verdict = ProbeVerdict(count)
        await self._group(probe, attempt, priority_class)

        async def one(index: int) -> None:
            try:
                await self._post(path, probe.manifest(self._run, attempt, index, priority_class), priority_class)
            except ApiError as error:
                if error.status not in (403, 422):
                    raise
                verdict.refused += 1
                verdict.reason = verdict.reason or _NAMED.sub("", error.message)

        await for_all(range(count), one, workers=self._client.connections, most_failures=1)
        # The scheduler waits for a gang's pods that a quota refuses, and says nothing of the others.
        if not (probe.group and verdict.refused):
            await self._decided(path, attempt, verdict, among)
        if keep:
            self._kept.append((path, attempt))
        else:
            await self._remove(path, attempt)
        return verdict

    async def _group(self, probe: Probe, attempt: int, priority_class: str) -> None:
        """Create the PodGroup of the pods of a try, if they are of one; it is removed at the end."""
        if not probe.group:
            return
        path, name = f"/apis/{GROUPS}/namespaces/{probe.namespace}/podgroups", f"{self._run}-{attempt}"
        self._journal.add(outside=[f"{path}/{name}"])
        metadata = {"name": name, "labels": {RUN_LABEL: self._run}}
        try:
            # The policy is defaulted before it is compared with that of the class, and has to be the same.
            never = {"priorityClassName": priority_class, "preemptionPolicy": "Never"}
            body = {"metadata": metadata, "spec": {**probe.group, **never}}
            await self._post(path, body, priority_class)
        except ApiError as error:
            if error.status != 404:
                raise
            raise Undecided(
                f"the clone does not serve {GROUPS}, whose PodGroup the pods are of\n"
                "  Write kwok: {workloads: native} in its stack file, with Kubernetes 1.37 or later"
            ) from None

    async def _post(self, path: str, body: Mapping[str, Any], priority_class: str) -> None:
        """Post a pod; its class was just created, and the API server's admission may see it only a moment later."""
        ends = time.monotonic() + self._within
        while True:
            try:
                await self._client.write("POST", path, body)
                return
            except ApiError as error:
                unknown = error.status == 403 and f"no PriorityClass with name {priority_class} " in error.message
                if not unknown or time.monotonic() > ends:
                    raise
            await asyncio.sleep(_LOOK_EVERY)

    async def nodes(self, like: Mapping[str, Any], count: int) -> list[str]:
        """Create empty nodes like another one; they are removed at the end, or by `drop`."""
        metadata, status = like["metadata"], like["status"]
        self._tries += 1
        names = [f"{self._run}-{self._tries}-{index}" for index in range(count)]
        labels = {key: value for key, value in (metadata.get("labels") or {}).items() if not _is_ours(key)}
        taints = [each for each in like["spec"].get("taints") or () if "node.kubernetes.io/" not in each["key"]]
        self._journal.add(nodes=[f"{NODES}/{name}" for name in names])

        async def one(name: str) -> None:
            body = {
                "apiVersion": "v1",
                "kind": "Node",
                "metadata": {
                    "name": name,
                    "labels": {**labels, _HOSTNAME: name, RUN_LABEL: self._run},
                    "annotations": {"kwok.x-k8s.io/node": "fake"},
                },
                "spec": {"taints": taints},
                "status": {key: status[key] for key in _OF_A_NODE if key in status},
            }
            await self._client.write("POST", NODES, body)

        await for_all(names, one, workers=self._client.connections, most_failures=1)
        return names

    async def drop(self, names: list[str]) -> None:
        """Remove dry nodes; it is no error if some are gone already."""
        paths = [f"{NODES}/{name}" for name in names]
        await for_all(paths, lambda path: objects.remove(self._client, path), workers=self._client.connections)
        self._journal.drop(nodes=paths)

    async def raise_quota(self, namespace: str, name: str, hard: Mapping[str, str]) -> None:
        """Raise a ResourceQuota; its original amounts are restored at the end.

        Raises:
            Undecided: the quota's controller does not update the status.
        """
        path = f"{NAMESPACES}/{namespace}/resourcequotas/{name}"
        before = (await self._client.get(path))["spec"]["hard"]
        for earlier in self._journal.changes.quotas:
            if earlier.path == path:
                before |= json.loads(earlier.former)
        former = {key: before[key] for key in hard}
        self._journal.add(quotas=[RaisedQuota(path, json.dumps(former), json.dumps(dict(hard)))])
        await self._client.merge_patch(path, {"spec": {"hard": dict(hard)}})

        def raised(found: Mapping[str, Any]) -> bool:
            there = (found.get("status") or {}).get("hard") or {}
            return all(equal(there.get(key, "0"), each) for key, each in hard.items())

        # Admission uses the status, which the controller writes.
        if not await objects.wait_until(lambda: self._client.get(path), raised, self._within):
            raise Undecided(f"the quota {name} of {namespace} is not looked at by its controller")

    async def until_used(self, namespace: str, name: str, most: Mapping[str, str]) -> None:
        """Wait until deleted pods no longer count in a quota, but at most half of `within`."""

        def counted(found: Mapping[str, Any]) -> bool:
            used = (found.get("status") or {}).get("used") or {}
            return all(parse(used.get(key, "0")).nanos <= parse(each).nanos for key, each in most.items())

        path = f"{NAMESPACES}/{namespace}/resourcequotas/{name}"
        await objects.wait_until(lambda: self._client.get(path), counted, self._within / 2)

    async def drop_waiting(self) -> None:
        """Remove the kept pods that have no node."""
        for path, attempt in self._kept:
            await self._remove(path, attempt, {"fieldSelector": "spec.nodeName="})

    async def drop_kept(self) -> None:
        """Remove all kept pods."""
        for path, attempt in self._kept:
            await self._remove(path, attempt)

    async def _decided(self, path: str, attempt: int, verdict: ProbeVerdict, among: int) -> None:
        began, made = time.monotonic(), verdict.wanted - verdict.refused
        while True:
            verdict.on.clear()
            reasons: list[str] = []
            async for page in self._client.pages(path, self._of(attempt)):
                for pod in page:
                    if node := pod["spec"].get("nodeName"):
                        verdict.on[node] += 1
                    elif (message := unschedulable(pod)) is None:
                        continue
                    # A refusal from before the scheduler saw the newest nodes is retried by the scheduler itself.
                    elif looked_at(message) >= among or time.monotonic() > began + _SECOND_THOUGHT:
                        reasons.append(message)
            if verdict.fitted + len(reasons) >= made:
                verdict.reason = verdict.reason or (reasons[0] if reasons else "")
                return
            if time.monotonic() > began + self._within:
                left = made - verdict.fitted - len(reasons)
                raise Undecided(f"of {left:,} pods the scheduler has said nothing for {self._within:.0f} s")
            await asyncio.sleep(_LOOK_EVERY)

    async def _remove(self, path: str, attempt: int, among: Mapping[str, str] | None = None) -> None:
        await undo.remove_pods(self._client, path, {**(among or {}), **self._of(attempt)})

    def _of(self, attempt: int) -> dict[str, str]:
        """The selector of the pods of a try."""
        return {"labelSelector": f"{RUN_LABEL}={self._run},{DRY_LABEL}={attempt}"}


def _is_ours(key: str) -> bool:
    prefix = key.partition("/")[0] + "/"
    return prefix == _OURS[0] or prefix.endswith(_OURS[1])

"""Restore users' objects through a cluster's API, beside controllers that keep running."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Collection, Iterable, Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from kumulus.cluster.errors import ProviderError
from kumulus.cluster.snapshots import clocks
from kumulus.cluster.snapshots.families import families, is_as_it_was, is_remade, made, rank, roots
from kumulus.cluster.snapshots.file import About
from kumulus.cluster.snapshots.restored import Restored
from kumulus.cluster.snapshots.scope import contents
from kumulus.kube import ApiError, namespaces, objects
from kumulus.kube.bulk import for_all
from kumulus.kube.pods import path_of

if TYPE_CHECKING:
    from kumulus.kube import Client

# Seconds: for removed objects to be gone; for an owner to adopt; from a change to a controller's view of it; polling.
_GONE_S, _ADOPTED_S, _SEEN_S, _LOOK_S = 120.0, 30.0, 1.0, 0.2
# How often a pod's status is checked again, as KWOK may write it at the same moment.
_LOOKS = 10
_NOW = {"gracePeriodSeconds": 0}
_ORPHAN = {"propagationPolicy": "Orphan"}


class Restoring:
    """One restore.

    Args:
        client: of the cluster.
        about: what the snapshot contains.
        wanted: its objects, by path.
    """

    def __init__(self, client: Client, about: About, wanted: Mapping[str, dict[str, Any]]) -> None:
        self._client, self._about, self._wanted = client, about, wanted
        taken = datetime.fromisoformat(about.taken.replace("Z", "+00:00"))
        self._passed = int((datetime.now(UTC) - taken).total_seconds())

    async def run(self) -> Restored:
        """Run the restore."""
        now = await contents(self._client, self._about.namespaces)
        present = now.objects
        # Namespaces that got a Helm release since then, and kinds that may not be listed any more, stay as they are.
        self._wanted = {
            path: each
            for path, each in self._wanted.items()
            if _namespace(each) not in now.left and path.split("/")[-2] not in now.forbidden
        }
        changed = [each for each in families(self._wanted, present) if not is_as_it_was(each, self._wanted, present)]
        remade = [each for each in changed if is_remade(each, {**present, **self._wanted})]
        going = {path for family in changed for path in family if path in present}
        coming = {path for family in changed if family not in remade for path in family if path in self._wanted}
        coming |= {path for family in remade for path in roots(family, self._wanted)}
        await self._remove({path: present[path] for path in going}, coming)
        await self._make(list(coming))
        await self._statuses()
        names = sorted(path.rpartition("/")[2] for family in remade for path in roots(family, self._wanted))
        return Restored(
            written=len(coming),
            removed=len(going - self._wanted.keys()),
            same=len(self._wanted) - len(coming),
            left=now.left,
            remade=tuple(names),
            forbidden=now.forbidden,
        )

    async def _remove(self, going: Mapping[str, dict[str, Any]], coming: Collection[str]) -> None:
        """Remove what has changed: owners first, but not what they own, as they would create it again otherwise."""
        stays = {path for path in going if rank(going[path]["kind"]) == 0 and path in coming}
        spaces = {path for path in going if going[path]["kind"] == "Namespace"} - stays
        for turn in (3, 2, 1, 0):
            some = [path for path in going if rank(going[path]["kind"]) == turn and path not in stays | spaces]
            await self._each(some, lambda path, turn=turn: self._delete(path, _ORPHAN if turn > 1 else _NOW))
            await self._until_gone(some)
        await self._each(sorted(spaces), lambda path: namespaces.remove(self._client, path))
        await self._until_gone(spaces)

    async def _delete(self, path: str, options: Mapping[str, Any]) -> None:
        await objects.remove(self._client, path, options)

    async def _until_gone(self, paths: Iterable[str]) -> None:
        left, ends = list(paths), time.monotonic() + _GONE_S
        while left := [path for path in left if await objects.find(self._client, path) is not None]:
            if time.monotonic() > ends:
                raise ProviderError(f"{left[0]} is being deleted and has not gone for {_GONE_S:.0f} s; restore again")
            await asyncio.sleep(_LOOK_S)

    async def _make(self, paths: list[str]) -> None:
        """Create objects in the order of their rank, from those that own nothing to those that own the most."""
        first = [path for path in paths if self._wanted[path]["kind"] == "Namespace"]
        await self._each(first, self._put)
        for path in first:
            await self._account(path)
        rest = set(paths).difference(first)
        for turn in range(4):
            some = sorted(path for path in rest if rank(self._wanted[path]["kind"]) == turn)
            if turn == 1:
                await self._pods(some)
                continue
            await self._each(some, self._put)
            if some and turn:
                # The owners' controllers must have seen these objects before they see the owners.
                await asyncio.sleep(_SEEN_S)
            if turn == 2:
                await self._adopted(path for path in paths if rank(self._wanted[path]["kind"]) == 1)
        await self._own(path for path in paths if self._wanted[path]["kind"] == "Job")

    async def _pods(self, paths: list[str]) -> None:
        """Create pods until all exist: KWOK deletes by name, a moment after the former pod of that name is gone."""
        missing = paths
        for _ in range(_LOOKS):
            await self._each(missing, self._put)
            await self._statuses(missing)
            # KWOK, and the controllers that are to adopt the pods, must have seen them.
            await asyncio.sleep(_SEEN_S if missing else 0)
            missing = [path for path in paths if await objects.find(self._client, path) is None]
            if not missing:
                return
        raise ProviderError(f"{missing[0]} was made, and is gone again; restore again")

    async def _put(self, path: str) -> None:
        collection, body = path.rpartition("/")[0], made(self._wanted[path])
        try:
            await self._client.write("POST", collection, body)
        except ApiError as error:
            if error.status != 409 or error.reason != "AlreadyExists":
                raise
            await self._replace(path, body)

    async def _replace(self, path: str, body: Mapping[str, Any]) -> None:
        """Replace an existing object, unless it is a workload."""
        if rank(self._wanted[path]["kind"]):
            return
        try:
            await self._client.write("PUT", path, body)
        except ApiError as error:
            if error.status != 422:
                raise
            # One of its changed fields is immutable.
            await objects.remove(self._client, path)
            await self._until_gone([path])
            await self._client.write("POST", path.rpartition("/")[0], body)

    async def _account(self, namespace: str) -> None:
        """Wait until a namespace has the account that its pods run as."""
        ends = time.monotonic() + _GONE_S
        while await objects.find(self._client, f"{namespace}/serviceaccounts/default") is None:
            if time.monotonic() > ends:
                raise ProviderError(f"{namespace} has got no ServiceAccount for {_GONE_S:.0f} s; restore again")
            await asyncio.sleep(_LOOK_S)

    async def _adopted(self, pods: Iterable[str]) -> None:
        """Wait until pods that had an owner have one."""
        waiting = {path for path in pods if self._wanted[path]["metadata"].get("ownerReferences")}
        ends = time.monotonic() + _ADOPTED_S
        while waiting and time.monotonic() < ends:
            for path in list(waiting):
                found = await objects.find(self._client, path)
                if found is None or found["metadata"].get("ownerReferences"):
                    waiting.discard(path)
            if waiting:
                await asyncio.sleep(_LOOK_S)

    async def _own(self, jobs: Iterable[str]) -> None:
        """Make CronJobs the owners of their former Jobs: they do not adopt Jobs by themselves."""
        by_uid = {each["metadata"]["uid"]: path for path, each in self._wanted.items()}
        for path in jobs:
            for owner in self._wanted[path]["metadata"].get("ownerReferences") or ():
                above = by_uid.get(owner["uid"], "")
                if owner["kind"] == "CronJob" and (found := await objects.find(self._client, above)) is not None:
                    named = {**owner, "uid": found["metadata"]["uid"]}
                    await self._client.merge_patch(path, {"metadata": {"ownerReferences": [named]}})

    async def _statuses(self, paths: Iterable[str] | None = None) -> None:
        """Restore pods' statuses: KWOK would run them from their beginning, and may write at the same moment."""
        pods = [
            each for path, each in self._wanted.items() if each["kind"] == "Pod" and (paths is None or path in paths)
        ]
        wanted = {path_of(each): clocks.moved(each.get("status") or {}, self._passed) for each in pods if node_of(each)}
        for _ in range(_LOOKS):
            if not (
                wanted := {path: status for path, status in wanted.items() if await self._is_another(path, status)}
            ):
                return
            await self._each(
                list(wanted),
                lambda path: self._client.write(
                    "PATCH", f"{path}/status", {"status": wanted[path]}, content_type="application/merge-patch+json"
                ),
            )
            await asyncio.sleep(_LOOK_S)

    async def _is_another(self, path: str, wanted: Mapping[str, Any]) -> bool:
        found = await objects.find(self._client, path)
        status = (found or {}).get("status") or {}
        return found is not None and any(status.get(key) != wanted.get(key) for key in ("phase", "startTime"))

    async def _each(self, paths: Collection[str], action: Any) -> None:
        await for_all(paths, action, workers=self._client.connections, most_failures=1)


def _namespace(found: Mapping[str, Any]) -> str:
    return str(found["metadata"].get("namespace") or found["metadata"]["name"])


def node_of(found: Mapping[str, Any]) -> str:
    """The node that a pod is bound to; empty for one that is not bound, and for other objects."""
    return str(found["spec"].get("nodeName") or "") if found["kind"] == "Pod" else ""

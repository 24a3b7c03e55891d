"""Restore users' objects through a cluster's API, alongside controllers that keep running."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING, Any

from kumulus.extras.snapshots.families import changed_back, made, rank
from kumulus.extras.snapshots.planning import RestorePlan, names
from kumulus.extras.snapshots.restored import UNCHANGEABLE, CutOff, Restored, RestoreRefused
from kumulus.kube import ApiError, namespaces, objects
from kumulus.kube.bodies import nothing
from kumulus.kube.bulk import for_each
from kumulus.kube.errors import tolerating
from kumulus.model.durations import timestamp
from kumulus.model.words import listed
from kumulus.nodes.errors import ProviderError

if TYPE_CHECKING:
    from kumulus.kube import Client

# Seconds: for removed objects to be gone; for an owner to adopt; from a change to a controller's view of it; polling.
_GONE_S, _ADOPTED_S, _SEEN_S, _LOOK_S = 120.0, 30.0, 1.0, 0.2
# How often a pod's status is checked again, as KWOK may write it at the same moment.
_LOOKS = 10
_NOW = {"gracePeriodSeconds": 0}
_ORPHAN = {"propagationPolicy": "Orphan"}
# The kinds that are deleted and created again where one of their fields cannot be changed back: they hold no data, and
# no pod is lost with them.
_REPLACEABLE = frozenset({"Service", "RoleBinding"})
_SHOWN = 3
_ENDED = ("Succeeded", "Failed")
_TIMES = ("startTime", "startedAt", "finishedAt")


async def checked(client: Client, plan: RestorePlan) -> RestorePlan:
    """A plan whose changes the API server accepts; where it says that a field is immutable, a few kinds are replaced.

    The API server is asked by dry runs, so that a refusal, a RestoreRefused, comes before anything is removed.
    """
    replaced: set[str] = set()
    left: set[str] = set()
    refused: dict[str, str] = {}

    async def ask(path: str) -> None:
        try:
            # What is gone by now is created.
            with tolerating(404):
                await _change_back(client, path, plan, dry=True)
        except ApiError as error:
            if error.status == 422 and plan.wanted[path]["kind"] in _REPLACEABLE:
                replaced.add(path)
            elif error.status == 403 and plan.wanted[path]["kind"] == "Namespace":
                # Whoever may do everything in a namespace may often not change the namespace itself.
                left.add(path)
            elif error.status in (400, 403, 422):
                refused[path] = error.message
            else:
                raise

    outcome = await for_each(sorted(plan.changed), ask, workers=client.connections, most_failures=1)
    if outcome.failed:
        raise outcome.failed[0][1]
    if refused:
        first = min(refused)
        kinds = [f"{plan.wanted[path]['kind']} {name}" for path in sorted(refused) for name in names([path])]
        raise RestoreRefused(
            f"the cluster would refuse to change back {listed(kinds, _SHOWN)}, and nothing was changed: "
            f"{refused[first]}\n  Change it back or delete it yourself, if that is meant, and restore again"
        )
    why = {UNCHANGEABLE: tuple(names(left))} if left else {}
    changed = plan.changed - replaced - left
    return replace(plan, replaced=plan.replaced | replaced, changed=changed, left={**plan.left, **why})


class Restoring:
    """One restore; ``stop`` ends it before the next change."""

    def __init__(self, client: Client, taken: datetime, plan: RestorePlan, stop: asyncio.Event) -> None:
        self._client, self._plan, self._stop = client, plan, stop
        self._wanted = plan.wanted
        self._passed = int((datetime.now(UTC) - taken).total_seconds())
        self._gone: set[str] = set()
        self._made: set[str] = set()

    async def run(self) -> Restored:
        """Run the restore."""
        plan = self._plan
        await self._remove()
        await self._make(sorted(plan.put))
        await self._statuses(path for path, each in plan.wanted.items() if each["kind"] == "Pod")
        return Restored(
            written=len(plan.put),
            removed=len(plan.removed),
            same=len(plan.wanted) - len(plan.put),
            left=plan.left,
            remade=plan.remade,
        )

    async def _remove(self) -> None:
        """Remove what has changed: owners first, but not what they own, as they would create it again otherwise."""
        going = {path: self._plan.present[path] for path in self._plan.deleted}
        spaces = {path for path in going if going[path]["kind"] == "Namespace"}
        for limited in (3, 2, 1, 0):
            some = [path for path in going if rank(going[path]["kind"]) == limited and path not in spaces]
            await self._each(some, partial(self._delete, options=_ORPHAN if limited > 1 else _NOW))
            await self._until_gone(some)
        await self._each(sorted(spaces), self._delete_namespace)
        await self._until_gone(spaces)

    async def _delete(self, path: str, options: Mapping[str, Any]) -> None:
        await objects.remove(self._client, path, options)
        self._gone.add(path)

    async def _delete_namespace(self, path: str) -> None:
        await namespaces.remove(self._client, path)
        self._gone.add(path)

    async def _until_gone(self, paths: Collection[str]) -> None:
        left, ends = list(paths), time.monotonic() + _GONE_S
        while left := [path for path in left if await objects.find(self._client, path) is not None]:
            if time.monotonic() > ends:
                raise ProviderError(f"{left[0]} is being deleted and has not gone for {_GONE_S:.0f} s; restore again")
            await self._pause(_LOOK_S)

    async def _make(self, paths: list[str]) -> None:
        """Create objects in the order of their rank, from those that own nothing to those that own the most."""
        first = [path for path in paths if self._wanted[path]["kind"] == "Namespace"]
        await self._each(first, self._put)
        for path in first:
            await self._account(path)
        rest = set(paths).difference(first)
        for limited in range(4):
            some = sorted(path for path in rest if rank(self._wanted[path]["kind"]) == limited)
            if limited == 1:
                await self._pods(some)
                continue
            await self._each(some, self._put)
            if some and limited:
                # The owners' controllers must have seen these objects before they see the owners.
                await self._pause(_SEEN_S)
            if limited == 2:
                await self._adopted(path for path in paths if rank(self._wanted[path]["kind"]) == 1)
        await self._own(path for path in paths if self._wanted[path]["kind"] == "Job")

    async def _pods(self, paths: list[str]) -> None:
        """Create pods until all exist: KWOK deletes by name, a moment after the former pod of that name is gone."""
        missing = paths
        for _ in range(_LOOKS):
            await self._each(missing, self._put)
            await self._statuses(missing)
            # KWOK, and the controllers that are to adopt the pods, must have seen them.
            await self._pause(_SEEN_S if missing else 0)
            missing = [path for path in paths if await objects.find(self._client, path) is None]
            if not missing:
                return
        raise ProviderError(f"{missing[0]} was made, and is gone again; restore again")

    async def _put(self, path: str) -> None:
        """Create an object, or change an existing one back, unless it is a workload."""
        try:
            await self._client.write("POST", path.rpartition("/")[0], made(self._wanted[path]))
        except ApiError as error:
            if error.status != 409 or error.reason != "AlreadyExists":
                raise
            if not rank(self._wanted[path]["kind"]):
                await _change_back(self._client, path, self._plan)
        self._made.add(path)

    async def _account(self, namespace: str) -> None:
        """Wait until a namespace has the account that its pods run as."""
        ends = time.monotonic() + _GONE_S
        while await objects.find(self._client, f"{namespace}/serviceaccounts/default") is None:
            if time.monotonic() > ends:
                raise ProviderError(f"{namespace} has got no ServiceAccount for {_GONE_S:.0f} s; restore again")
            await self._pause(_LOOK_S)

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
                await self._pause(_LOOK_S)

    async def _own(self, jobs: Iterable[str]) -> None:
        """Make CronJobs the owners of their former Jobs: they do not adopt Jobs by themselves."""
        by_uid = {each["metadata"]["uid"]: path for path, each in self._wanted.items()}
        for path in jobs:
            for owner in self._wanted[path]["metadata"].get("ownerReferences") or ():
                above = by_uid.get(owner["uid"], "")
                if owner["kind"] == "CronJob" and (found := await objects.find(self._client, above)) is not None:
                    named = {**owner, "uid": found["metadata"]["uid"]}
                    await self._client.merge_patch(path, {"metadata": {"ownerReferences": [named]}})

    async def _statuses(self, pods: Iterable[str]) -> None:
        """Restore pods' statuses: KWOK would run them from their beginning, and may write at the same moment."""
        bound = {path: self._wanted[path] for path in pods if node_of(self._wanted[path])}
        wanted = {path: moved(each.get("status") or {}, self._passed) for path, each in bound.items()}
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
            await self._pause(_LOOK_S)

    async def _is_another(self, path: str, wanted: Mapping[str, Any]) -> bool:
        found = await objects.find(self._client, path)
        status = (found or {}).get("status") or {}
        return found is not None and any(status.get(key) != wanted.get(key) for key in ("phase", "startTime"))

    async def _each(self, paths: Collection[str], action: Callable[[str], Awaitable[object]]) -> None:
        workers = self._client.connections
        outcome = await for_each(paths, action, workers=workers, stop=self._stop, most_failures=1)
        self._go_on()
        if outcome.failed:
            raise outcome.failed[0][1]

    async def _pause(self, seconds: float) -> None:
        with suppress(TimeoutError):
            await asyncio.wait_for(self._stop.wait(), seconds)
        self._go_on()

    def _go_on(self) -> None:
        if self._stop.is_set():
            plan = self._plan
            raise CutOff(
                f"the restore is half done: {len(self._gone):,} of {len(plan.deleted):,} objects are deleted, "
                f"{len(self._made):,} of {len(plan.put):,} put back"
            )


async def _change_back(client: Client, path: str, plan: RestorePlan, *, dry: bool = False) -> None:
    """Put an object in the place of the present one, or only ask whether the API server would accept that."""
    wanted, gone = plan.wanted[path], {plan.present[each]["metadata"]["uid"] for each in plan.deleted}

    async def attempt() -> bool:
        body = changed_back(wanted, await client.get(path), gone)
        await client.request("PUT", path, params={"dryRun": "All"} if dry else None, body=body, decode=nothing)
        return True

    await objects.persist(attempt, path, f"{wanted['kind']} {wanted['metadata']['name']}")


def node_of(found: Mapping[str, Any]) -> str:
    """The node that a pod is bound to; empty for one that is not bound, and for other objects."""
    return str(found["spec"].get("nodeName") or "") if found["kind"] == "Pod" else ""


def moved(status: Mapping[str, Any], seconds: int) -> dict[str, Any]:
    """A pod's status with its times moved forward; those of a pod that has ended stay."""
    return dict(status) if status.get("phase") in _ENDED else _moved(dict(status), seconds)


def _moved(found: Any, seconds: int) -> Any:
    if isinstance(found, list):
        return [_moved(each, seconds) for each in found]
    if not isinstance(found, Mapping):
        return found
    return {
        key: _later(value, seconds) if key in _TIMES and isinstance(value, str) else _moved(value, seconds)
        for key, value in found.items()
    }


def _later(time: str, seconds: int) -> str:
    return timestamp(datetime.fromisoformat(time) + timedelta(seconds=seconds))

"""Objects by which a reset learns that the controllers have seen what it has done.

A controller hears of each kind by a watch of its own, in the order of the changes. So when it has acted on an object
that was made after others of that kind were removed, it knows that these are gone, and makes nothing more for them.

A canary itself must leave nothing behind that a controller makes again when it is removed by its key, as long as that
controller has not heard of it. So a Deployment is paused, which has no ReplicaSet, and a namespace is deleted by the
API server before its key is: from then on that server takes no object into it.
"""

import asyncio
import time
from collections.abc import Callable, Collection, Mapping
from typing import Any

from kumulus.kube import ApiError, Client, Unreachable, objects

_WITHIN_S, _LOOK_EVERY_S = 30.0, 0.01
NAME = "kumulus-reset"
"""How the names of these objects begin."""
_LABELS = {"app.kubernetes.io/name": NAME}
_CONTAINERS = {"containers": [{"name": "none", "image": "none"}]}
_POD = {"metadata": {"labels": _LABELS}, "spec": _CONTAINERS}
_NOWHERE = {"metadata": {"labels": _LABELS}, "spec": {**_CONTAINERS, "nodeSelector": {NAME: "none"}}}
_SELECTED = {"selector": {"matchLabels": _LABELS}, "template": _POD}
_NAMESPACES = "/api/v1/namespaces"
_APPS = "/apis/apps/v1/namespaces/{}"
_REPLICA_SET = {"spec": {"replicas": 0, **_SELECTED}}
_JOB = {"spec": {"suspend": True, "template": {"spec": {**_CONTAINERS, "restartPolicy": "Never"}}}}
# By the name below which objects of a kind are stored: where to make one that has no pods, and what it is like.
# CronJobs have none: their controller makes a Job at a full minute only.
_CANARIES: Mapping[str, tuple[str, Mapping[str, Any]]] = {
    "deployments": (f"{_APPS}/deployments", {"spec": {"replicas": 0, "paused": True, **_SELECTED}}),
    "replicasets": (f"{_APPS}/replicasets", _REPLICA_SET),
    "statefulsets": (f"{_APPS}/statefulsets", {"spec": {"replicas": 0, "serviceName": NAME, **_SELECTED}}),
    "daemonsets": (f"{_APPS}/daemonsets", {"spec": {**_SELECTED, "template": _NOWHERE}}),
    "controllers": (f"{_NAMESPACES}/{{}}/replicationcontrollers", {"spec": {"replicas": 0, "template": _POD}}),
    "jobs": ("/apis/batch/v1/namespaces/{}/jobs", _JOB),
    "namespaces": (_NAMESPACES, {}),
}
KINDS = frozenset({*_CANARIES, "cronjobs"})
"""The kinds whose controllers make other objects, by the names below which they are stored."""


def is_one(key: bytes) -> bool:
    """Whether an object was made here, or for one that was, by its key in etcd."""
    return f"/{NAME}-".encode() in key


async def wait_until_seen(
    client: Client, kinds: Collection[str], namespace: str = "", *, refused_for: float = _WITHIN_S
) -> None:
    """Wait until the controllers of kinds have seen all that has become of objects of these kinds.

    The objects that this makes are left for the caller to remove.

    Args:
        kinds: of :data:`KINDS`.
        namespace: where to make them, if not in `default`.
        refused_for: how many seconds one is tried again that is refused, as by a webhook that has just gone.

    Raises:
        ApiError: one was refused for so long.
        TimeoutError: the controllers do nothing.
    """
    async with asyncio.timeout(_WITHIN_S):
        known = sorted(set(kinds) & _CANARIES.keys())
        waits = (_make_and_wait(client, kind, namespace or "default", refused_for) for kind in known)
        # With exceptions for results, all of them have ended when this goes on.
        results = await asyncio.gather(*waits, return_exceptions=True)
    for result in results:
        if result is not None:
            raise result


async def _make_and_wait(client: Client, kind: str, namespace: str, refused_for: float) -> None:
    """Make a canary of a kind, and wait until its controller has acted on it."""
    where, body = _CANARIES[kind]
    collection = where.format(namespace)
    # Another name each time: a controller remembers those that are gone.
    name = f"{NAME}-{time.monotonic_ns():x}"
    await _make(client, collection, {"metadata": {"name": name}, **body}, refused_for)
    if kind == "namespaces":
        for made in ("serviceaccounts/default", "configmaps/kube-root-ca.crt"):
            await _wait_until(client, f"{_NAMESPACES}/{name}/{made}", lambda found: found is not None)
        await objects.remove(client, f"{_NAMESPACES}/{name}")
        return
    await _wait_until(client, f"{collection}/{name}", _was_acted_on)


async def _make(client: Client, collection: str, body: Mapping[str, Any], refused_for: float) -> None:
    begun = time.monotonic()
    while True:
        try:
            await client.create(collection, body, patience=0)
            return
        except (ApiError, Unreachable) as error:
            # On a busy machine, one attempt may give no answer in its second, and have made the object all the same.
            if isinstance(error, ApiError) and error.status == 409:
                return
            # The API server may not have seen yet that a webhook, a policy or a quota is gone.
            patience = refused_for if isinstance(error, ApiError) else _WITHIN_S
            if time.monotonic() - begun > patience:
                raise
            await asyncio.sleep(_LOOK_EVERY_S)


async def _wait_until(client: Client, path: str, condition: Callable[[dict[str, Any] | None], bool]) -> None:
    await objects.wait_until(lambda: objects.find(client, path), condition, _WITHIN_S, _LOOK_EVERY_S)


def _was_acted_on(found: Mapping[str, Any] | None) -> bool:
    """Whether the controller has written a status; one that removed the object has seen it as well."""
    status = (found or {}).get("status") or {}
    return found is None or bool(status.get("observedGeneration") or status.get("conditions"))

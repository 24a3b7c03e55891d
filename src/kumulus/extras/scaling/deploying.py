"""An autoscaler as a Deployment in a cluster whose nodes run containers: inspected, created, and removed.

Each of its objects names its owner. Somebody else's autoscaler in the cluster is left alone, even if only one of its
objects exists.
"""

from __future__ import annotations

import asyncio
import operator
import time
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from kumulus.extras.scaling import applying
from kumulus.extras.scaling.descriptor import AutoscalerDescriptor, Manifest
from kumulus.kube import objects
from kumulus.kube.errors import tolerating
from kumulus.kube.objects import NODES
from kumulus.kube.pods import reason
from kumulus.kwok.stages import STAGES
from kumulus.model.identity import Owner
from kumulus.nodes.errors import ProviderError
from kumulus.nodes.ownership import NotOurs, is_ours, owner_text

if TYPE_CHECKING:
    from kumulus.kube import Client

_EVERY = 0.5
_PATIENCE = 180.0
# How long machines may take to be removed by the autoscaler: their pods may have a grace period.
_EMPTYING = 60.0
NAMESPACE = "kube-system"
_DEPLOYMENT = "Deployment"
Say = Callable[[str], None]


@dataclass(frozen=True)
class DeploymentState:
    """The state of an autoscaler's objects in a cluster."""

    missing: tuple[str, ...]
    """Objects that do not exist, as ``Kind name``."""
    altered: tuple[str, ...]
    """Objects that differ from what is wanted, likewise."""
    wanted: int

    @property
    def there(self) -> bool:
        """Whether any of the objects exists."""
        return len(self.missing) < self.wanted


async def look(
    client: Client, autoscaler: AutoscalerDescriptor, wanted: Iterable[Manifest], owner: Owner
) -> DeploymentState:
    """Compare what exists with what is wanted.

    Raises:
        NotOurs: one of the objects is somebody else's.
    """
    missing, altered, count = [], [], 0
    for manifest in wanted:
        count += 1
        named = f"{manifest['kind']} {manifest['metadata']['name']}"
        there = await objects.find(client, objects.address(manifest))
        if there is None:
            missing.append(named)
            continue
        if not (is_ours(there["metadata"], owner) and applying.is_its(there, autoscaler)):
            raise NotOurs(f"{named} {await owner_text(client, there['metadata'])}")
        if not _holds(manifest, there):
            altered.append(named)
    return DeploymentState(tuple(missing), tuple(altered), count)


async def deploy(
    client: Client,
    autoscaler: AutoscalerDescriptor,
    wanted: list[Manifest],
    owner: Owner,
    stop: asyncio.Event,
    say: Say,
) -> None:
    """Create or update it, and wait until it works.

    Raises:
        NotOurs: one of the objects is somebody else's; nothing was changed.
    """
    await look(client, autoscaler, wanted, owner)
    deployment = next(each for each in wanted if each["kind"] == _DEPLOYMENT)
    path = objects.address(deployment)
    there = await objects.find(client, path)
    if there is not None and not _holds(deployment["spec"]["template"], there["spec"]["template"]):
        # A new pod would wait in vain for the machines that the old one was launching.
        say("its pod ends")
        await _end(client, there, path)
        if autoscaler.forget is not None:
            await autoscaler.forget(client)
    await applying.put(client, autoscaler, wanted, owner.labels)
    await _until_it_works(client, deployment, stop, say)


async def remove(client: Client, autoscaler: AutoscalerDescriptor, owner: Owner, stop: asyncio.Event, say: Say) -> None:
    """Remove it: its nodes, itself, its objects and its kinds.

    While it still runs it removes its own nodes, as their pools are deleted; the nodes that are left after a minute
    are removed for it.
    """
    ours = objects.labelled({applying.LABEL: autoscaler.name, **owner.labels})
    if not await objects.names(client, applying.DEFINITIONS, ours):
        await _remove_deployment(client, ours)
        return
    pools, *_ = autoscaler.instances
    for name in await objects.names(client, pools):
        await objects.remove(client, f"{pools}/{name}", {"propagationPolicy": "Foreground"})
    gives_up, before = time.monotonic() + _EMPTYING, -1
    while count := len(await objects.names(client, NODES, {"labelSelector": autoscaler.nodes})):
        if time.monotonic() > gives_up or stop.is_set():
            break
        if count != before:
            say(f"{count:,} of its nodes are still there")
            before = count
        await asyncio.sleep(_EVERY)
    await _remove_deployment(client, ours)
    await applying.remove(client, autoscaler)
    # The server takes a moment to delete its kinds' objects; until then the kinds could not be created again.
    left = partial(objects.names, client, applying.DEFINITIONS, ours)
    if not await objects.wait_until(left, operator.not_, _EMPTYING, _EVERY):
        raise ProviderError(f"{autoscaler.name}'s kinds are still being removed; the next run goes on")


async def _until_it_works(client: Client, deployment: Manifest, stop: asyncio.Event, say: Say) -> None:
    metadata, gives_up, shown = deployment["metadata"], time.monotonic() + _PATIENCE, ""
    while True:
        there = await client.get(objects.address(deployment))
        status = there.get("status") or {}
        current = status.get("observedGeneration", 0) >= there["metadata"]["generation"]
        if current and status.get("updatedReplicas") and status.get("readyReplicas"):
            return
        reasons = [reason(pod) for pod in await _pods(client, there)]
        why = next(filter(None, reasons), "its pod is not ready")
        if stop.is_set() or time.monotonic() > gives_up:
            ended = "it was not waited for" if stop.is_set() else f"it does not work after {_PATIENCE:.0f} s"
            raise ProviderError(f"{metadata['namespace']}/{metadata['name']}: {ended}: {why}")
        if why != shown:
            # Only changes, as each is a separate line if the output is not a terminal.
            say(why)
            shown = why
        await asyncio.sleep(_EVERY)


async def _pods(client: Client, deployment: Mapping[str, Any]) -> list[dict[str, Any]]:
    chosen = objects.labelled(deployment["spec"]["selector"]["matchLabels"])
    path = f"/api/v1/namespaces/{deployment['metadata']['namespace']}/pods"
    return [pod async for page in client.pages(path, chosen) for pod in page]


async def _end(client: Client, deployment: Mapping[str, Any], path: str) -> None:
    """Scale a Deployment to 0 and wait until it has no pod, but not longer than a minute."""
    await client.merge_patch(path, {"spec": {"replicas": 0}})
    await objects.wait_until(partial(_pods, client, deployment), operator.not_, _EMPTYING, _EVERY)


async def _remove_deployment(client: Client, ours: Mapping[str, str]) -> None:
    """Remove the Deployment first, so that it creates nothing more, then what it reads, and its stages for KWOK."""
    for collection in _ITS_OWN:
        found: list[str] = []
        # KWOK's kind may have been removed with KWOK.
        with tolerating(404):
            found = await objects.names(client, collection, ours)
        for name in found:
            path = f"{collection}/{name}"
            if collection == _ITS_OWN[0]:
                await _end(client, await client.get(path), path)
            await objects.remove(client, path)


_ITS_OWN = (
    f"/apis/apps/v1/namespaces/{NAMESPACE}/deployments",
    f"/api/v1/namespaces/{NAMESPACE}/configmaps",
    f"/api/v1/namespaces/{NAMESPACE}/serviceaccounts",
    STAGES,
)


def _holds(wanted: Any, there: Any) -> bool:
    """Whether everything that is wanted is there, ignoring what a server or a controller has added."""
    if isinstance(wanted, Mapping):
        return isinstance(there, Mapping) and all(_holds(value, there.get(key)) for key, value in wanted.items())
    if isinstance(wanted, list):
        return isinstance(there, list) and len(wanted) == len(there) and all(map(_holds, wanted, there))
    # The server leaves out empty values.
    return bool(wanted == there or (not wanted and not there))


READ = ("get", "list", "watch")
Rule = tuple[str, Collection[str], Collection[str]]
"""An API group, its resources, and what may be done with them."""
_GROUP = "rbac.authorization.k8s.io"


def user(name: str) -> dict[str, str]:
    """A user of the API server, as the subject of a binding."""
    return {"kind": "User", "apiGroup": _GROUP, "name": name}


def granted(name: str, rules: Collection[Rule], subject: Mapping[str, str]) -> list[Manifest]:
    """A ClusterRole, and its binding to a subject."""
    plain = [{"apiGroups": [group], "resources": list(kinds), "verbs": list(verbs)} for group, kinds, verbs in rules]
    role = {"apiVersion": f"{_GROUP}/v1", "kind": "ClusterRole", "metadata": {"name": name}, "rules": plain}
    binding = {
        "apiVersion": f"{_GROUP}/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": name},
        "roleRef": {"apiGroup": _GROUP, "kind": "ClusterRole", "name": name},
        "subjects": [dict(subject)],
    }
    return [role, binding]

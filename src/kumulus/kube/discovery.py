"""The kinds of objects that an API server has."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from kumulus.kube.errors import tolerating
from kumulus.kube.objects import find, inside, root

if TYPE_CHECKING:
    from kumulus.kube.client import Client

KINDS_OF_CONTROLLERS = frozenset({"Event", "Endpoints", "EndpointSlice", "Lease", "ControllerRevision"})
"""Kinds of objects that controllers make for others, or keep for themselves."""

IN_EVERY_NAMESPACE = frozenset({("ConfigMap", "kube-root-ca.crt"), ("ServiceAccount", "default")})
"""Objects that controllers make in each namespace, by kind and name."""

_VERBS = {"list", "create", "delete"}
# metrics.k8s.io, custom.metrics.k8s.io …: nobody creates objects of these groups, and their server is often down.
_MEASUREMENTS = "metrics.k8s.io"
SERVED_S = 10.0
"""Seconds within which an API server serves a new kind."""
_LOOK_EVERY_S = 0.02
_DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


@dataclass(frozen=True)
class ApiResource:
    """A kind of object in namespaces."""

    api_version: str
    """As in `apiVersion`."""
    kind: str
    plural: str
    """As in a path."""

    @property
    def group(self) -> str:
        """Its API group; empty for the core's."""
        return self.api_version.rpartition("/")[0]

    def collection(self, namespace: str = "") -> str:
        """The path of all of them, or of those in a namespace."""
        return f"{root(self.api_version)}{inside(namespace)}/{self.plural}"


async def namespaced(client: Client) -> list[ApiResource]:
    """The namespaced kinds that can be listed, created and deleted, each in one version.

    That is the version that the cluster prefers or, for a kind that is not in it, another of its group.
    """
    versions = ["v1"]
    for group in (await client.get("/apis"))["groups"]:
        if not group["name"].endswith(_MEASUREMENTS):
            listed = [group["preferredVersion"], *group["versions"]]
            versions += dict.fromkeys(each["groupVersion"] for each in listed)
    # A group is still listed for a moment after its last kind is removed.
    answers = await asyncio.gather(*(find(client, root(version)) for version in versions))
    found: dict[tuple[str, str], ApiResource] = {}
    for version, answer in zip(versions, answers, strict=True):
        for each in answer["resources"] if answer else ():
            if each["namespaced"] and "/" not in each["name"] and set(each["verbs"]) >= _VERBS:
                resource = ApiResource(version, each["kind"], each["name"])
                found.setdefault((resource.group, resource.plural), resource)
    return list(found.values())


async def served(client: Client, api_version: str, kind: str) -> tuple[str, bool] | None:
    """A kind's plural, as in paths, and whether it is namespaced; None if the server has no such kind.

    One that was defined just before, as by Helm, is waited for.
    """
    found = await _served_now(client, api_version, kind)
    if found is not None or not await _is_defined(client, api_version.rpartition("/")[0], kind):
        return found
    ends = time.monotonic() + SERVED_S
    while found is None and time.monotonic() < ends:
        await asyncio.sleep(_LOOK_EVERY_S)
        found = await _served_now(client, api_version, kind)
    return found


async def _served_now(client: Client, api_version: str, kind: str) -> tuple[str, bool] | None:
    listed = await find(client, root(api_version))
    for each in (listed or {}).get("resources") or ():
        if each["kind"] == kind and "/" not in each["name"]:
            return str(each["name"]), bool(each["namespaced"])
    return None


async def _is_defined(client: Client, group: str, kind: str) -> bool:
    """Whether there is a definition of a kind; not known, and so false, to a user who may not list definitions."""
    with tolerating(403):
        found = [each["spec"] for each in (await client.get(_DEFINITIONS))["items"]]
        return any((each["group"], each["names"]["kind"]) == (group, kind) for each in found)
    return False

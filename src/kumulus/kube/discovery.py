"""The kinds of objects that an API server has."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kumulus.kube.client import Client

_VERBS = {"list", "create", "delete"}


@dataclass(frozen=True)
class Resource:
    """A kind of object in namespaces.

    Args:
        api_version: as in `apiVersion`.
        kind: its name.
        plural: as in a path.
    """

    api_version: str
    kind: str
    plural: str

    @property
    def _root(self) -> str:
        return f"/apis/{self.api_version}" if "/" in self.api_version else f"/api/{self.api_version}"

    def collection(self, namespace: str = "") -> str:
        """The path of all of them, or of those in a namespace."""
        return f"{self._root}/namespaces/{namespace}/{self.plural}" if namespace else f"{self._root}/{self.plural}"


async def namespaced(client: Client) -> list[Resource]:
    """The namespaced kinds that can be listed, created and deleted, each in the version that the cluster prefers.

    Raises:
        ApiError, Unreachable: the server could not be asked.
    """
    roots = ["/api/v1"]
    groups = (await client.get("/apis"))["groups"]
    roots += [f"/apis/{group['preferredVersion']['groupVersion']}" for group in groups]
    found: dict[tuple[str, str], Resource] = {}
    for root in roots:
        for each in (await client.get(root))["resources"]:
            if each["namespaced"] and "/" not in each["name"] and set(each["verbs"]) >= _VERBS:
                version = root.removeprefix("/apis/").removeprefix("/api/")
                found.setdefault((version, each["kind"]), Resource(version, each["kind"], each["name"]))
    return list(found.values())

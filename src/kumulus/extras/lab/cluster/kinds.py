"""Where the API serves a kind: the path of its collection; the server is asked only once."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kumulus.extras.lab.errors import LabError
from kumulus.extras.schedulers import registry
from kumulus.kube import ApiError
from kumulus.kube.paths import inside, root

if TYPE_CHECKING:
    from kumulus.kube import Client


class Kinds:
    """The kinds that a cluster knows."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._known: dict[str, dict[str, tuple[str, bool]]] = {}

    async def path(self, version: str, kind: str, namespace: str) -> str:
        """The path of a kind's collection, in a namespace if the kind is namespaced."""
        plural, namespaced = await self._resource(version, kind)
        where = inside(namespace if namespaced else "")
        return f"{root(version)}{where}/{plural}"

    async def namespaced(self, version: str, kind: str) -> bool:
        """Whether objects of the kind are in a namespace; raises the same errors as :meth:`path`."""
        return (await self._resource(version, kind))[1]

    async def _resource(self, version: str, kind: str) -> tuple[str, bool]:
        if version not in self._known:
            self._known[version] = await self._ask(version)
        try:
            return self._known[version][kind]
        except KeyError:
            remedy = _remedy(version.partition("/")[0])
            raise LabError(f"the cluster knows no {kind} of {version}; {remedy}") from None

    async def _ask(self, version: str) -> dict[str, tuple[str, bool]]:
        try:
            found = await self._client.get(root(version))
        except ApiError as error:
            if error.status != 404:
                raise
            return {}
        return {
            each["kind"]: (each["name"], bool(each["namespaced"]))
            for each in found["resources"]
            if "/" not in each["name"]
        }


def _remedy(group: str) -> str:
    if group == "jobset.x-k8s.io":
        return "its controller has to be in the cluster"
    for scheduler in registry.every():
        if group in scheduler.api_groups:
            return f"write scheduler: {{name: {scheduler.name}}}"
    return "check apiVersion and kind, or install what defines it"

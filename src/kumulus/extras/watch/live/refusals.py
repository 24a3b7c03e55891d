"""Pods that a controller wants and the API server refuses, such as for a quota.

They are no objects, and a Job does not say in its status that it lacks some: events say why, and the controller's own
numbers whether it still does. Source: kubernetes.io/docs/concepts/policy/resource-quotas.
"""

from collections import Counter
from collections.abc import Mapping
from typing import Any, NamedTuple

from kumulus.kube import ApiError, Client, Unreachable
from kumulus.kube.watch import WatchEvent

EVENTS = "/api/v1/events?fieldSelector=reason%3DFailedCreate"
"""What controllers say of pods that they could not create; for an hour, whatever has become of them."""

_COLLECTIONS = {
    "Job": "batch/v1/namespaces/{}/jobs",
    "ReplicaSet": "apps/v1/namespaces/{}/replicasets",
    "StatefulSet": "apps/v1/namespaces/{}/statefulsets",
}
_PATIENCE = 3.0


class _Said(NamedTuple):
    kind: str
    namespace: str
    name: str
    uid: str
    at: str
    why: str


class Refusals:
    """What was refused, by the events' names."""

    def __init__(self) -> None:
        self._said: dict[str, _Said] = {}

    def take(self, event: WatchEvent[Any]) -> None:
        """Take an event of :data:`EVENTS`, in its JSON form."""
        self._said.pop(event.key, None)
        if event.kind == "DELETED" or event.item is None:
            return
        of = event.item.get("involvedObject") or {}
        if of.get("kind") in _COLLECTIONS and of.get("namespace"):
            at = event.item.get("lastTimestamp") or event.item.get("eventTime") or ""
            why = str(event.item.get("message") or "").rpartition(" is forbidden: ")[2]
            found = _Said(of["kind"], of["namespace"], of.get("name") or "", of.get("uid") or "", at, why)
            self._said[event.key] = found

    async def look(self, client: Client) -> Counter[str]:
        """How many pods each controller lacks now, by its name and why: ``Job default/train: exceeded quota: …``."""
        last = {each.uid: each for each in sorted(self._said.values(), key=lambda each: each.at)}
        lacking = Counter[str]()
        for kind, namespace in sorted({(each.kind, each.namespace) for each in last.values()}):
            try:
                async for page in client.pages(f"/apis/{_COLLECTIONS[kind].format(namespace)}", patience=_PATIENCE):
                    for found in page:
                        if said := last.get(found["metadata"]["uid"]):
                            lacking[f"{kind} {namespace}/{said.name}: {said.why}"] = _lacking(kind, found)
            except (ApiError, Unreachable):
                # Forbidden to this user; or the watches show that the connection is lost.
                continue
        return +lacking


def _lacking(kind: str, found: Mapping[str, Any]) -> int:
    spec, status = found.get("spec") or {}, found.get("status") or {}
    if kind != "Job":
        return int(spec.get("replicas", 1)) - int(status.get("replicas", 0))
    ended = any(
        each["type"] in ("Complete", "Failed") and each["status"] == "True" for each in status.get("conditions") or ()
    )
    if spec.get("suspend") or ended:
        return 0
    wanted = int(spec.get("parallelism", 1))
    if (completions := spec.get("completions")) is not None:
        wanted = min(wanted, int(completions) - int(status.get("succeeded", 0)))
    return wanted - int(status.get("active", 0))

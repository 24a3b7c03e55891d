"""Whether a release's objects in a cluster are ready, and why its pods are not.

Helm's own wait ignores what an operator creates for a release's objects, and says nothing about pods when it fails.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from kumulus.kube.errors import tolerating
from kumulus.kube.pods import reason

if TYPE_CHECKING:
    from kumulus.kube import Client

_RELEASE = "meta.helm.sh/release-name"
_WORKLOADS = ("deployments", "statefulsets", "daemonsets")
# prometheus-operator creates StatefulSets for these, and copies their annotations to them.
_OPERATED = ("prometheuses", "alertmanagers", "thanosrulers")
_NEEDED = ("Available", "Reconciled")


@dataclass(frozen=True)
class Readiness:
    """How far a release has come."""

    ready: int
    """How many of its workloads are ready."""
    waiting: tuple[str, ...]
    """The others, as ``deployment/name``."""
    reasons: tuple[str, ...]
    """For each pod that is waiting, its name and why."""

    @property
    def counted(self) -> str:
        """A short summary."""
        return f"{self.ready} of {self.ready + len(self.waiting)} ready"


async def look(client: Client, namespace: str, release: str) -> Readiness:
    """Look at a release."""
    states: dict[str, bool] = {}
    for kind in _WORKLOADS:
        for item in await _items(client, f"/apis/apps/v1/namespaces/{namespace}/{kind}"):
            if _is_of(item, release):
                states[f"{kind[:-1]}/{item['metadata']['name']}"] = _works(kind, item)
    for kind in _OPERATED:
        for item in await _items(client, f"/apis/monitoring.coreos.com/v1/namespaces/{namespace}/{kind}"):
            if _is_of(item, release):
                states[f"{item['kind'].lower()}/{item['metadata']['name']}"] = _is_reconciled(item)
    waiting = tuple(name for name, ready in states.items() if not ready)
    pods = await _items(client, f"/api/v1/namespaces/{namespace}/pods") if waiting else []
    reasons = tuple(why for pod in pods if _pod_is_of(pod, release) and (why := reason(pod)))
    return Readiness(len(states) - len(waiting), waiting, reasons)


def _works(kind: str, item: Mapping[str, Any]) -> bool:
    status, wanted = item.get("status") or {}, (item.get("spec") or {}).get("replicas", 1)
    if status.get("observedGeneration", 0) < item["metadata"].get("generation", 0):
        return False
    if kind == "daemonsets":
        wanted = status.get("desiredNumberScheduled", 0)
        return bool(status.get("updatedNumberScheduled", 0) >= wanted and status.get("numberReady", 0) >= wanted)
    return bool(status.get("updatedReplicas", 0) >= wanted and status.get("readyReplicas", 0) >= wanted)


def _is_reconciled(item: Mapping[str, Any]) -> bool:
    generation = item["metadata"].get("generation", 0)
    met = {
        each["type"]
        for each in (item.get("status") or {}).get("conditions") or []
        if each["status"] == "True" and each.get("observedGeneration", 0) >= generation
    }
    return met.issuperset(_NEEDED)


def _is_of(item: Mapping[str, Any], release: str) -> bool:
    return (item["metadata"].get("annotations") or {}).get(_RELEASE) == release


def _pod_is_of(pod: Mapping[str, Any], release: str) -> bool:
    labels = pod["metadata"].get("labels") or {}
    # An operator's pods are named after the object they were made for, whose name starts with the release's.
    return release == labels.get("release") or str(labels.get("app.kubernetes.io/instance")).startswith(release)


async def _items(client: Client, path: str) -> Iterable[dict[str, Any]]:
    # A cluster need not have this kind.
    with tolerating(404):
        answer = await client.get(path)
        # Items of a list do not include their kind.
        kind = str(answer["kind"]).removesuffix("List")
        return [{"kind": kind, **item} for item in answer["items"]]
    return []

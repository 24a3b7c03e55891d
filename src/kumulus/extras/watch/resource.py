"""``kumulus:index:ReleaseReady``: waits for a Helm release's workloads, including those that operators create.

It is declared after a release that nothing else waits for. See docs/decisions/observability.md.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from kumulus.kube.errors import tolerating
from kumulus.kube.pods import reason
from kumulus.model.words import listed
from kumulus.nodes.errors import ProviderError
from kumulus.provider.properties import INTEGER, NUMBER, Property
from kumulus.provider.resources.base import Operation, Properties, known
from kumulus.provider.resources.in_cluster import WORK_PATIENCE
from kumulus.provider.resources.release import OfRelease

if TYPE_CHECKING:
    from kumulus.kube import Client


_EVERY = 1.0
# Longer than a pod takes to start if its image is present; after that, the user sees the reason for the wait.
_QUIET = 20.0
_MOST_REASONS = 4
_REMEDY = (
    "have the nodes reach the images' registry, load the images into them (with runtime kind: loadImages), or name "
    "others in prometheusStack.valuesObject; kubectl describe pod tells more; then run the update again"
)


class ReleaseReady(OfRelease):
    """That what a Helm release has in the cluster has come up, and what operators make of it."""

    token: ClassVar[str] = "kumulus:index:ReleaseReady"
    inputs: ClassVar = (
        *OfRelease.inputs,
        Property("revision", INTEGER, "The release's revision; another one is waited for again."),
        Property("timeout", NUMBER, "How many seconds to wait.", required=True),
    )

    async def make(self, op: Operation, resource_id: str, inputs: Properties, old: Properties | None) -> Properties:
        """See :meth:`InCluster.make`: waits until the release is ready."""
        begun, reported, shown = time.monotonic(), False, ""
        patience = float(known(inputs, "timeout"))
        where = self.title(inputs)
        while True:
            with self.needing_cluster(inputs):
                client = await self.client(inputs, WORK_PATIENCE)
                found = await look(client, str(known(inputs, "namespace")), str(known(inputs, "name")))
            if not found.waiting:
                op.report.status(found.counted, last=True)
                return inputs
            waited = time.monotonic() - begun
            if waited >= patience:
                raise ProviderError(f"{where} is not ready after {patience:.0f} s: {_why(found)}; {_REMEDY}")
            status = f"{found.counted}{f': {found.reasons[0]}' if found.reasons else ''}"
            if status != shown:
                # Each status is a separate line if the output is not a terminal.
                op.report.status(status)
                shown = status
            if waited >= _QUIET and found.reasons and not reported:
                reported = True
                op.report.warn(f"waiting up to {patience:.0f} s for {_why(found)}")
            try:
                await asyncio.wait_for(op.stop.wait(), _EVERY)
            except TimeoutError:
                continue
            raise ProviderError(f"{where}: cancelled while waiting for {_why(found)}")


def _why(found: Readiness) -> str:
    """The reasons that pods give for waiting, or else the workloads that are waiting."""
    reasons = found.reasons or found.waiting
    return listed(reasons, _MOST_REASONS, "; ")


_RELEASE = "meta.helm.sh/release-name"
_WORKLOADS = ("deployments", "statefulsets", "daemonsets")
# prometheus-operator creates StatefulSets for these, and copies their annotations to them.
_OPERATED = ("prometheuses", "alertmanagers", "thanosrulers")
_NEEDED = ("Available", "Reconciled")


@dataclass(frozen=True)
class Readiness:
    """How far a release has come."""

    ready: int
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

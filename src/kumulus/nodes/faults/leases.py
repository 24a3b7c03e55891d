"""Silence a node's kubelet, which KWOK emulates, by taking the node's lease from KWOK; and give the lease back.

KWOK (v0.8.0, node_lease_controller.go) renews a lease only while it holds it, and has no heartbeat for a node whose
lease it does not hold. A lease that another holder has for many years therefore silences the kubelet. Pods follow the
lease only where KWOK's controllers started in one of two orders: it is by a label of the node that they stand still
(docs/decisions/kwok-leases.md). The node lifecycle controller, which watches renewals and ignores durations,
marks the node Unknown after its grace period, taints it and evicts its pods, as it does when a machine dies.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any

from kumulus.kube import ApiError, objects
from kumulus.kube.codecs import MERGE_PATCH
from kumulus.kube.objects import NODES
from kumulus.model.durations import micro_timestamp

if TYPE_CHECKING:
    from kumulus.kube import Client

LEASES = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"
HOLDER = "kumulus-fault"
# The longest duration that the API server allows: 68 years.
_FOR_EVER_S = 2**31 - 1
# As kubelets write it.
_USUAL_S = 40
# The annotation of a silenced node's lease that has the fields of its former holder.
_KEPT_BY = "kumulus.io/kept-by"


@dataclass(frozen=True)
class Lease:
    """A node's lease."""

    holder: str
    """Its holder; empty if there is none."""
    former_holder: dict[str, Any] | None
    """The fields of a lease as its previous holder wrote them, which :func:`take` recorded; None if unknown."""
    version: str
    """Its resourceVersion."""


@dataclass(frozen=True)
class LeaseSnapshot:
    """The leases of a cluster."""

    leases: dict[str, Lease] = field(default_factory=dict)
    """By node."""
    controllers: dict[str, dict[str, Any]] = field(default_factory=dict)
    """The kwok-controllers that renew leases: the fields that each writes, by its identity."""

    def holder_to_record(self, node: str) -> dict[str, Any] | None:
        """The former holder to record for a node's lease: its holder, or else the only kwok-controller."""
        lease = self.leases.get(node)
        return self._known(lease.holder if lease else "")

    def next_holder(self, node: str) -> dict[str, Any] | None:
        """The holder that gets a node's lease back: the former one, if it still runs; None if none is known.

        With several kwok-controllers, only one of them manages a certain node. A lease in another one's name would have
        to run out first.
        """
        former_holder = self.leases[node].former_holder if node in self.leases else None
        known = self._known(str((former_holder or {}).get("holderIdentity") or ""))
        # If every node is silent, no holder can be seen.
        return known or (None if self.controllers else former_holder)

    def _known(self, holder: str) -> dict[str, Any] | None:
        if holder in self.controllers:
            return self.controllers[holder]
        return next(iter(self.controllers.values())) if len(self.controllers) == 1 else None


async def look(client: Client) -> LeaseSnapshot:
    """The leases, and their usual holders."""
    found: dict[str, Lease] = {}
    renewals: dict[str, tuple[datetime, dict[str, Any]]] = {}
    async for page in client.pages(LEASES):
        for lease in page:
            name, spec = lease["metadata"]["name"], lease.get("spec") or {}
            holder = str(spec.get("holderIdentity") or "")
            note = (lease["metadata"].get("annotations") or {}).get(_KEPT_BY)
            found[name] = Lease(holder, _noted(note), str(lease["metadata"]["resourceVersion"]))
            # A real kubelet's identity is the name of its node.
            of_a_controller = holder not in ("", HOLDER, name)
            renewed = _time(spec.get("renewTime"))
            if not of_a_controller or renewed is None:
                continue
            if holder not in renewals or renewed > renewals[holder][0]:
                written = {key: spec[key] for key in ("holderIdentity", "leaseDurationSeconds") if key in spec}
                renewals[holder] = (renewed, written)
    newest = max((renewed for renewed, _ in renewals.values()), default=None)
    # One that has renewed nothing for the duration of a lease has ended.
    controllers = {
        holder: written
        for holder, (renewed, written) in renewals.items()
        if newest and (newest - renewed).total_seconds() <= float(written.get("leaseDurationSeconds") or _USUAL_S)
    }
    return LeaseSnapshot(found, controllers)


def _noted(note: object) -> dict[str, Any] | None:
    try:
        found = json.loads(str(note)) if note else None
    except ValueError:
        return None
    return found if isinstance(found, dict) else None


def _time(written: object) -> datetime | None:
    try:
        return datetime.fromisoformat(str(written))
    except ValueError:
        return None


async def take(client: Client, node: str, seen: LeaseSnapshot) -> None:
    """Silence a node; the lease notes the holder that loses it, as it was `seen` by :func:`look`."""
    former = seen.holder_to_record(node)
    # Renewed for the last time. Since Kubernetes 1.37, a lease that has changed without being renewed is never found to
    # have expired (kubernetes/pkg/controller/nodelifecycle, NodeControllerLeaseCircuitBreaker).
    spec = {"holderIdentity": HOLDER, "leaseDurationSeconds": _FOR_EVER_S, "renewTime": micro_timestamp()}
    metadata: dict[str, Any] = {"annotations": {_KEPT_BY: json.dumps(former)}} if former else {}
    body = {"metadata": metadata, "spec": spec}
    try:
        await client.write("PATCH", f"{LEASES}/{node}", body, content_type=MERGE_PATCH)
    except ApiError as error:
        if error.status != 404:
            raise
        there = await objects.find(client, f"{NODES}/{node}")
        if there is not None:
            # As a kubelet writes it, so that the lease goes with its node.
            owner = {"apiVersion": "v1", "kind": "Node", "name": node, "uid": there["metadata"]["uid"]}
            metadata = {**metadata, "ownerReferences": [owner]}
        fresh = {"metadata": {**metadata, "name": node}, "spec": spec}
        await objects.create_or_merge(client, LEASES, fresh)


async def give_back(client: Client, node: str, seen: LeaseSnapshot) -> None:
    """End a node's silence; a lease that no fault holds is left to its holder. `seen` is from :func:`look`.

    KWOK renews a lease in its own name at once, and takes a free one only after a quarter of its duration.
    """
    path = f"{LEASES}/{node}"
    lease = seen.leases.get(node)
    spec = seen.next_holder(node) or {"holderIdentity": None, "leaseDurationSeconds": _USUAL_S}

    async def attempt() -> bool:
        nonlocal lease
        if lease is None or lease.holder != HOLDER:
            return True
        metadata = {"annotations": {_KEPT_BY: None}, "resourceVersion": lease.version}
        patch = {"metadata": metadata, "spec": {**spec, "renewTime": micro_timestamp()}}
        try:
            await client.write("PATCH", path, patch, content_type=MERGE_PATCH)
        except ApiError as error:
            if error.status == 404:
                return True
            if error.status == 409:
                # Read it again, for the next attempt.
                found = await objects.find(client, path)
                holder = str((found or {}).get("spec", {}).get("holderIdentity") or "")
                lease = Lease(holder, None, str(found["metadata"]["resourceVersion"])) if found else None
            raise
        return True

    await objects.persist(attempt, path, f"the lease of node {node}")


async def holders(client: Client) -> dict[str, str]:
    """The holder of each node's lease, by node: KWOK, which then acts for it, or :data:`HOLDER`; empty without one."""
    return {
        lease["metadata"]["name"]: lease["spec"].get("holderIdentity") or ""
        async for page in client.pages(LEASES)
        for lease in page
    }


async def taken(client: Client) -> set[str]:
    """Names of the nodes that are silenced."""
    return {node for node, holder in (await holders(client)).items() if holder == HOLDER}

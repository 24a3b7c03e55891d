"""Clusters of a stack that work as one: what a stack file's `federation` declares in its hub and its workers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import pulumi

from kumulus.components.resources import InCluster
from kumulus.extras.federation.section import Federated, quota, together

if TYPE_CHECKING:
    from kumulus.components.emulated_cluster import EmulatedCluster
    from kumulus.model.quantity import Quantity
    from kumulus.stackfile.load import LoadedCluster


class Federation(pulumi.ComponentResource):
    """A hub that queues Jobs, and the workers that run them."""

    def __init__(
        self,
        resource_name: str,
        federated: Federated,
        clusters: Mapping[str, EmulatedCluster],
        loaded: Mapping[str, LoadedCluster],
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        super().__init__("kumulus:index:Federation", resource_name, None, opts)
        self._name, self._federated = resource_name, federated
        hub = clusters[federated.hub]
        quotas = {name: quota(loaded[name].pools) for name in federated.workers}
        workers = [
            self._member("FederationWorker", clusters[name], quotas[name], {"hub": hub.cluster_name}, f"-{name}")
            for name in federated.workers
        ]
        reached = {
            name: {"kubeconfig": clusters[name].kubeconfig, "clusterIdentity": clusters[name].identity}
            for name in federated.workers
        }
        self.hub = self._member(
            "FederationHub", hub, together([*quotas.values()]), {"workers": reached}, "-hub", after=workers
        )
        self.workers = workers
        self.register_outputs({"hub": federated.hub, "workers": list(federated.workers)})

    def _member(
        self,
        kind: str,
        cluster: EmulatedCluster,
        amounts: Mapping[str, Quantity],
        further: Mapping[str, Any],
        suffix: str,
        after: list[InCluster] | None = None,
    ) -> InCluster:
        asked = self._federated.asked
        properties = {
            "queue": asked.queue,
            "namespaces": list(asked.namespaces),
            "quota": {name: str(amount) for name, amount in amounts.items()},
            "kueueNamespace": asked.kueueNamespace,
            **further,
        }
        opts = pulumi.ResourceOptions(
            # Add-ons may install Kueue, in a cluster that has no process of it.
            parent=self,
            depends_on=[*cluster.addons.values(), *(after or [])],
            deleted_with=cluster.deleted_with,
        )
        return InCluster(f"kumulus:index:{kind}", f"{self._name}{suffix}", cluster, properties, opts)

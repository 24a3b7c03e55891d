"""``EmulatedCluster``: everything a stack file declares, in one component."""

from __future__ import annotations

from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING

import pulumi

from components.kwok_cluster import KwokCluster
from components.kwok_node_group import KwokNodeGroup
from spec.load import Loaded
from spec.totals import totals

if TYPE_CHECKING:
    from components.helm_addon import HelmAddon


class EmulatedCluster(pulumi.ComponentResource):
    """A control plane, its add-ons and its emulated nodes.

    Args:
        resource_name: its name in the stack.
        loaded: the stack's spec, from :func:`spec.load.load`.
        base: directory that relative paths in the spec refer to.
        opts: Pulumi's resource options.

    Attributes:
        kubeconfig: path of the kubeconfig file.
        cluster_name: the cluster's name.
        node_count: nodes of the declared groups.
        capacity: the fleet's totals: ``gpus`` as a number, every resource as a quantity.
        node_groups: by group: ``nodes``, ``gpus``, and ``zones`` with the nodes in each.

    Raises:
        pulumi.RunError: the spec asks for a runtime that this version does not have.
    """

    def __init__(
        self, resource_name: str, *, loaded: Loaded, base: Path, opts: pulumi.ResourceOptions | None = None
    ) -> None:
        spec = loaded.spec
        if spec.runtime != "kwok":
            raise pulumi.RunError(f"runtime: {spec.runtime} is not supported by this version yet; write runtime: kwok")
        super().__init__("kumulus:index:EmulatedCluster", resource_name, None, opts)
        self._base = base
        self.cluster_name = loaded.cluster_name
        self.cluster = KwokCluster(
            resource_name,
            cluster_name=loaded.cluster_name,
            kubernetes_version=spec.kubernetesVersion,
            options=spec.kwok.options(),
            opts=pulumi.ResourceOptions(parent=self),
        )
        self.groups = [
            KwokNodeGroup.of_pools(name, self.cluster, list(pools), pulumi.ResourceOptions(parent=self))
            for name, pools in groupby(loaded.pools, key=lambda pool: pool.group)
        ]
        self.addons = self._addons(resource_name, loaded) if spec.clusterAddons else {}
        sums = totals(loaded.pools)
        self.kubeconfig = self.cluster.kubeconfig
        self.node_count = sums.nodes
        self.capacity = {"gpus": sums.gpus, **{name: str(amount) for name, amount in sums.resources.items()}}
        self.node_groups = {
            name: {
                "nodes": tally.nodes,
                "gpus": tally.gpus,
                "zones": ", ".join(f"{pool.zone} {pool.replicas:,}" for pool in loaded.pools if pool.group == name),
            }
            for name, tally in sums.by_group.items()
        }
        self.register_outputs(
            {"kubeconfig": self.kubeconfig, "clusterName": self.cluster_name, "nodeCount": self.node_count}
        )

    def _addons(self, resource_name: str, loaded: Loaded) -> dict[str, HelmAddon]:
        # Imported here: every command would pay for the Kubernetes SDK, and most stacks have no add-on.
        import pulumi_kubernetes as kubernetes

        from components.helm_addon import HelmAddon

        pulumi.log.info(
            "add-ons on the kwok runtime are emulated: their objects are real, their containers do not run; "
            "their pods are placed on the 'system' pool",
            self,
        )
        system = KwokNodeGroup.of_pools(
            "system",
            self.cluster,
            [loaded.system_pool] if loaded.system_pool else [],
            pulumi.ResourceOptions(parent=self),
        )
        provider = kubernetes.Provider(
            f"{resource_name}-kubernetes",
            kubeconfig=self.cluster.kubeconfig,
            cluster_identifier=self.cluster.identity,
            # A stopped cluster keeps its releases in the state; without this, a refresh fails on it.
            skip_update_unreachable=True,
            opts=pulumi.ResourceOptions(parent=self, depends_on=[self.cluster.resource]),
        )
        made: dict[str, HelmAddon] = {}
        for addon in loaded.addons_in_order():
            made[addon.name] = HelmAddon(
                addon.name,
                addon=addon,
                cluster=self.cluster,
                provider=provider,
                base=self._base,
                depends_on=[system, *(made[name] for name in addon.dependsOn)],
                opts=pulumi.ResourceOptions(parent=self),
            )
        return made

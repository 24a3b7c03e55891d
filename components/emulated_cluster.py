"""``EmulatedCluster``: everything a stack file declares, in one component."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pulumi

from components import stack_traces
from components.control_plane import ControlPlane
from components.existing_cluster import ExistingCluster, options_of
from components.kind_cluster import KindCluster
from components.kwok_cluster import KwokCluster
from components.kwok_node_group import KwokNodeGroup
from components.kwok_plan import KwokPlan
from components.resources import Fault, HyperNodes
from lives.options import cluster_options
from spec.contents import contents
from spec.group_topology import VOLCANO
from spec.host_commands import When
from spec.hypernodes import Fabric
from spec.load import Loaded
from spec.pools import Pool
from spec.resource_slices import device_classes
from spec.shards import shards_for
from spec.totals import totals

if TYPE_CHECKING:
    import pulumi_kubernetes as kubernetes
    from pulumi_command.local import Command

    from components.device_class import DeviceClass
    from components.helm_addon import HelmAddon
    from components.kwok_charts import KwokCharts
    from components.tenant import Tenant
    from spec.observability import Observability


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
        prometheus: where Prometheus answers; None without observability.
        node_count: nodes of the declared groups.
        capacity: the fleet's totals: ``gpus`` as a number, every resource as a quantity.
        gpu_products: GPUs by product, of the groups that name one.
        tenants: by name: who shares the cluster.
        node_groups: by group: ``nodes``, ``gpus``, and ``zones`` with the nodes in each.
    """

    def __init__(
        self, resource_name: str, *, loaded: Loaded, base: Path, opts: pulumi.ResourceOptions | None = None
    ) -> None:
        with stack_traces.short():
            super().__init__("kumulus:index:EmulatedCluster", resource_name, None, opts)
            self._declare(resource_name, loaded, base)
        self.register_outputs(
            {"kubeconfig": self.kubeconfig, "clusterName": self.cluster_name, "nodeCount": self.node_count}
        )

    def _declare(self, resource_name: str, loaded: Loaded, base: Path) -> None:
        spec = loaded.spec
        self._base, self._name = base, resource_name
        self.cluster_name = loaded.cluster_name
        plan = KwokPlan.of(loaded, base)
        self.cluster = _CLUSTERS[spec.runtime](
            resource_name,
            cluster_name=loaded.cluster_name,
            kubernetes_version=spec.kubernetesVersion,
            options=_options(loaded, base, plan),
            contents=_contents(loaded),
            opts=pulumi.ResourceOptions(parent=self, aliases=_other_runtimes(spec.runtime)),
        )
        first = self._host_commands(loaded, "beforeAddons")
        first += self._images(loaded, first)
        self.kwok = self._kwok(plan, loaded, first)
        self.addons = self._addons(loaded, first) if spec.clusterAddons else {}
        second = self._host_commands(loaded, "beforeNodes", [*first, *self.addons.values()])
        needed = [*second, *([self.kwok] if self.kwok else [])]
        self.groups = [
            KwokNodeGroup.of_pools(name, self.cluster, list(pools), pulumi.ResourceOptions(parent=self), needed)
            for name, pools in groupby(loaded.pools, key=lambda pool: pool.group)
        ]
        self.device_classes = self._device_classes(loaded)
        self.faults = self._faults(loaded)
        self.tenants = self._tenants(loaded) if spec.tenants else {}
        self._host_commands(loaded, "last", [*first, *second, *self.addons.values(), *self.groups, *self.faults])
        self._hyper_nodes(resource_name, loaded)
        if spec.podLifecycles or spec.podUsage:
            self._live(resource_name, loaded)
        if spec.observability and spec.runtime != "kwok":
            self._prometheus_stack(spec.observability, loaded)
        sums = totals(loaded.pools)
        self.kubeconfig = self.cluster.kubeconfig
        measured = spec.observability and spec.runtime == "kwok"
        self.prometheus = self.cluster.endpoint("prometheus") if measured else None
        self.node_count = sums.nodes
        self.gpu_products = dict(sums.gpu_products)
        self.capacity = {"gpus": sums.gpus, **{name: str(amount) for name, amount in sums.resources.items()}}
        self.node_groups = {
            name: {
                "nodes": tally.nodes,
                "gpus": tally.gpus,
                "zones": ", ".join(f"{pool.zone} {pool.replicas:,}" for pool in loaded.pools if pool.group == name),
            }
            for name, tally in sums.by_group.items()
        }

    def _kwok(self, plan: KwokPlan, loaded: Loaded, after: Sequence[pulumi.Resource]) -> KwokCharts | None:
        """KWOK in the cluster, where it does not run beside it; in another's, the stack's own stages."""
        if plan.controller:
            pulumi.log.info(f"KWOK is in the cluster already ({plan.controller}): it is used and left as it is", self)
        if not plan.stages:
            return None
        # Imported here, as the provider's SDK is.
        from components.kwok_charts import KwokCharts
        from lives.in_cluster import Controllers

        nodes = sum(pool.replicas for pool in loaded.pools)
        charts, name = loaded.spec.kwokCharts, loaded.cluster_name
        return KwokCharts(
            f"{self._name}-kwok",
            controllers=Controllers(charts, name, nodes, shards_for(nodes, charts.shards)) if plan.install else None,
            cluster=self.cluster,
            provider=self._kubernetes,
            base=self._base,
            measured=loaded.spec.observability is not None,
            depends_on=after,
            opts=pulumi.ResourceOptions(parent=self),
        )

    def _faults(self, loaded: Loaded) -> list[Fault]:
        pools = {pool.name: resource for group in self.groups for pool, resource in group.by_pool}
        return [
            Fault(
                fault.name,
                fault=fault,
                cluster=self.cluster,
                opts=pulumi.ResourceOptions(
                    parent=self,
                    depends_on=[pools[name] for name in fault.nodes],
                    deleted_with=self.cluster.end,
                ),
            )
            for fault in loaded.faults
        ]

    def _hyper_nodes(self, resource_name: str, loaded: Loaded) -> None:
        """Volcano's own objects, for the groups whose topology has its preset."""
        groups = {group.name for group in loaded.spec.nodeGroups if group.topology and group.topology.preset == VOLCANO}
        if not groups:
            return
        HyperNodes(
            f"{resource_name}-hypernodes",
            fabrics=[Fabric.of(pool) for pool in loaded.pools if pool.group in groups],
            cluster=self.cluster,
            opts=pulumi.ResourceOptions(
                parent=self,
                # An add-on may bring the CRD.
                depends_on=list(self.addons.values()),
                deleted_with=self.cluster.end,
            ),
        )

    @cached_property
    def _kubernetes(self) -> kubernetes.Provider:
        """The Kubernetes provider of the cluster, for stacks that declare objects in it."""
        # Imported here: every command would pay for the Kubernetes SDK, and most stacks have no use for it.
        import pulumi_kubernetes as kubernetes

        return kubernetes.Provider(
            f"{self._name}-kubernetes",
            kubeconfig=self.cluster.kubeconfig,
            cluster_identifier=self.cluster.identity,
            # A stopped cluster keeps its objects in the state, since `up --refresh` brings it back; without this, the
            # refresh fails on it. One that is not ours to bring back has failed already, and what is skipped is still
            # compared, for which a silent server is asked again for each custom resource.
            skip_update_unreachable=not self.cluster.outlives_stack,
            kube_client_settings={"timeout": _REQUEST_S},
            opts=pulumi.ResourceOptions(parent=self, depends_on=[self.cluster.resource]),
        )

    def _device_classes(self, loaded: Loaded) -> dict[str, DeviceClass]:
        classes = device_classes(group.resourceSlices for group in loaded.spec.nodeGroups)
        if not classes:
            return {}
        from components.device_class import DeviceClass

        opts = pulumi.ResourceOptions(parent=self)
        return {
            name: DeviceClass(name, driver=driver, cluster=self.cluster, provider=self._kubernetes, opts=opts)
            for name, driver in classes.items()
        }

    def _tenants(self, loaded: Loaded) -> dict[str, Tenant]:
        from components.tenant import Tenant

        opts = pulumi.ResourceOptions(parent=self)
        return {
            tenant.name: Tenant(tenant.name, tenant=tenant, cluster=self.cluster, provider=self._kubernetes, opts=opts)
            for tenant in loaded.spec.tenants
        }

    def _live(self, resource_name: str, loaded: Loaded) -> None:
        from components.pod_lives import PodLives

        PodLives(
            f"{resource_name}-lives",
            lifecycles=loaded.spec.podLifecycles,
            usages=loaded.spec.podUsage,
            cluster=self.cluster,
            provider=self._kubernetes,
            depends_on=[self.kwok] if self.kwok else [],
            opts=pulumi.ResourceOptions(parent=self),
        )

    def _host_commands(self, loaded: Loaded, when: When, after: Sequence[pulumi.Resource] = ()) -> list[Command]:
        if all(command.when != when for command in loaded.spec.hostCommands):
            return []
        # Imported here: no other stack needs pulumi-command.
        from components.host_commands import host_commands

        return host_commands(loaded, when, cluster=self.cluster, after=after, parent=self)

    def _images(self, loaded: Loaded, after: Sequence[Command]) -> list[Command]:
        if not loaded.spec.loadImages:
            return []
        from components.host_commands import image_loads

        return image_loads(loaded, cluster=self.cluster, base=self._base, after=after, parent=self)

    def _prometheus_stack(self, asked: Observability, loaded: Loaded) -> None:
        """What is measured where nodes run containers; the kwok runtime has processes of its own for it."""
        from components.prometheus_stack import PrometheusStack

        PrometheusStack(
            f"{self._name}-observability",
            asked=asked,
            cluster=self.cluster,
            provider=self._kubernetes,
            chart=loaded.spec.prometheusStack,
            shards=len(self.kwok.services) if self.kwok else 0,
            base=self._base,
            secrets=loaded.secrets.within("prometheusStack"),
            depends_on=[*self.addons.values(), *([self.kwok] if self.kwok else [])],
            opts=pulumi.ResourceOptions(parent=self),
        )

    def _addons(self, loaded: Loaded, after: Sequence[pulumi.Resource]) -> dict[str, HelmAddon]:
        # Imported here, as the provider's SDK is.
        from components.helm_addon import HelmAddon

        system = [self._system(loaded.system_pool)] if loaded.system_pool else []
        places = {addon.name: number for number, addon in enumerate(loaded.spec.clusterAddons)}
        made: dict[str, HelmAddon] = {}
        for addon in loaded.addons_in_order():
            made[addon.name] = HelmAddon(
                addon.name,
                addon=addon,
                cluster=self.cluster,
                provider=self._kubernetes,
                base=self._base,
                secrets=loaded.secrets.within("clusterAddons", places[addon.name]),
                depends_on=[*system, *after, *(made[name] for name in addon.dependsOn)],
                opts=pulumi.ResourceOptions(parent=self),
            )
        return made

    def _system(self, pool: Pool) -> KwokNodeGroup:
        """Where a runtime without nodes that run containers has the pods of add-ons."""
        pulumi.log.info(
            "add-ons on the kwok runtime are emulated: their objects are real, their containers do not run; "
            "their pods are placed on the 'system' pool",
            self,
        )
        return KwokNodeGroup.of_pools("system", self.cluster, [pool], pulumi.ResourceOptions(parent=self))


# A quarter of the provider's own: it asks a server two things when it starts, one after the other, and then one for
# each custom resource; every command is to end within a minute where it is silent. Watches that this ends are begun
# again.
_REQUEST_S = 8
_CLUSTERS: dict[str, type[ControlPlane]] = {each.runtime: each for each in (KwokCluster, KindCluster, ExistingCluster)}


def _other_runtimes(runtime: str) -> list[pulumi.Alias]:
    """What the cluster was called with another runtime: it is replaced, the old one first, as they share a place."""
    return [pulumi.Alias(type_=each.token) for each in _CLUSTERS.values() if each.runtime != runtime]


def _options(loaded: Loaded, base: Path, kwok: KwokPlan) -> dict[str, Any]:
    """The runtime's options."""
    if loaded.spec.runtime == ExistingCluster.runtime:
        return options_of(loaded, base, kwok)
    if loaded.spec.runtime == "kind":
        config = loaded.spec.kindConfig
        return {**loaded.spec.kind.options(), **({"kindConfig": config} if config else {})}
    return _kwok_options(loaded)


def _kwok_options(loaded: Loaded) -> dict[str, Any]:
    """Those of the kwok runtime: a fault of pods is a stage of KWOK's, which it has to take from the cluster."""
    stages = {"stageObjects": True} if any(fault.pods for fault in loaded.faults) else {}
    asked = loaded.spec.observability
    measured = {"observability": asked.options()} if asked else {}
    return {**loaded.spec.kwok.options(), **stages, **cluster_options(loaded.spec), **measured}


def _contents(loaded: Loaded) -> dict[str, object]:
    """The names by which a later preview knows what goes."""
    system = [loaded.system_pool] if loaded.system_pool else []
    pools = (pool.name for pool in (*loaded.pools, *system))
    return contents((fault.name for fault in loaded.faults), pools, preview=pulumi.runtime.is_dry_run())

"""``EmulatedCluster``: everything a stack file declares, in one component."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Required, TypedDict, Unpack, overload

import pulumi

from kumulus.components import engine
from kumulus.components.arguments import SectionOf, checked
from kumulus.components.described_cluster import control_plane
from kumulus.components.engine import require_command_plugin
from kumulus.components.existing_cluster import KwokPlan
from kumulus.components.fault import Fault
from kumulus.components.inputs import problems_explained
from kumulus.components.kwok_node_group import KwokNodeGroup
from kumulus.components.mistakes import collected
from kumulus.components.resources import ClusterLike, DeclaredCluster, InCluster, of_plugin
from kumulus.model.names import default_cluster_name
from kumulus.model.pools import Pool
from kumulus.model.totals import totals
from kumulus.stackfile.addons import in_order
from kumulus.stackfile.host_commands import When
from kumulus.stackfile.load import LoadedCluster, load
from kumulus.stackfile.resource_slices import device_classes, extended_names

if TYPE_CHECKING:
    import pulumi_kubernetes as kubernetes
    from pulumi_command.local import Command

    from kumulus.components.device_class import DeviceClass
    from kumulus.components.helm_addon import HelmAddon
    from kumulus.components.kwok_charts import KwokCharts
    from kumulus.components.pod_lifecycles import PodLifecycles
    from kumulus.components.tenant import Tenant


class EmulatedClusterArgs(TypedDict, total=False):
    """Arguments of an EmulatedCluster."""

    spec: Required[Annotated[Mapping[str, Any], SectionOf("kumulus.stackfile.model:ClusterSpec")]]
    """The contents of a stack file's ``kumulus:cluster``: runtime, nodeGroups, clusterAddons, faults, tenants and so
    on. A plain value, because it decides which resources there are. A cluster without a ``name`` has the resource's."""
    base: str
    """The directory that relative paths in it refer to. Default: the program's."""


@collected
class EmulatedCluster(pulumi.ComponentResource):
    """A control plane, its add-ons and its emulated nodes.

    Other components can be declared in it, as in any cluster: ``Tenant("research", cluster=emulated)``.

    Args:
        loaded: instead of ``spec``, a stack that has been read from its file.

    Attributes:
        cluster: its :class:`ControlPlane`.
        addons, tenants: by name.
        groups, faults: in the order of the file.
        loaded, plan: what its stack file says, and whether the stack installs KWOK in it and declares stages.
        base: the directory that relative paths in the file refer to.
        kwok: its :class:`KwokCharts`; None if KWOK runs locally, or the cluster takes no stages.
        prefix: the beginning of the names in the stack of all that is declared in it.
        kubelet_version: the kubelet version that its nodes report.
    """

    kubelet_version: str = ""

    kubeconfig: pulumi.Output[str]
    """Path of the cluster's kubeconfig file, known in previews."""
    identity: pulumi.Output[str]
    """UID of the namespace kube-system: another one means another cluster."""
    server: pulumi.Output[str]
    """Address of the API server."""
    stack_id: pulumi.Output[str]
    """The identity of the stack: what is made in the cluster carries it."""

    @overload
    def __init__(
        self, resource_name: str, *, opts: pulumi.ResourceOptions | None = None, **args: Unpack[EmulatedClusterArgs]
    ) -> None: ...

    @overload
    def __init__(
        self, resource_name: str, *, loaded: LoadedCluster, base: Path, opts: pulumi.ResourceOptions | None = None
    ) -> None: ...

    def __init__(
        self,
        resource_name: str,
        *,
        loaded: LoadedCluster | None = None,
        opts: pulumi.ResourceOptions | None = None,
        **args: Any,
    ) -> None:
        if loaded is None:
            loaded, base = _loaded(resource_name, args)
        else:
            base = Path(args["base"]).absolute()
        with engine.short_stack_traces():
            super().__init__("kumulus:index:EmulatedCluster", resource_name, None, opts)
            self._declare(resource_name, loaded, base)
        self.register_outputs(
            {
                "kubeconfig": self.kubeconfig,
                "clusterName": self.cluster_name,
                "nodeCount": self.node_count,
                "identity": self.identity,
                "server": self.server,
                "stackId": self.stack_id,
                "controlPlaneUrn": self.resource.urn,
                **({"lifetimeUrn": self.lifetime.urn} if self.lifetime else {}),
            }
        )

    def _declare(self, resource_name: str, loaded: LoadedCluster, base: Path) -> None:
        self._name, self.loaded, self.base = resource_name, loaded, base
        self.cluster_name = loaded.cluster_name
        _require(loaded, base)
        self.plan = KwokPlan.of(loaded, base)
        self.cluster = control_plane(resource_name, loaded, base, self.plan, self)
        self.prefix, self.kubelet_version = self.cluster.prefix, self.cluster.kubelet_version
        self.kubeconfig, self.identity = self.cluster.kubeconfig, self.cluster.identity
        self.server, self.stack_id = self.cluster.server, self.cluster.stack_id
        # The lists are the cluster's own: what is declared in it later finds all of them.
        self.groups, self.faults, self.namespaces = self.cluster.groups, self.cluster.faults, self.cluster.namespaces
        self._declare_contents()
        self._describe()

    def _declare_contents(self) -> None:
        """Declare what is in the cluster, in the order in which it is made, and last what a destroy begins with."""
        spec, pools = self.loaded.spec, self.loaded.pools
        before_addons = self._host_commands("beforeAddons")
        before_addons += self._images(before_addons)
        self.kwok = self._kwok(before_addons)
        kwok = [self.kwok] if self.kwok else []
        self.addons = self._addons(before_addons) if spec.clusterAddons else {}
        addons = list(self.addons.values())
        commands = self._host_commands("beforeNodes", [*before_addons, *addons])
        # Nodes wait for add-ons only if a command is to run between them.
        before_nodes = [*commands, *kwok]
        self.groups += [
            KwokNodeGroup.of_pools(name, self.cluster, list(group), pulumi.ResourceOptions(parent=self), before_nodes)
            for name, group in groupby(pools, key=lambda pool: pool.group)
        ]
        self.device_classes = self._device_classes()
        before_faults = self._sections_of_extras(before_nodes, before_faults=True)
        self.faults += self._faults(before_faults)
        self.tenants = self._tenants() if spec.tenants else {}
        declared: list[pulumi.Resource] = [*before_addons, *commands, *addons, *self.groups, *self.faults]
        declared += self._hyper_nodes()
        if spec.podLifecycles or spec.podUsage:
            declared.append(self._lifecycles())
        declared += [*kwok, *before_faults]
        declared += [*self.device_classes.values(), *self.tenants.values()]
        declared += self._sections_of_extras(declared, before_faults=False)
        declared += self._host_commands("last", declared)
        self._check_destroy(declared)

    def _check_destroy(self, within: Sequence[pulumi.Resource]) -> None:
        """Have a destroy begin with the question whether the cluster may be destroyed from here."""
        cluster, outlives_stack = self.resource, self.loaded.spec.runtime_descriptor.outlives_stack
        properties = {
            "name": cluster.name,
            "runtime": cluster.runtime,
            "directory": cluster.directory,
            "owner": cluster.owner,
            # Where the cluster outlives the stack, this output is never set. To a preview, that is an unknown value,
            # which as an input would be a change each time.
            "machine": None if outlives_stack else cluster.machine,
            "clusterIdentity": cluster.identity,
        }
        opts = pulumi.ResourceOptions(parent=self, depends_on=within)
        of_plugin("kumulus:index:DestroyCheck", f"{self._name}-destroy-check", properties, opts)

    def _describe(self) -> None:
        """Set what a program may export of the cluster: its sums, and where its Prometheus answers."""
        spec, pools = self.loaded.spec, self.loaded.pools
        sums = totals(pools)
        measured = spec.measured and spec.runtime_descriptor.local
        self.prometheus = self.cluster.endpoint("prometheus") if measured else None
        self.node_count = sums.nodes
        self.gpu_products = dict(sums.gpu_products)
        self.capacity = {"gpus": sums.gpus, **{name: str(amount) for name, amount in sums.resources.items()}}
        self.node_groups = {
            name: {
                "nodes": tally.nodes,
                "gpus": tally.gpus,
                "zones": ", ".join(f"{pool.zone} {pool.replicas:,}" for pool in pools if pool.group == name),
            }
            for name, tally in sums.by_group.items()
        }

    def _kwok(self, after: Sequence[pulumi.Resource]) -> KwokCharts | None:
        """KWOK in the cluster, unless it runs locally; only the stack's stages if somebody else installed KWOK."""
        plan, spec = self.plan, self.loaded.spec
        if plan.controller:
            pulumi.log.info(f"KWOK is in the cluster already ({plan.controller}): it is used and left as it is", self)
        if not plan.stages:
            return None
        # Imported here, as the provider's SDK is.
        from kumulus.components.kwok_charts import KwokCharts, arguments_of

        arguments = arguments_of(spec.kwokCharts, self.cluster, self.base)
        arguments["nodes"] = sum(pool.replicas for pool in self.loaded.pools)
        arguments["measured"] = spec.measured
        arguments["install"] = plan.install
        return KwokCharts(
            f"{self._name}-kwok", **arguments, opts=pulumi.ResourceOptions(parent=self, depends_on=list(after))
        )

    def _sections_of_extras(self, after: Sequence[pulumi.Resource], *, before_faults: bool) -> list[pulumi.Resource]:
        """Declare the sections that extras have brought: those that faults come after, or the others."""
        opts = pulumi.ResourceOptions(parent=self, depends_on=list(after))
        return [
            each
            for name, section in self.loaded.spec.sections_of_extras().items()
            if section.before_faults == before_faults
            for each in section.declare(f"{self._name}-{name}", self, opts)
        ]

    def _faults(self, after: Sequence[pulumi.Resource]) -> list[Fault]:
        opts = pulumi.ResourceOptions(parent=self, depends_on=list(after))
        return [Fault.of_resolved(fault, self.cluster, opts) for fault in self.loaded.faults]

    def _hyper_nodes(self) -> list[InCluster]:
        """Volcano's HyperNodes, for the groups whose topology has its preset."""
        groups = {group.name for group in self.loaded.spec.nodeGroups if group.has_hyper_nodes}
        if not groups:
            return []
        pools = {
            pool.name: {"zone": pool.zone, "replicas": pool.replicas, "topology": pool.topology.to_plain()}
            for pool in self.loaded.pools
            if pool.group in groups and pool.topology
        }
        # An add-on may install the CRD.
        first = list(self.addons.values())
        opts = pulumi.ResourceOptions(parent=self, depends_on=first, deleted_with=self.cluster.deleted_with)
        name = f"{self._name}-hypernodes"
        return [InCluster("kumulus:index:HyperNodes", name, self.cluster, {"pools": pools}, opts)]

    @property
    def resource(self) -> DeclaredCluster:
        """The ``kumulus:index:Cluster``."""
        return self.cluster.resource

    @property
    def deleted_with(self) -> DeclaredCluster | None:
        """What the plugin's resources in the cluster are deleted with; None where the cluster outlives the stack."""
        return self.cluster.deleted_with

    @property
    def lifetime(self) -> pulumi.Resource | None:
        """What other providers' resources in it are deleted with; None where the cluster outlives the stack."""
        return self.cluster.lifetime

    @property
    def kubernetes(self) -> kubernetes.Provider:
        """The Kubernetes provider of the cluster, declared when something first asks for it."""
        return self.cluster.kubernetes

    def endpoint(self, name: str) -> pulumi.Output[str | None]:
        """Where a further service of the cluster answers, such as ``prometheus``; None where there is none."""
        return self.cluster.endpoint(name)

    def _device_classes(self) -> dict[str, DeviceClass]:
        sections = [group.resourceSlices for group in self.loaded.spec.nodeGroups]
        classes, extended = device_classes(sections), extended_names(sections)
        if not classes:
            return {}
        from kumulus.components.device_class import DeviceClass

        opts = pulumi.ResourceOptions(parent=self)
        return {
            name: DeviceClass(
                f"{self.prefix}{name}",
                driver=driver,
                class_name=name,
                cluster=self.cluster,
                opts=opts,
                **({"extended_resource_name": extended[name]} if name in extended else {}),
            )
            for name, driver in classes.items()
        }

    def _tenants(self) -> dict[str, Tenant]:
        from kumulus.components.tenant import Tenant, arguments_of

        opts = pulumi.ResourceOptions(parent=self)
        return {
            tenant.name: Tenant(f"{self.prefix}{tenant.name}", **arguments_of(tenant, self.cluster), opts=opts)
            for tenant in self.loaded.spec.tenants
        }

    def _lifecycles(self) -> PodLifecycles:
        from kumulus.components.pod_lifecycles import PodLifecycles

        spec = self.loaded.spec
        return PodLifecycles(
            f"{self._name}-lifecycles",
            lifecycles=spec.podLifecycles,
            usages=spec.podUsage,
            cluster=self.cluster,
            events=spec.kwok.events == "kubelet",
            depends_on=[self.kwok] if self.kwok else [],
            opts=pulumi.ResourceOptions(parent=self),
        )

    def _host_commands(self, when: When, after: Sequence[pulumi.Resource] = ()) -> list[Command]:
        if all(command.when != when for command in self.loaded.spec.hostCommands):
            return []
        # Imported here: no other stack needs pulumi-command.
        from kumulus.components.host_commands import host_commands

        return host_commands(self.loaded, when, cluster=self.cluster, after=after, parent=self)

    def _images(self, after: Sequence[Command]) -> list[Command]:
        images = self.loaded.spec.loadImages
        if not images:
            return []
        from kumulus.components.host_commands import image_load

        return [
            image_load(image, f"loadImages[{number}]", cluster=self.cluster, base=self.base, after=after, parent=self)
            for number, image in enumerate(images)
        ]

    def _addons(self, after: Sequence[pulumi.Resource]) -> dict[str, HelmAddon]:
        # Imported here, as the provider's SDK is.
        from kumulus.components.helm_addon import HelmAddon, arguments_of

        loaded = self.loaded
        system = [self._system(loaded.system_pool, loaded.spec.kwok.processes)] if loaded.system_pool else []
        places = {addon.name: number for number, addon in enumerate(loaded.spec.clusterAddons)}
        made: dict[str, HelmAddon] = {}
        for addon in in_order(loaded.spec.clusterAddons):
            first = [*system, *after, *(made[name] for name in addon.dependsOn)]
            secrets = loaded.secrets.within("clusterAddons", places[addon.name])
            made[addon.name] = HelmAddon(
                f"{self.prefix}{addon.name}",
                **arguments_of(addon, self.cluster, self.base, secrets),
                opts=pulumi.ResourceOptions(parent=self, depends_on=first),
            )
        return made

    def _system(self, pool: Pool, processes: Mapping[str, str]) -> KwokNodeGroup:
        """The pool for the pods of add-ons, on a runtime whose nodes run no containers."""
        but = ", but for those of kwok.processes" if processes else ""
        pulumi.log.info(
            f"add-ons on the kwok runtime are emulated: their objects are real, their containers do not run{but}; "
            "their pods are placed on the 'system' pool",
            self,
        )
        return KwokNodeGroup.of_pools("system", self.cluster, [pool], pulumi.ResourceOptions(parent=self))


def _loaded(resource_name: str, args: Mapping[str, Any]) -> tuple[LoadedCluster, Path]:
    """What a program's arguments say, and the directory that relative paths in it refer to."""
    source = f"EmulatedCluster {resource_name}"
    with checked(args, EmulatedClusterArgs, source), problems_explained(source, {"": "spec"}):
        base = Path(args.get("base") or "").absolute()
        loaded = load({"cluster": {"name": default_cluster_name(resource_name), **args["spec"]}}, resource_name, base)
    for notice in loaded.notices:
        pulumi.log.warn(str(notice))
    return loaded, base


def _require(loaded: LoadedCluster, base: Path) -> None:
    """Check that what the stack needs outside the cluster is there: a plugin for host commands, and charts."""
    if loaded.spec.hostCommands or loaded.spec.loadImages:
        require_command_plugin()
    if loaded.spec.clusterAddons:
        # Imported here, as the provider's SDK is.
        from kumulus.components.helm_release import require_charts

        require_charts(loaded, base)


if TYPE_CHECKING:
    # The type checker verifies that whatever can be put into a cluster can be put into this one, too.
    _CLUSTER: type[ClusterLike] = EmulatedCluster

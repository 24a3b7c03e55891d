"""What Pulumi's engine asks of a plugin when it replaces a resource, and an example of each resource to ask it of.

The order of the requests is that of pkg/resource/deploy/step_generator.go (3.246): a forced replacement (`--replace`,
`state taint`, another provider, `replacementTrigger`) is one without a Diff, and the first Check without old inputs; of
`replaceOnChanges` it asks for the Diff first. Each Update here is a plugin process of its own, as each command has one.
"""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pulumi.runtime.proto import provider_pb2

from kumulus.extras.federation import federation
from kumulus.extras.federation.resource import FederationHub, FederationWorker
from kumulus.extras.scaling.descriptor import AutoscalerDescriptor as AnyAutoscaler
from kumulus.extras.scaling.resource import AutoscalerResource
from kumulus.extras.schedulers.hypernodes import HYPERNODES
from kumulus.extras.schedulers.resource import HyperNodes
from kumulus.extras.watch.resource import ReleaseReady
from kumulus.helm.history import RECORDED, encoded
from kumulus.kube.namespaces import NAMESPACES
from kumulus.model.identity import STACK_ID
from kumulus.model.pool_form import pool_to_properties
from kumulus.provider.resources.base import Properties, Resource
from kumulus.provider.resources.chart_crds import ChartCrds
from kumulus.provider.resources.cluster import ClusterResource
from kumulus.provider.resources.definitions import Definitions
from kumulus.provider.resources.fault import FaultResource
from kumulus.provider.resources.kubernetes_object import KubernetesObjectResource
from kumulus.provider.resources.namespace import NamespaceResource
from kumulus.provider.resources.node_pool import NodePool
from kumulus.provider.resources.release import ReleaseMark, ReleasePreparation
from kumulus.provider.resources.state_only import DestroyCheck, Lifetime, StackIdentityResource
from kumulus.provider.values import from_struct
from tests.support.kinds import CRDS, crd
from tests.support.object_store import Object, Store
from tests.unit.model.test_fault_changes import GPU, pool
from tests.unit.provider.test_rpc import Plugin, struct

MINE = "a" * 32
POOL = pool()
SECRETS = "/api/v1/namespaces/n/secrets"
ONES = "/apis/things.io/v1/ones"
HELM = "pulumi-resource-kubernetes"


@dataclass(frozen=True)
class State:
    """A resource as Pulumi's state has it."""

    urn: str
    id: str
    inputs: Properties
    outputs: Properties


def urn(token: str, name: str = "it") -> str:
    return f"urn:pulumi:dev::p::{token}::{name}"


@dataclass
class Update:
    """The requests to one plugin process."""

    plugin: Plugin

    async def create(self, urn: str, declared: Properties, *, preview: bool = False) -> State:
        inputs = await self.plugin.check(urn, declared)
        made = await self.plugin.create(urn, inputs, preview=preview)
        return State(urn, made.id, inputs, from_struct(made.properties))

    async def keep(self, old: State, declared: Properties) -> list[str]:
        """What an update does to a resource whose place it does not change; returns the paths that differ."""
        inputs = await self.plugin.check(old.urn, declared, old.inputs)
        request = provider_pb2.DiffRequest(
            urn=old.urn, id=old.id, old_inputs=struct(old.inputs), olds=struct(old.outputs), news=struct(inputs)
        )
        return sorted((await self.plugin.stub.Diff(request)).detailedDiff)

    async def update(self, old: State, declared: Properties) -> State:
        inputs = await self.plugin.check(old.urn, declared, old.inputs)
        made = await self.plugin.update(old.urn, old.outputs, inputs, name=old.id, old_inputs=struct(old.inputs))
        return State(old.urn, old.id, inputs, from_struct(made.properties))

    async def read(self, old: State) -> Properties | None:
        found = await self.plugin.read(old.urn, old.outputs, old.inputs, name=old.id)
        return from_struct(found.properties) if found.id else None

    async def delete(self, old: State) -> None:
        await self.plugin.delete(old.urn, old.outputs, name=old.id, old_inputs=struct(old.inputs))


Begin = Callable[[], Awaitable[Update]]


@dataclass(frozen=True)
class Way:
    """How Pulumi replaces a resource."""

    compared: bool = False
    """By `replaceOnChanges`: the difference is asked for, and then made a replacement."""
    deleted_first: bool = False
    """By `deleteBeforeReplace: true`."""
    renamed: bool = False
    """It is declared under another name or parent, without an alias: created, and at the end the old one deleted."""
    killed: bool = False
    """The plugin is killed after the creation; the next update deletes what the state has as pending deletion."""

    async def __call__(self, begin: Begin, old: State, declared: Properties) -> State:
        up, urn = await begin(), f"{old.urn}-renamed" if self.renamed else old.urn
        if self.compared:
            await up.keep(old, declared)
        if self.deleted_first:
            await up.plugin.check(urn, declared)
            await up.delete(old)
            return await up.create(urn, declared)
        new = await up.create(urn, declared)
        if self.killed:
            up = await begin()
            await up.keep(new, declared)
        await up.delete(old)
        return new


ON_CHANGES = {
    "on_changes_create_first": Way(compared=True),
    "on_changes_delete_first": Way(compared=True, deleted_first=True),
}
WAYS = {
    "create_first": Way(),
    "delete_first": Way(deleted_first=True),
    **ON_CHANGES,
    "killed_between": Way(killed=True),
    "another_urn": Way(renamed=True),
    "another_urn_killed_between": Way(renamed=True, killed=True),
}


@dataclass
class Example:
    """A resource of a class, in a cluster that an API server in memory stands in for."""

    inputs: Properties = field(default_factory=dict)
    """Besides the cluster's place, for a resource in one."""
    served: tuple[str, ...] = ()
    """Collections of the API that it needs."""
    needs: tuple[type[Resource], ...] = ()
    """Resources that are there first."""
    joined: tuple[tuple[str, Object], ...] = ()
    """Objects, by collection, that other programs make beside it once it is there."""
    moving: tuple[str, ...] = ()
    """The ends of paths of what may differ after a replacement."""
    changed: Properties = field(default_factory=dict)
    """Inputs that change in place, unless `replaceOnChanges` names them."""
    in_cluster: bool = True
    """Whether it takes a cluster's place."""


def react(collection: str, made: Object) -> None:
    """What controllers do with new objects."""
    made["metadata"].setdefault("generation", 1)
    if collection == CRDS:
        made["status"] = {"conditions": [{"type": "Established", "status": "True"}]}
    if collection.endswith("/deployments"):
        made["status"] = {"observedGeneration": 1, "updatedReplicas": 1, "readyReplicas": 1}
    if made.get("type") == "kubernetes.io/service-account-token":
        made["data"] = {"token": "dG9rZW4=", "ca.crt": "Y2E="}
    if collection.endswith("/multikueueclusters"):
        made["status"] = {"conditions": [{"type": "Active", "status": "True"}]}


_RBAC = "/apis/rbac.authorization.k8s.io/v1"
BINDINGS = f"{_RBAC}/namespaces/team/rolebindings"


def binding(role: str = "edit", **labels: str) -> Object:
    """A binding of a role as a manifest."""
    return {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "RoleBinding",
        "metadata": {"name": "team", "namespace": "team", "labels": labels},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role},
        "subjects": [{"kind": "ServiceAccount", "name": "team", "namespace": "team"}],
    }


def discovery(store: Store) -> None:
    """What a cluster with Kueue says of its kinds."""
    for path, answer in (
        (f"/apis/{federation.API}", {"resources": [{"kind": "MultiKueueCluster"}]}),
        ("/apis", {"groups": []}),
        (_RBAC, {"resources": [{"name": "rolebindings", "kind": "RoleBinding", "namespaced": True}]}),
        ("/api/v1", {"resources": []}),
    ):
        store.objects[path] = {"metadata": {}, **answer}


def autoscaler(name: str) -> AnyAutoscaler:
    """An autoscaler of somebody else's, whose program is no tool of ours."""

    def deployment(asked: Mapping[str, Any]) -> list[Object]:
        where = {"name": name, "namespace": "kube-system"}
        template = {"spec": {"containers": [{"name": name, "image": asked["image"]}]}}
        spec = {"selector": {"matchLabels": {"app": name}}, "template": template}
        return [
            {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": dict(where)},
            {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": dict(where), "spec": spec},
        ]

    return AnyAutoscaler(name, "", "", "", (), lambda *_: {}, lambda _: [], lambda _: [], (), "", deployment)


_KUEUE = f"/apis/{federation.API}"
_MEMBER = (
    *(f"/api/v1/namespaces/kueue-system/{plural}" for plural in ("serviceaccounts", "secrets")),
    *(f"{_RBAC}/{plural}" for plural in ("clusterroles", "clusterrolebindings")),
    *(f"{_RBAC}/namespaces/{name}/{plural}" for name in ("default", "team") for plural in ("roles", "rolebindings")),
    *(f"{_KUEUE}/{kind}s" for kind in ("multikueuecluster", "multikueueconfig", "admissioncheck", "resourceflavor")),
    f"{_KUEUE}/clusterqueues",
    *(f"{_KUEUE}/namespaces/{name}/localqueues" for name in ("default", "team")),
)
_QUEUE = {"namespaces": ["default"], "quota": {"cpu": "1"}}
_OF_RELEASE = {"namespace": "n", "name": "r"}
_WORKLOADS = tuple(f"/apis/apps/v1/namespaces/n/{each}" for each in ("deployments", "statefulsets", "daemonsets"))
_AUTOSCALED = (
    "/api/v1/namespaces/kube-system/serviceaccounts",
    "/api/v1/namespaces/kube-system/pods",
    "/apis/apps/v1/namespaces/kube-system/deployments",
    CRDS,
)


def _fabric(nodes: int) -> dict[str, Any]:
    return {"a-z": {"zone": "z", "replicas": nodes, "topology": {"rack": {"label": "e.io/rack", "nodes": 2}}}}


def release() -> Object:
    """The revision of a release that the stack's state has."""
    labels = {"owner": "helm", "name": "r", "version": "1", "status": "deployed", RECORDED: "true", STACK_ID: MINE}
    told = {"info": {"status": "deployed", "description": "repaired 2 times"}}
    return {"metadata": {"name": "sh.helm.release.v1.r.v1", "labels": labels}, "data": {"release": encoded(told)}}


def brought(name: str) -> Object:
    """A CRD as Helm makes it."""
    return crd(name, managedFields=[{"manager": HELM, "operation": "Apply"}])


EXAMPLES: Mapping[type[Resource], Example] = {
    StackIdentityResource: Example(in_cluster=False),
    # Its note has the URN.
    ClusterResource: Example(moving=("kumulus.json",), in_cluster=False),
    Lifetime: Example({"clusterIdentity": "uid"}, in_cluster=False),
    DestroyCheck: Example({"name": "dev", "runtime": "kwok"}, in_cluster=False),
    NodePool: Example(pool_to_properties(POOL), changed={"replicas": 5, "taints": []}),
    HyperNodes: Example({"pools": _fabric(4)}, (HYPERNODES,), changed={"pools": _fabric(2)}),
    FaultResource: Example(
        {"name": "xid", "nodes": {POOL.name: "0-3"}, "node": {"capacity": {GPU: "-1"}}},
        needs=(NodePool,),
        changed={"nodes": {POOL.name: "3-4"}, "node": {"capacity": {GPU: "-2"}}},
    ),
    NamespaceResource: Example(
        {"name": "team", "stack": "organization/p/dev", "labels": {"a": "b"}},
        (NAMESPACES,),
        changed={"labels": {"c": "d"}},
    ),
    KubernetesObjectResource: Example({"manifest": binding(a="b")}, (BINDINGS,), changed={"manifest": binding(c="d")}),
    AutoscalerResource: Example(
        {"autoscaler": {"name": "theirs", "image": "theirs:1"}},
        _AUTOSCALED,
        changed={"autoscaler": {"name": "others", "image": "others:1"}},
    ),
    Definitions: Example(
        {"group": "things.io"},
        (CRDS, ONES, "/api/v1/secrets"),
        joined=((CRDS, brought("ones.things.io")), ("/api/v1/secrets", release())),
    ),
    ReleasePreparation: Example(
        {**_OF_RELEASE, "createNamespace": True},
        (NAMESPACES, SECRETS),
        joined=((SECRETS, release()),),
        # It is marked as failed, so that the release's own resource, which follows `repairs`, upgrades it.
        moving=("sh.helm.release.v1.r.v1",),
    ),
    ChartCrds: Example({"name": "r", "chart": "/charts/r"}, (CRDS, ONES, "/api/v1/secrets")),
    ReleaseMark: Example(_OF_RELEASE, (SECRETS,), joined=((SECRETS, release()),)),
    ReleaseReady: Example({**_OF_RELEASE, "timeout": 1}, _WORKLOADS),
    FederationWorker: Example(
        {"hub": "dev", "queue": "w", **_QUEUE}, _MEMBER, changed={"hub": "other", "namespaces": ["team"]}
    ),
    FederationHub: Example(
        {"queue": "q", "workers": {}, **_QUEUE}, _MEMBER, needs=(FederationWorker,), changed={"namespaces": ["team"]}
    ),
}
"""Of every class: a test fails if one is missing."""


def declared(resource: type[Resource], place: Properties, home: Path) -> Properties:
    """What a program declares of an example."""
    example = EXAMPLES[resource]
    if resource is ClusterResource:
        options = {"kubeconfig": place["kubeconfig"], "context": "c"}
        return {"name": "dev", "runtime": "existing", "home": str(home), "options": options, "stackId": MINE}
    if resource is FederationHub:
        worker = {"kubeconfig": place["kubeconfig"], "clusterIdentity": place["clusterIdentity"]}
        return {**place, **example.inputs, "workers": {"one": worker}}
    return {**(place if example.in_cluster else {}), **example.inputs}

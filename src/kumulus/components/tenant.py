"""``Tenant``: a namespace with a quota, rights that end at its border, and a kubeconfig with only those rights."""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal, Required, TypedDict, Unpack, cast

import pulumi

from kumulus.components.arguments import SectionOf, checked, fields
from kumulus.components.inputs import CheckedInputs, problems_explained, within
from kumulus.components.mistakes import collected
from kumulus.components.resources import ClusterLike, InCluster, KubernetesObject, depended_on
from kumulus.model.errors import SpecError, shown
from kumulus.model.identity import POD_SECURITY_LABEL, TENANT_LABEL
from kumulus.model.pools import CLUSTER_LABEL
from kumulus.stackfile import tenants
from kumulus.stackfile.yamltext import written

ACCOUNT = "kumulus-tenant"
"""The name of the service account and of the quota; those of the other objects in the namespace begin with it."""

_LOOK = ["get", "list", "watch"]
_RBAC = "rbac.authorization.k8s.io"


class TenantArgs(TypedDict, total=False):
    """Arguments of a Tenant."""

    cluster: Required[ClusterLike]
    """The cluster it shares."""
    tenant_name: str
    """The tenant's name. Default: the resource's name."""
    namespace: str
    """The namespace that is created for it. Default: the tenant's name."""
    quota: pulumi.Input[Mapping[str, pulumi.Input[str | int]]]
    """The hard limits of a ResourceQuota, such as ``{"requests.nvidia.com/gpu": "16", "pods": 200}``. Default: none."""
    role: Literal["view", "edit", "admin"]
    """The built-in ClusterRole that it has in the namespace. Default: ``edit``."""
    rules: Annotated[Sequence[Mapping[str, Any]], SectionOf("kumulus.stackfile.tenants:RuleSpec")]
    """More permissions, such as ``[{"apiGroups": ["batch.volcano.sh"], "resources": ["jobs"], "verbs": ["get"]}]``."""
    pod_security: Literal["privileged", "baseline", "restricted"]
    """The Pod Security Standard that is enforced in the namespace. Default: ``baseline``."""
    read_nodes: bool
    """Whether it may read nodes, which belong to no namespace. Default: True."""
    labels: pulumi.Input[Mapping[str, pulumi.Input[str]]]
    """Labels of the namespace."""
    annotations: pulumi.Input[Mapping[str, pulumi.Input[str]]]
    """Annotations of the namespace."""
    credential: int
    """Another number creates a new credential and revokes the previous one. Default: 1."""


_FIELDS = fields(TenantArgs, but=("cluster", "tenant_name"))
_NAMES = {field: name for name, field in _FIELDS.items()}


@collected
class Tenant(pulumi.ComponentResource):
    """Somebody who shares a cluster.

    Args:
        resource_name: its name in the stack, and the tenant's unless that has another.
        opts: Pulumi's resource options; what they depend on is there before anything of the tenant.
    """

    namespace: pulumi.Output[str]
    """The name of its namespace, known in previews."""
    kubeconfig: pulumi.Output[str]
    """A kubeconfig that is good for its namespace and no more, a secret."""

    def __init__(
        self, resource_name: str, *, opts: pulumi.ResourceOptions | None = None, **args: Unpack[TenantArgs]
    ) -> None:
        source = f"Tenant {resource_name}"
        named_by = "tenant_name" if args.get("tenant_name") else "resource_name"
        names = {**_NAMES, "name": named_by}
        # CheckedInputs explains its own problems; those of the tenant's place are explained here.
        with checked(args, TenantArgs, source) as wrong, problems_explained(source, names):
            values = {field: args.get(name) for name, field in _FIELDS.items()}
            values["name"] = args.get("tenant_name") or resource_name
            found = CheckedInputs(tenants.TenantSpec, source, values, names)
            tenant = found.plain
            if together := tenants.tenant_problems([(0, tenant.model_dump())]):
                raise SpecError(within(together, "tenants[0]"))
            if other := args["cluster"].namespaces.get(tenant.home):
                argument = "namespace" if tenant.namespace else named_by
                message = f"is the namespace {shown(tenant.home)}, which Tenant {other} already has"
                wrong.add(argument, message, "write another namespace: a quota is for one tenant")
        cluster = args["cluster"]
        cluster.namespaces[tenant.home] = resource_name
        super().__init__("kumulus:index:Tenant", resource_name, None, opts)
        self._tenant, self._cluster, self._after = tenant, cluster, depended_on(opts)
        self._prefix = f"{resource_name}-tenant"
        self._labels = {CLUSTER_LABEL: cluster.cluster_name, TENANT_LABEL: tenant.name}
        self._home = InCluster(
            "kumulus:index:Namespace",
            f"{self._prefix}-namespace",
            cluster,
            {
                "name": tenant.home,
                "stack": f"{pulumi.get_organization()}/{pulumi.get_project()}/{pulumi.get_stack()}",
                "labels": _merged({POD_SECURITY_LABEL: tenant.podSecurity}, found["labels"], self._labels),
                "annotations": found["annotations"],
            },
            pulumi.ResourceOptions(parent=self, depends_on=self._after, deleted_with=cluster.deleted_with),
        )
        if found.is_later("quota") or tenant.quota:
            self._object("quota", "v1", "ResourceQuota", ACCOUNT, spec={"hard": found["quota"]})
        account = self._object("account", "v1", "ServiceAccount", ACCOUNT)
        rights = self._rights(account)
        self.namespace = pulumi.Output.from_input(tenant.home)
        self.kubeconfig = self._credential(account, rights)
        self.register_outputs({"namespace": tenant.home})

    def _object(
        self,
        suffix: str,
        api_version: str,
        kind: str,
        name: str,
        *,
        after: Sequence[pulumi.Resource] = (),
        annotations: Mapping[str, str] | None = None,
        **content: Any,
    ) -> KubernetesObject:
        """Declare one of the tenant's objects, in its namespace unless objects of that kind are in none."""
        where = {} if kind.startswith("Cluster") else {"namespace": self._tenant.home}
        metadata = {"name": name, **where, "labels": self._labels, "annotations": dict(annotations or {})}
        return KubernetesObject(
            f"{self._prefix}-{suffix}",
            self._cluster,
            {"apiVersion": api_version, "kind": kind, "metadata": metadata, **content},
            parent=self,
            after=[self._home, *self._after, *after],
        )

    def _rights(self, account: KubernetesObject) -> list[pulumi.Resource]:
        """Declare the service account's rights; returns what its token waits for.

        A binding's role cannot be changed, so its name includes the role: a new one is made before the old is deleted.
        """
        subject = {"kind": "ServiceAccount", "name": ACCOUNT, "namespace": self._tenant.home}
        role = self._tenant.role

        def bound(
            suffix: str, kind: str, name: str, role_kind: str, role_name: str, *roles: KubernetesObject
        ) -> KubernetesObject:
            reference = {"apiGroup": _RBAC, "kind": role_kind, "name": role_name}
            return self._object(
                suffix, f"{_RBAC}/v1", kind, name, after=[account, *roles], roleRef=reference, subjects=[subject]
            )

        rights: list[pulumi.Resource] = [bound(role, "RoleBinding", f"{ACCOUNT}-{role}", "ClusterRole", role)]
        if self._tenant.rules:
            rules = [{key: list(value) for key, value in rule.model_dump().items()} for rule in self._tenant.rules]
            name = f"{ACCOUNT}-rules"
            made = self._object("role", f"{_RBAC}/v1", "Role", name, rules=rules)
            rights.append(bound("rules", "RoleBinding", name, "Role", name, made))
        if self._tenant.readNodes:
            # Its name is as unique as the namespace's.
            name = f"kumulus:{self._tenant.home}:nodes"
            rule = {"apiGroups": [""], "resources": ["nodes"], "verbs": _LOOK}
            made = self._object("nodes", f"{_RBAC}/v1", "ClusterRole", name, rules=[rule])
            rights.append(bound("nodes-binding", "ClusterRoleBinding", name, "ClusterRole", name, made))
        return rights

    def _credential(self, account: KubernetesObject, rights: Sequence[pulumi.Resource]) -> pulumi.Output[str]:
        """Declare a token of the service account, which lasts as long as its Secret; returns a kubeconfig with it."""
        token = self._object(
            "token",
            "v1",
            "Secret",
            f"{ACCOUNT}-{self._tenant.credential}",
            after=[account, *rights],
            annotations={"kubernetes.io/service-account.name": ACCOUNT},
            type="kubernetes.io/service-account-token",
        )
        name, namespace = self._tenant.name, self._tenant.home
        return pulumi.Output.secret(
            pulumi.Output.all(self._cluster.server, token.data).apply(
                lambda known: kubeconfig(f"{name}@{self._cluster.cluster_name}", namespace, known[0], known[1])
            )
        )


def arguments_of(tenant: tenants.TenantSpec, cluster: ClusterLike) -> TenantArgs:
    """The arguments of a Tenant for a stack file's tenant, which shares a cluster."""
    fields = tenant.model_dump(exclude_unset=True, exclude={"name"})
    return cast(
        TenantArgs,
        {"cluster": cluster, "tenant_name": tenant.name} | {_NAMES[field]: value for field, value in fields.items()},
    )


def _merged(below: Mapping[str, str], own: Any, above: Mapping[str, str]) -> Any:
    """The tenant's own labels, which may be an output, merged over some labels and under others."""
    if isinstance(own, pulumi.Output):
        return own.apply(lambda known: {**below, **known, **above})
    return {**below, **own, **above}


def kubeconfig(context: str, namespace: str, server: str, data: Mapping[str, str] | None) -> str:
    """A kubeconfig, as YAML, from the data of the token's Secret: ``token`` and ``ca.crt`` in base64.

    Its cluster, user and context are called after ``context``. Raises pulumi.RunError if there is no token.
    """
    if not data or not {"token", "ca.crt"} <= {*data}:
        raise pulumi.RunError(
            f"tenant {context}: the cluster wrote no token into its Secret; see that kube-controller-manager runs, "
            "and give the tenant another number as `credential`"
        )
    document = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": context,
        "clusters": [{"name": context, "cluster": {"server": server, "certificate-authority-data": data["ca.crt"]}}],
        "users": [{"name": context, "user": {"token": base64.b64decode(data["token"]).decode()}}],
        "contexts": [{"name": context, "context": {"cluster": context, "user": context, "namespace": namespace}}],
    }
    return written(document)

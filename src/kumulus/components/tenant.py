"""``Tenant``: a namespace with a quota, rights that end at its border, and a kubeconfig with only those rights."""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal, Required, TypedDict, Unpack, cast

import pulumi
from pulumi_kubernetes.core.v1 import ResourceQuota, Secret, ServiceAccount
from pulumi_kubernetes.rbac.v1 import ClusterRole, ClusterRoleBinding, Role, RoleBinding

from kumulus.components.arguments import SectionOf, check, fields
from kumulus.components.inputs import Checked, problems_explained, within
from kumulus.components.resources import ClusterLike, InCluster, depended_on, marked
from kumulus.model.errors import SpecError
from kumulus.model.identity import POD_SECURITY_LABEL, TENANT_LABEL
from kumulus.model.pools import CLUSTER_LABEL
from kumulus.stackfile import tenants
from kumulus.stackfile.yamltext import written

ACCOUNT = "kumulus-tenant"
"""The name of the service account, and of what is the tenant's in its namespace."""

_LOOK = ["get", "list", "watch"]
_RBAC = "rbac.authorization.k8s.io"


class TenantArgs(TypedDict, total=False):
    """Arguments of a Tenant."""

    cluster: Required[ClusterLike]
    """The cluster it shares."""
    tenant_name: str
    """The tenant's name. Default: the resource's name."""
    namespace: str
    """The namespace that is created for it. Default: one of the tenant's name."""
    quota: pulumi.Input[Mapping[str, pulumi.Input[str | int]]]
    """The hard limits of a ResourceQuota, such as ``{"requests.nvidia.com/gpu": "16", "pods": 200}``. Default: none."""
    role: Literal["view", "edit", "admin"]
    """The built-in ClusterRole that it has in the namespace. Default: ``edit``."""
    rules: Annotated[Sequence[Mapping[str, Any]], SectionOf("kumulus.stackfile.tenants:Rule")]
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
_NAMES = {"name": "resource_name", **{field: name for name, field in _FIELDS.items()}}


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
        check(args, TenantArgs, source)
        given = {field: args.get(name) for name, field in _FIELDS.items()}
        found = Checked(tenants.Tenant, source, {**given, "name": args.get("tenant_name") or resource_name}, _NAMES)
        tenant, cluster = found.plain, args["cluster"]
        with problems_explained(source, _NAMES):
            if wrong := tenants.tenant_problems([(0, tenant.model_dump())]):
                raise SpecError(within(wrong, "tenants[0]"))
        super().__init__("kumulus:index:Tenant", resource_name, None, opts)
        self._home_name = tenant.home
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
                "labels": _laid({POD_SECURITY_LABEL: tenant.podSecurity}, found["labels"], self._labels),
                "annotations": found["annotations"],
            },
            pulumi.ResourceOptions(parent=self, depends_on=self._after, deleted_with=cluster.end),
        )
        if found.is_later("quota") or tenant.quota:
            quota = f"{self._prefix}-quota"
            ResourceQuota(quota, metadata=self._metadata(ACCOUNT), spec={"hard": found["quota"]}, opts=self._opts())
        account = ServiceAccount(f"{self._prefix}-account", metadata=self._metadata(ACCOUNT), opts=self._opts())
        rights = self._rights(account)
        self.namespace = pulumi.Output.from_input(tenant.home)
        self.kubeconfig = self._credential(account, rights)
        self.register_outputs({"namespace": tenant.home})

    def _metadata(self, name: str) -> dict[str, Any]:
        return marked({"name": name, "namespace": self._home_name, "labels": self._labels}, self._cluster)

    def _opts(self, after: Sequence[pulumi.Resource] = ()) -> pulumi.ResourceOptions:
        return pulumi.ResourceOptions(
            parent=self,
            provider=self._cluster.kubernetes,
            depends_on=[self._home, *self._after, *after],
            # The lifetime, not the cluster: see docs/decisions/deleted-with.md.
            deleted_with=self._cluster.lifetime,
            delete_before_replace=False,
        )

    def _rights(self, account: ServiceAccount) -> list[pulumi.Resource]:
        """The service account's rights; a binding's role is immutable, so another role needs another binding."""
        subject = {"kind": "ServiceAccount", "name": ACCOUNT, "namespace": self._home_name}
        role = self._tenant.role

        def bound(name: str, kind: str, role_name: str) -> RoleBinding:
            return RoleBinding(
                f"{self._prefix}-{name}",
                metadata=self._metadata(f"{ACCOUNT}-{name}"),
                role_ref={"apiGroup": _RBAC, "kind": kind, "name": role_name},
                subjects=[subject],
                opts=self._opts([account]),
            )

        rights: list[pulumi.Resource] = [bound(role, "ClusterRole", role)]
        if self._tenant.rules:
            rules = [{key: list(value) for key, value in rule.model_dump().items()} for rule in self._tenant.rules]
            name = f"{ACCOUNT}-rules"
            Role(f"{self._prefix}-role", metadata=self._metadata(name), rules=rules, opts=self._opts())
            rights.append(bound("rules", "Role", name))
        if self._tenant.readNodes:
            # Its name is as unique as the namespace's.
            metadata = marked({"name": f"kumulus:{self._home_name}:nodes", "labels": self._labels}, self._cluster)
            rule = {"apiGroups": [""], "resources": ["nodes"], "verbs": _LOOK}
            ClusterRole(f"{self._prefix}-nodes", metadata=metadata, rules=[rule], opts=self._opts())
            rights.append(
                ClusterRoleBinding(
                    f"{self._prefix}-nodes-binding",
                    metadata=metadata,
                    role_ref={"apiGroup": _RBAC, "kind": "ClusterRole", "name": metadata["name"]},
                    subjects=[subject],
                    opts=self._opts([account]),
                )
            )
        return rights

    def _credential(self, account: ServiceAccount, rights: Sequence[pulumi.Resource]) -> pulumi.Output[str]:
        """A token of the service account that is valid as long as its Secret, and the kubeconfig with it."""
        metadata = self._metadata(f"{ACCOUNT}-{self._tenant.credential}")
        metadata["annotations"] = {"kubernetes.io/service-account.name": ACCOUNT}
        token = Secret(
            f"{self._prefix}-token",
            metadata=metadata,
            type="kubernetes.io/service-account-token",
            # The cluster writes the token.
            opts=pulumi.ResourceOptions.merge(
                self._opts([account, *rights]), pulumi.ResourceOptions(additional_secret_outputs=["data"])
            ),
        )
        name, namespace = self._tenant.name, self._home_name
        return pulumi.Output.secret(
            pulumi.Output.all(self._cluster.server, token.data).apply(
                lambda known: kubeconfig(f"{name}@{self._cluster.cluster_name}", namespace, known[0], known[1])
            )
        )


def arguments_of(tenant: tenants.Tenant, cluster: ClusterLike) -> TenantArgs:
    """The arguments of a Tenant for a stack file's tenant, which shares a cluster."""
    given = tenant.model_dump(exclude_unset=True, exclude={"name"})
    return cast(
        TenantArgs,
        {"cluster": cluster, "tenant_name": tenant.name} | {_NAMES[field]: value for field, value in given.items()},
    )


def _laid(below: Mapping[str, str], given: Any, above: Mapping[str, str]) -> Any:
    """The given labels, which may be an output, merged over some labels and under others."""
    if isinstance(given, pulumi.Output):
        return given.apply(lambda known: {**below, **known, **above})
    return {**below, **given, **above}


def kubeconfig(context: str, namespace: str, server: str, data: Mapping[str, str] | None) -> str:
    """A kubeconfig, as YAML.

    Args:
        context: what its cluster, user and context are called.
        namespace: the default namespace of commands.
        data: of the token's Secret, as the API has it: ``token`` and ``ca.crt`` in base64.

    Raises:
        pulumi.RunError: the cluster has written no token into the Secret.
    """
    if not data or not {"token", "ca.crt"} <= {*data}:
        raise pulumi.RunError(
            f"tenant {context}: the cluster wrote no token into its Secret; see that kube-controller-manager runs, "
            "and write another `credential:` for the tenant"
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

"""``Tenant``: a namespace with a quota, rights that end at its border, and a kubeconfig that has no more than those."""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from typing import Any

import pulumi
import pulumi_kubernetes as kubernetes
import yaml
from pulumi_kubernetes.core.v1 import ResourceQuota, Secret, ServiceAccount
from pulumi_kubernetes.rbac.v1 import ClusterRole, ClusterRoleBinding, Role, RoleBinding

from components.resources import ClusterLike, Namespace
from spec import tenants
from spec.pools import CLUSTER_LABEL
from spec.tenancy import POD_SECURITY_LABEL, TENANT_LABEL

ACCOUNT = "kumulus-tenant"
"""The name of the service account, and of what is the tenant's in its namespace."""

_LOOK = ["get", "list", "watch"]
_RBAC = "rbac.authorization.k8s.io"


class Tenant(pulumi.ComponentResource):
    """Somebody who shares a cluster.

    Args:
        resource_name: its name in the stack.
        tenant: namespace, quota and rights, as in the stack file's ``tenants``.
        cluster: the cluster component it shares.
        provider: the Kubernetes provider of that cluster.
        opts: Pulumi's resource options.

    Attributes:
        namespace: the name of its namespace, known in previews.
        kubeconfig: what its kubeconfig says, a secret.
    """

    kubeconfig: pulumi.Output[str]

    def __init__(
        self,
        resource_name: str,
        *,
        tenant: tenants.Tenant,
        cluster: ClusterLike,
        provider: kubernetes.Provider,
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        super().__init__("kumulus:index:Tenant", resource_name, None, opts)
        self.namespace = tenant.home
        self._tenant, self._cluster, self._provider = tenant, cluster, provider
        self._prefix = f"{resource_name}-tenant"
        self._labels = {CLUSTER_LABEL: cluster.cluster_name, TENANT_LABEL: tenant.name}
        self._home = Namespace(
            f"{self._prefix}-namespace",
            name=self.namespace,
            labels={POD_SECURITY_LABEL: tenant.podSecurity, **tenant.labels, **self._labels},
            annotations=tenant.annotations,
            cluster=cluster,
            opts=pulumi.ResourceOptions(parent=self, deleted_with=cluster.end),
        )
        if tenant.quota:
            quota = f"{self._prefix}-quota"
            ResourceQuota(quota, metadata=self._metadata(ACCOUNT), spec={"hard": tenant.quota}, opts=self._opts())
        account = ServiceAccount(f"{self._prefix}-account", metadata=self._metadata(ACCOUNT), opts=self._opts())
        rights = self._rights(account)
        self.kubeconfig = self._credential(account, rights)
        self.register_outputs({"namespace": self.namespace})

    def _metadata(self, name: str) -> dict[str, Any]:
        return {"name": name, "namespace": self.namespace, "labels": self._labels}

    def _opts(self, after: Sequence[pulumi.Resource] = ()) -> pulumi.ResourceOptions:
        return pulumi.ResourceOptions(
            parent=self,
            provider=self._provider,
            depends_on=[self._home, *after],
            # Not the cluster: see docs/decisions/deleted-with.md.
            deleted_with=self._cluster.lifetime,
            delete_before_replace=False,
        )

    def _rights(self, account: ServiceAccount) -> list[pulumi.Resource]:
        """What the service account may do; a binding's role cannot change, so another role is another binding."""
        subject = {"kind": "ServiceAccount", "name": ACCOUNT, "namespace": self.namespace}
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
            metadata = {"name": f"kumulus:{self.namespace}:nodes", "labels": self._labels}
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
        """A token of the service account that lives as long as its Secret, and the kubeconfig with it."""
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
        name, namespace = self._tenant.name, self.namespace
        return pulumi.Output.secret(
            pulumi.Output.all(self._cluster.resource.server, token.data).apply(
                lambda known: kubeconfig(f"{name}@{self._cluster.cluster_name}", namespace, known[0], known[1])
            )
        )


def kubeconfig(context: str, namespace: str, server: str, data: Mapping[str, str] | None) -> str:
    """A kubeconfig, as YAML.

    Args:
        context: what its cluster, user and context are called.
        namespace: where commands go that name none.
        server: the API server's address.
        data: of the token's Secret, as the API has it: ``token`` and ``ca.crt`` in base64.

    Raises:
        pulumi.RunError: the cluster has written no token into it.
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
    return yaml.safe_dump(document, sort_keys=False)

"""What other stacks have in the namespaces of a cluster's tenants, and would lose with the cluster."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kumulus.kube import objects
from kumulus.kube.errors import tolerating
from kumulus.kube.media import METADATA_ONLY
from kumulus.kube.namespaces import NAMESPACES
from kumulus.model.tenancy import TENANT_LABEL

if TYPE_CHECKING:
    from kumulus.kube import Client

# What a team deploys; the rest comes and goes with these.
_KINDS = {
    "Job": ("/apis/batch/v1", "jobs"),
    "CronJob": ("/apis/batch/v1", "cronjobs"),
    "Deployment": ("/apis/apps/v1", "deployments"),
    "StatefulSet": ("/apis/apps/v1", "statefulsets"),
    "DaemonSet": ("/apis/apps/v1", "daemonsets"),
    "Service": ("/api/v1", "services"),
    "ConfigMap": ("/api/v1", "configmaps"),
    "PersistentVolumeClaim": ("/api/v1", "persistentvolumeclaims"),
    "Pod": ("/api/v1", "pods"),
}
# The field manager of objects that pulumi-kubernetes applies, before a suffix of eight letters.
_PULUMI = "pulumi-kubernetes"


async def guests(client: Client) -> dict[str, list[str]]:
    """What stacks made in tenants' namespaces, apart from the tenant itself, such as ``Job training``; by namespace."""
    found: dict[str, list[str]] = {}
    for namespace in await objects.names(client, NAMESPACES, {"labelSelector": TENANT_LABEL}):
        made: list[str] = []
        for kind, (group, plural) in _KINDS.items():
            collection = f"{group}/namespaces/{namespace}/{plural}"
            pages = client.pages(collection, {"labelSelector": f"!{TENANT_LABEL}"}, accept=METADATA_ONLY)
            # A cluster need not serve all of these.
            with tolerating(404):
                made += [
                    f"{kind} {item['metadata']['name']}" async for page in pages for item in page if _of_stack(item)
                ]
        if made:
            found[namespace] = sorted(made)
    return found


def _of_stack(item: dict[str, Any]) -> bool:
    metadata = item["metadata"]
    managers = [str(entry.get("manager", "")) for entry in metadata.get("managedFields") or ()]
    return not metadata.get("ownerReferences") and any(each.startswith(_PULUMI) for each in managers)

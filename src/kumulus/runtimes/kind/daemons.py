"""Keep the DaemonSets of kind and kubeadm (the pod network, kube-proxy) to the nodes that kind made.

They tolerate every taint, so each emulated node would get a pod of each. Nobody asked for these pods, and each costs
the API server more writes than the node itself.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kumulus.kube.media import STRATEGIC_MERGE_PATCH
from kumulus.model import real_nodes

if TYPE_CHECKING:
    from kumulus.kube import Client

_DAEMON_SETS = "/apis/apps/v1/namespaces/kube-system/daemonsets"


async def keep_to_real_nodes(client: Client) -> None:
    """Make a new cluster's DaemonSets avoid emulated nodes; one that has a node affinity already is left alone."""
    change = {"spec": {"template": {"spec": {"affinity": real_nodes.affinity()}}}}
    for each in (await client.get(_DAEMON_SETS))["items"]:
        if not _chooses_nodes(each):
            path = f"{_DAEMON_SETS}/{each['metadata']['name']}"
            await client.write("PATCH", path, change, content_type=STRATEGIC_MERGE_PATCH)


def _chooses_nodes(daemon_set: dict[str, Any]) -> bool:
    return bool((daemon_set["spec"]["template"]["spec"].get("affinity") or {}).get("nodeAffinity"))

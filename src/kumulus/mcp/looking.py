"""What an agent may ask of any cluster: nodes, pods, events, and why a pod is where it is."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Annotated, Any

from pydantic import Field

from kumulus.kube.objects import NODES, inside
from kumulus.mcp.held import Held
from kumulus.model.pools import GROUP_LABEL, INSTANCE_TYPE_LABEL, ZONE_LABEL
from kumulus.testing import Node, Pod
from kumulus.testing.views import events_of

Cluster = Annotated[str, Field(description="which cluster, by its name; may be left out while there is only one")]
Selector = Annotated[str, Field(description="a label selector, as for kubectl")]
Namespace = Annotated[str, Field(description="a namespace; empty for all")]
Most = Annotated[int, Field(ge=1, le=1000, description="how many are listed at most")]

_LABELS = {"group": GROUP_LABEL, "instanceType": INSTANCE_TYPE_LABEL, "zone": ZONE_LABEL}


class Looking:
    """The tools that change nothing."""

    def __init__(self, held: Held) -> None:
        self._held = held

    async def clusters(self) -> dict[str, Any]:
        """List the clusters that can be asked, with their kubeconfigs, nodes and active faults."""
        return {"clusters": self._held.described()}

    async def nodes(self, cluster: Cluster = "", selector: Selector = "", most: Most = 50) -> dict[str, Any]:
        """List nodes: whether they are Ready, cordoned and tainted, those with something wrong first."""
        found = [Node(each) for each in await self._list(cluster, NODES, selector)]
        found.sort(key=lambda node: (node.ready and not node.unschedulable and not node.taints, node.name))
        ready, cordoned = sum(node.ready for node in found), sum(node.unschedulable for node in found)
        return {**_cut("nodes", [_node(node) for node in found[:most]], found), "ready": ready, "cordoned": cordoned}

    async def pods(
        self, cluster: Cluster = "", namespace: Namespace = "", selector: Selector = "", most: Most = 50
    ) -> dict[str, Any]:
        """List pods with their phase and node, those that do not run first."""
        found = [Pod(each) for each in await self._list(cluster, f"/api/v1{inside(namespace)}/pods", selector)]
        found.sort(key=lambda pod: (pod.phase in ("Running", "Succeeded"), pod.namespace, pod.name))
        rows = [{key: getattr(pod, key) for key in ("namespace", "name", "phase", "node")} for pod in found[:most]]
        return {**_cut("pods", rows, found), "byPhase": dict(Counter(pod.phase for pod in found))}

    async def events(self, cluster: Cluster = "", namespace: Namespace = "", most: Most = 20) -> dict[str, Any]:
        """List the last events, the latest last."""
        found = events_of(await self._list(cluster, f"/api/v1{inside(namespace)}/events"))
        return _cut("events", [str(each) for each in found[-most:]], found)

    async def why(self, pod: str, cluster: Cluster = "", namespace: str = "default") -> dict[str, Any]:
        """Say why a pod waits, fails or is where it is: its conditions, its containers, its node and its events."""
        client = self._held.client(cluster)
        found = Pod(await client.get(f"/api/v1/namespaces/{namespace}/pods/{pod}"))
        status = found.object.get("status") or {}
        events = events_of(await self._list(cluster, f"/api/v1/namespaces/{namespace}/events"))
        return {
            "phase": found.phase,
            "reason": status.get("reason") or "",
            "message": status.get("message") or "",
            "conditionsNotTrue": [
                {key: each.get(key) or "" for key in ("type", "reason", "message")}
                for each in status.get("conditions") or ()
                if each.get("status") != "True"
            ],
            "containers": {each["name"]: each.get("state") or {} for each in status.get("containerStatuses") or ()},
            "node": _node(Node(await client.get(f"{NODES}/{found.node}"))) if found.node else None,
            "events": [str(each) for each in events if (each.kind, each.name) == ("Pod", pod)],
        }

    async def _list(self, cluster: str, path: str, selector: str = "") -> list[Mapping[str, Any]]:
        params = {"labelSelector": selector} if selector else None
        return [each async for page in self._held.client(cluster).pages(path, params) for each in page]


def _node(node: Node) -> dict[str, Any]:
    return {
        "name": node.name,
        "ready": node.ready,
        "cordoned": node.unschedulable,
        "taints": [f"{each['key']}={each.get('value') or ''}:{each['effect']}" for each in node.taints],
        "conditions": {name: status for name, status in node.conditions.items() if status != "False"},
        "allocatable": node.object["status"].get("allocatable") or {},
        **{name: node.labels[label] for name, label in _LABELS.items() if label in node.labels},
    }


def _cut(name: str, rows: Sequence[Any], found: Sequence[Any]) -> dict[str, Any]:
    """A list that may be cut off, which says so."""
    return {name: rows, "count": len(found), "leftOut": len(found) - len(rows)}

"""The answers to cluster-autoscaler's calls: one coroutine for each, by its name in the interface.

What each has to do is documented in externalgrpc.proto and in the interfaces CloudProvider and NodeGroup of
cluster-autoscaler/cloudprovider/cloud_provider.go, kubernetes/autoscaler.
"""

from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any

from kumulus.extras.scaling.cluster_autoscaler import interface
from kumulus.extras.scaling.cluster_autoscaler.groups import ScalableGroups, group_of, node_of, provider_id
from kumulus.kube.messages import message_classes
from kumulus.kube.protobuf import encode_bare_node
from kumulus.model.gfd import GPU_PRODUCT_LABEL
from kumulus.model.pools import POOL_LABEL, Pool
from kumulus.model.quantity import ZERO, parse
from kumulus.nodes.pools.single import Bodies

_HOUR = 3600.0
# Each pod takes one of these, but they have no price.
_FREE = frozenset({"pods"})

_RUNNING, _CREATING = 1, 2


class NotKnown(Exception):
    """The request has no answer, such as the price of a node whose type has none."""


class Service:
    """Answers for the node groups of a cluster; ``hourly`` has the known prices of a node in US dollars, by pool."""

    def __init__(self, groups: ScalableGroups, hourly: Mapping[str, float]) -> None:
        self._groups, self._hourly = groups, hourly
        # Whether the groups were read: before the first Refresh they are unknown.
        self._read = False

    def calls(self) -> Mapping[str, Callable[[Any], Awaitable[dict[str, Any]]]]:
        """The function for each of the interface's calls, from its request to the fields of its response."""
        return {
            "NodeGroups": self._node_groups,
            "NodeGroupForNode": self._node_group_for_node,
            "PricingNodePrice": self._node_price,
            "PricingPodPrice": self._pod_price,
            "GPULabel": self._gpu_label,
            "GetAvailableGPUTypes": self._gpu_types,
            "Cleanup": self._cleanup,
            "Refresh": self._refresh,
            "NodeGroupTargetSize": self._target_size,
            "NodeGroupIncreaseSize": self._increase_size,
            "NodeGroupDeleteNodes": self._delete_nodes,
            "NodeGroupDecreaseTargetSize": self._decrease_target_size,
            "NodeGroupNodes": self._nodes,
            "NodeGroupTemplateNodeInfo": self._template,
            "NodeGroupGetOptions": self._options,
        }

    async def _pools(self) -> Mapping[str, Pool]:
        if not self._read:
            await self._groups.refresh()
            self._read = True
        return self._groups.pools

    async def _node_groups(self, request: Any) -> dict[str, Any]:
        return {"nodeGroups": [_group(pool) for pool in (await self._pools()).values()]}

    async def _node_group_for_node(self, request: Any) -> dict[str, Any]:
        pool = group_of(await self._pools(), request.node.name, request.node.labels)
        # An empty ID says that the node is not the provider's, so cluster-autoscaler ignores it.
        return {"nodeGroup": _group(pool) if pool else {"id": ""}}

    async def _node_price(self, request: Any) -> dict[str, Any]:
        pools = await self._pools()
        # The node of a group that is still empty is made from its template, under another name.
        name = request.node.labels.get(POOL_LABEL, "")
        if name not in pools or name not in self._hourly:
            raise NotKnown(f"no price is known of node {request.node.name}")
        return {"price": self._hourly[name] * hours(request.startTimestamp, request.endTimestamp)}

    async def _pod_price(self, request: Any) -> dict[str, Any]:
        wanted = requested(request.pod_bytes)
        hourly = cheapest((await self._pools()).values(), self._hourly, wanted)
        if hourly is None:
            raise NotKnown("no node group with a price has what the pod asks for")
        return {"price": hourly * hours(request.startTimestamp, request.endTimestamp)}

    async def _gpu_label(self, request: Any) -> dict[str, Any]:
        return {"label": GPU_PRODUCT_LABEL}

    async def _gpu_types(self, request: Any) -> dict[str, Any]:
        products = {pool.gpu_product for pool in (await self._pools()).values()} - {""}
        return {"gpuTypes": dict.fromkeys(sorted(products), interface.messages()["Any"]())}

    async def _cleanup(self, request: Any) -> dict[str, Any]:
        await self._groups.close()
        return {}

    async def _refresh(self, request: Any) -> dict[str, Any]:
        await self._groups.refresh()
        self._read = True
        return {}

    async def _target_size(self, request: Any) -> dict[str, Any]:
        await self._pools()
        return {"targetSize": await self._groups.target(request.id)}

    async def _increase_size(self, request: Any) -> dict[str, Any]:
        await self._pools()
        await self._groups.increase(request.id, request.delta)
        return {}

    async def _delete_nodes(self, request: Any) -> dict[str, Any]:
        await self._pools()
        await self._groups.delete(request.id, [node_of(node.name) for node in request.nodes])
        return {}

    async def _decrease_target_size(self, request: Any) -> dict[str, Any]:
        await self._pools()
        # The delta is negative: it is the change of the target.
        await self._groups.decrease(request.id, -request.delta)
        return {}

    async def _nodes(self, request: Any) -> dict[str, Any]:
        await self._pools()
        pool = self._groups.pool(request.id)
        there = await self._groups.there(request.id)
        coming = [ordinal for ordinal in self._groups.coming(request.id) if ordinal not in there]
        found = [(ordinal, _RUNNING) for ordinal in there] + [(ordinal, _CREATING) for ordinal in coming]
        return {
            "instances": [
                {"id": provider_id(pool, ordinal), "status": {"instanceState": state}} for ordinal, state in found
            ]
        }

    async def _template(self, request: Any) -> dict[str, Any]:
        await self._pools()
        pool = self._groups.pool(request.id)
        return {"nodeBytes": encode_bare_node(Bodies(pool).manifest(0))}

    async def _options(self, request: Any) -> dict[str, Any]:
        await self._pools()
        self._groups.pool(request.id)
        # The defaults are those of its own command line, which come from the stack's `options`.
        return {"nodeGroupAutoscalingOptions": request.defaults}


def _group(pool: Pool) -> dict[str, Any]:
    assert pool.bounds is not None
    place = f" in {pool.zone}" if pool.zone else ""
    return {
        "id": pool.name,
        "minSize": pool.bounds.least,
        "maxSize": pool.bounds.most,
        "debug": f"node group {pool.group}{place}, between {pool.bounds.least} and {pool.bounds.most} nodes",
    }


# Prices of nodes and pods over a period, for cluster-autoscaler's expander `price`.


def hours(start: Any, end: Any) -> float:
    """The time between two `Timestamp` messages, in hours."""
    seconds: float = end.seconds - start.seconds + (end.nanos - start.nanos) / 1e9
    return max(0.0, seconds) / _HOUR


def requested(pod: bytes) -> dict[str, int]:
    """What a v1 Pod's containers ask for together, in billionths of each resource's unit.

    Requests of its init containers are ignored, as they are short-lived.
    """
    found: dict[str, int] = {}
    for container in message_classes()["Pod"].FromString(pod).spec.containers:
        for name, quantity in container.resources.requests.items():
            found[name] = found.get(name, 0) + parse(quantity.string).nanos
    return found


def cheapest(pools: Iterable[Pool], hourly: Mapping[str, float], wanted: Mapping[str, int]) -> float | None:
    """The lowest price of an hour of a pod, in US dollars: on the group where its share costs the least.

    Its share of a machine is the largest of its shares of the machine's resources. None if no group with a price has
    all of it. Prices are by pool, what is wanted as of :func:`requested`.
    """
    found = []
    for pool in pools:
        has = {name: parse(pool.allocatable.get(name, "0")).nanos for name in wanted.keys() - _FREE}
        if pool.name in hourly and all(wanted[name] <= amount for name, amount in has.items()):
            shares = [wanted[name] / amount for name, amount in has.items() if amount > ZERO.nanos]
            found.append(hourly[pool.name] * max(shares, default=0.0))
    return min(found, default=None)

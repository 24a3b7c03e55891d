"""The plan of a run: the experiment's workloads on the present cluster."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from kumulus.extras.journal import autoscaling
from kumulus.extras.lab.cluster.claims import check_claims
from kumulus.extras.lab.errors import LabError
from kumulus.extras.lab.extender.reading import machines_of
from kumulus.extras.lab.file.load import Loaded
from kumulus.extras.lab.plan.matching import selectors, unmatched
from kumulus.extras.lab.plan.plan import Plan, make
from kumulus.extras.lab.plan.pods import Object, UnknownPlace
from kumulus.extras.lab.plan.replayed import on_nodes
from kumulus.extras.lab.plan.scheduling import has_queue_objects, queues, waiting
from kumulus.extras.watch.live.node import Places
from kumulus.kube.messages import MessageCodec
from kumulus.model.nodes import HOSTNAME_LABEL
from kumulus.model.pools import ZONE_LABEL, Pool
from kumulus.model.quantity import ZERO, Quantity, parse
from kumulus.nodes.faults import records
from kumulus.stackfile.group_topology import PRESETS

if TYPE_CHECKING:
    from kumulus.kube import Client


async def planned(client: Client, loaded: Loaded, measured: Sequence[Client], queue: str) -> tuple[Plan, Places]:
    """What a run creates, and the labels that say where nodes stand.

    Args:
        client: of the cluster on which the workloads are created.
        loaded: the experiment.
        measured: clients of the clusters whose nodes the pods get.
        queue: of the federation on whose hub it runs; empty for a single cluster.

    Raises:
        LabError: an affinity names a place that no pool has, no node matches a workload, or claims cannot be
            allocated.
        ApiError, Unreachable: a cluster could not be asked.
    """
    pools = [pool for each in measured for pool in (await records.read(each)).pools.values()]
    places: dict[str, str] = {}
    for pool in pools:
        for level in pool.topology.levels if pool.topology else ():
            places.setdefault(level.name, level.label)
    try:
        plan = make(loaded, places, await _queues(client, loaded, pools), await _gpus(loaded, measured), queue)
    except UnknownPlace as error:
        raise LabError(f"affinity: {error}") from None
    await _require_nodes(measured, pools, plan, loaded.experiment.productLabel)
    await check_claims(client, loaded.experiment, plan)
    nodes = {name for pool in pools for name in pool.node_names()}
    plan = replace(plan, replays={name: on_nodes(each, nodes) for name, each in plan.replays.items()})
    return plan, Places.of([places, *PRESETS.values()])


async def _require_nodes(measured: Sequence[Client], pools: Sequence[Pool], plan: Plan, product_label: str) -> None:
    """Refuse a workload that no node can ever match; with Karpenter, which makes nodes, none is refused.

    Raises:
        LabError: there is one.
        ApiError, Unreachable: a cluster could not be asked.
    """
    wanted = selectors(plan.jobs)
    if not any(any(each) for asked in wanted.values() for each in asked):
        return
    if any([await autoscaling.pools(each) is not None for each in measured]):
        return
    # Pools without nodes count, as an autoscaler may give them some.
    there: list[Mapping[str, str]] = [pool.labels for pool in pools]
    for each in measured:
        async for page in each.listed("/api/v1/nodes", MessageCodec("Node")):
            there += [dict(node.metadata.labels) for node in page]
    if lines := list(unmatched(wanted, there, product_label)):
        raise LabError("\n".join([*lines, "  Write labels that a node has; gpuProduct is a value of productLabel"]))


async def _gpus(loaded: Loaded, measured: Sequence[Client]) -> int:
    """How many GPUs the clusters have, if a trace is inflated to a share of them."""
    traces = (workload.arrival.trace for workload in loaded.experiment.workloads)
    if not any(trace is not None and trace.inflate is not None for trace in traces):
        return 0
    label = loaded.experiment.productLabel
    return sum([machine.gpus for each in measured for machine in await machines_of(each, label)])


async def _queues(client: Client, loaded: Loaded, pools: Sequence[Pool]) -> tuple[Object, ...]:
    """The queues that workloads need and `setup` does not create, each with the nodes' whole capacity."""
    if not has_queue_objects(loaded.experiment.scheduler.name):
        return ()
    there = {str(each["metadata"].get("name")) for each in loaded.setup if each["kind"].endswith("Queue")}
    quota = await allocatable(client)
    return tuple(queues(loaded.experiment.scheduler.name, waiting(loaded), there, quota, _levels(pools)))


def _levels(pools: Sequence[Pool]) -> list[str]:
    """The labels that say where nodes stand, from zones to single nodes."""
    racks = {level.label: None for pool in pools if pool.topology for level in reversed(pool.topology.levels)}
    return [ZONE_LABEL, *racks, HOSTNAME_LABEL]


# What all nodes of a cluster together have for pods.


async def allocatable(client: Client) -> dict[str, str]:
    """What all nodes together have for pods, by resource; without the number of pods, which is not requested."""
    total: dict[str, Quantity] = {}
    async for page in client.listed("/api/v1/nodes", MessageCodec("Node")):
        for node in page:
            for resource, written in node.status.allocatable.items():
                total[resource] = total.get(resource, ZERO) + parse(written.string)
    return {resource: str(amount) for resource, amount in sorted(total.items()) if resource != "pods"}

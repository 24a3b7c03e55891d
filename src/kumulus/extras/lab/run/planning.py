"""The plan of a run: the experiment's workloads on the present cluster, which has nodes that match them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from kumulus.extras.journal import autoscaling
from kumulus.extras.lab.cluster.claims import check_claims
from kumulus.extras.lab.errors import LabError
from kumulus.extras.lab.extender.ledger import machines_of
from kumulus.extras.lab.file.load import LoadedExperiment
from kumulus.extras.lab.file.model import ExperimentSpec
from kumulus.extras.lab.file.workload import Workload
from kumulus.extras.lab.plan.asked import asked_at_once
from kumulus.extras.lab.plan.matching import REMEDY, selectors, unmatched
from kumulus.extras.lab.plan.plan import RepetitionPlan, make
from kumulus.extras.lab.plan.pods import Object, PlannedJob, UnknownPlace
from kumulus.extras.lab.plan.replayed import on_nodes
from kumulus.extras.lab.plan.scheduling import has_queue_objects, queues, unfit, waiting, without_unfit
from kumulus.extras.schedulers import SchedulerError, registry
from kumulus.extras.watch.live.node import PlaceLabels
from kumulus.kube.messages import MessageCodec
from kumulus.kube.objects import NODES
from kumulus.model.errors import SpecError
from kumulus.model.names import nearest
from kumulus.model.nodes import HOSTNAME_LABEL
from kumulus.model.pools import ZONE_LABEL, Pool
from kumulus.model.quantity import NANO, ZERO, Quantity, parse
from kumulus.model.totals import totals
from kumulus.nodes.faults import records
from kumulus.stackfile.fault_now import NoPools, resolved
from kumulus.stackfile.group_topology import PRESETS

if TYPE_CHECKING:
    from kumulus.kube import Client


async def planned(
    client: Client, loaded: LoadedExperiment, measured: Sequence[Client], queue: str, say: Callable[[str], None]
) -> tuple[RepetitionPlan, PlaceLabels]:
    """What a run creates, and the labels that say where nodes stand.

    Args:
        client: of the cluster on which the workloads are created.
        measured: clients of the clusters whose nodes the pods get.
        queue: of the federation on whose hub it runs; empty for a single cluster.
        say: takes a line for the user, where more is asked for at once than is there.
    """
    pools = [pool for each in measured for pool in (await records.read(each)).pools.values()]
    places = _places(pools)
    try:
        plan = make(loaded, places, await _queues(client, loaded, pools), await _gpus(loaded, measured), queue)
    except UnknownPlace:
        raise LabError("\n".join(_unfit(loaded, places))) from None
    await _require_nodes(measured, pools, plan, loaded.experiment.productLabel)
    await check_claims(client, loaded.experiment, plan)
    if line := await _too_much(measured, plan):
        say(line)
    nodes = {name for pool in pools for name in pool.node_names()}
    plan = replace(plan, replays={name: on_nodes(each, nodes) for name, each in plan.replays.items()})
    return plan, PlaceLabels.of([places, *PRESETS.values()])


def foreseen(loaded: LoadedExperiment, pools: Sequence[Pool], *, autoscaled: bool) -> tuple[list[str], str]:
    """What a run would refuse on nodes of these pools, as far as that is known before there are any; and its note.

    The note says if more is asked for at once than they have, as of :func:`too_much`.

    Args:
        autoscaled: whether there may be other nodes.
    """
    wrong = [] if autoscaled else [*_of_timeline(loaded, {pool.name: pool for pool in pools})]
    places, experiment = _places(pools), loaded.experiment
    if unfitting := list(_unfit(loaded, places)):
        wrong += unfitting
        loaded = _with(loaded, map(without_unfit, experiment.workloads))
    refused, jobs = _jobs(loaded, places, totals(pools).gpus)
    wrong += refused
    if autoscaled:
        return wrong, ""
    labels = [
        {HOSTNAME_LABEL: pool.node_name(number), **pool.labels, **pool.labels_of(number)}
        for pool in pools
        for number in range(pool.replicas)
    ]
    lines = list(unmatched(selectors(jobs), labels, experiment.productLabel))
    there = _sum(
        (resource, parse(amount) * pool.count) for pool in pools for resource, amount in pool.allocatable.items()
    )
    return [*wrong, *lines, *([REMEDY] if lines else ())], too_much(asked_at_once(jobs), there, "the stack has")


def _of_timeline(loaded: LoadedExperiment, pools: Mapping[str, Pool]) -> Iterator[str]:
    for event in loaded.experiment.timeline:
        try:
            if event.fault is not None:
                resolved(event.fault, pools, f"the timeline's fault {event.fault.name}")
        except (SpecError, NoPools) as error:
            yield str(error)
        if event.resize is not None and event.resize.pool not in pools:
            yield no_pool(event.resize.pool, pools)


def _unfit(loaded: LoadedExperiment, places: Mapping[str, str]) -> Iterator[str]:
    for each in loaded.experiment.workloads:
        yield from unfit(loaded.experiment.scheduler.name, each, places)


def _with(loaded: LoadedExperiment, workloads: Iterable[Workload]) -> LoadedExperiment:
    return replace(loaded, experiment=loaded.experiment.model_copy(update={"workloads": [*workloads]}))


def _jobs(loaded: LoadedExperiment, places: Mapping[str, str], gpus: int) -> tuple[list[str], list[PlannedJob]]:
    """What is refused of the workloads, each by itself if not all can be planned; and the jobs of the others."""
    workloads = loaded.experiment.workloads
    try:
        return [], [*make(loaded, places, gpus=gpus).jobs]
    except LabError as error:
        if len(workloads) == 1:
            return [str(error)], []
        alone = [_jobs(_with(loaded, [each]), places, gpus) for each in workloads]
        wrong = [line for lines, _ in alone for line in lines]
        return wrong or [str(error)], [job for _, jobs in alone for job in jobs]


def no_pool(name: str, pools: Iterable[str]) -> str:
    """That a timeline resizes a pool that there is not."""
    near = nearest(name, pools)
    there = f"did you mean {' or '.join(near)}" if near else f"there are {', '.join(sorted(pools)) or 'none'}"
    return f"the timeline's pool {name} is not in the cluster; {there}"


def _places(pools: Iterable[Pool]) -> dict[str, str]:
    places: dict[str, str] = {}
    for pool in pools:
        for level in pool.topology.levels if pool.topology else ():
            places.setdefault(level.name, level.label)
    return places


async def _require_nodes(
    measured: Sequence[Client], pools: Sequence[Pool], plan: RepetitionPlan, product_label: str
) -> None:
    """Refuse a workload that no node can ever match; with Karpenter, which makes nodes, none is refused."""
    wanted = selectors(plan.jobs)
    if not any(any(each) for asked in wanted.values() for each in asked):
        return
    if any([await autoscaling.pools(each) is not None for each in measured]):
        return
    # Pools without nodes count, as an autoscaler may give them some.
    there: list[Mapping[str, str]] = [pool.labels for pool in pools]
    for each in measured:
        async for page in each.listed(NODES, MessageCodec("Node")):
            there += [dict(node.metadata.labels) for node in page]
    if lines := list(unmatched(wanted, there, product_label)):
        raise LabError("\n".join([*lines, REMEDY]))


async def _too_much(measured: Sequence[Client], plan: RepetitionPlan) -> str:
    """As :func:`too_much`, for these clusters; with Karpenter, which makes nodes, nothing is too much."""
    asked = asked_at_once(plan.jobs)
    if not asked or any([await autoscaling.pools(each) is not None for each in measured]):
        return ""
    amounts = [item for each in measured for item in (await allocatable(each)).items()]
    there = _sum((resource, parse(amount)) for resource, amount in amounts)
    return too_much(asked, there, "the cluster has" if len(measured) == 1 else "the clusters have")


def too_much(asked: Mapping[str, Quantity], there: Mapping[str, Quantity], have: str = "the cluster has") -> str:
    """A line on the resource of which the most is asked for, for each that is there; empty if there is enough of all.

    Args:
        asked: at once.
        have: who has what is there.
    """

    def written(amount: Quantity) -> str:
        return f"{amount.number():,}" if amount.format != "binary" else f"{amount.nanos / NANO / 2**30:,.0f}Gi"

    lacking = {each: amount for each, amount in asked.items() if amount.nanos > there.get(each, ZERO).nanos}
    if not lacking:
        return ""
    worst = max(lacking, key=lambda each: lacking[each].nanos / (there.get(each, ZERO).nanos or 1))
    has = written(there[worst]) if worst in there else "none"
    return f"note: the workload asks for {written(lacking[worst])} {worst} at once, {have} {has}: pods will wait"


async def _gpus(loaded: LoadedExperiment, measured: Sequence[Client]) -> int:
    """How many GPUs the clusters have, if a trace is inflated to a share of them."""
    traces = (workload.arrival.trace for workload in loaded.experiment.workloads)
    if not any(trace is not None and trace.inflate is not None for trace in traces):
        return 0
    label = loaded.experiment.productLabel
    return sum([machine.gpus for each in measured for machine in await machines_of(each, label)])


async def _queues(client: Client, loaded: LoadedExperiment, pools: Sequence[Pool]) -> tuple[Object, ...]:
    """The queues that workloads need and `setup` does not create, each with the nodes' whole capacity."""
    if not has_queue_objects(loaded.experiment.scheduler.name):
        return ()
    there = {str(each["metadata"].get("name")) for each in loaded.setup if each["kind"].endswith("Queue")}
    quota = await allocatable(client)
    return tuple(queues(loaded.experiment.scheduler.name, waiting(loaded), there, quota, _levels(pools)))


async def places_of(client: Client, experiment: ExperimentSpec) -> list[Object] | None:
    """What the experiment's scheduler has to know of the cluster's places before it starts; None if that is nothing.

    Raises:
        LabError: there is no place of a level that a gang has to be in one of.
    """
    levels = {each.topology.required or "" for each in experiment.workloads} - {""}
    if not levels or (places := registry.get(experiment.scheduler.name).places) is None:
        return None
    pools = (await records.read(client)).pools.values()
    try:
        return await places(client, [*pools], sorted(levels))
    except SchedulerError as error:
        raise LabError(str(error)) from None


def _levels(pools: Sequence[Pool]) -> list[str]:
    """The labels that say where nodes stand, from zones to single nodes."""
    racks = {level.label: None for pool in pools if pool.topology for level in reversed(pool.topology.levels)}
    return [ZONE_LABEL, *racks, HOSTNAME_LABEL]


async def allocatable(client: Client) -> dict[str, str]:
    """What all nodes together have for pods, by resource; without the number of pods, which is not requested."""
    total: dict[str, Quantity] = {}
    # Page by page: no more than one of them is kept in memory.
    async for page in client.listed(NODES, MessageCodec("Node")):
        for node in page:
            for resource, written in node.status.allocatable.items():
                total[resource] = total.get(resource, ZERO) + parse(written.string)
    return {resource: str(amount) for resource, amount in sorted(total.items()) if resource != "pods"}


def _sum(amounts: Iterable[tuple[str, Quantity]]) -> dict[str, Quantity]:
    total: dict[str, Quantity] = {}
    for resource, amount in amounts:
        total[resource] = total.get(resource, ZERO) + amount
    return total

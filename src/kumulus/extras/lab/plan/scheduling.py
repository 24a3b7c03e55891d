"""A job in the form that its scheduler expects: as a gang, in a queue, with the scheduler's name."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

from kumulus.extras.lab.errors import LabError
from kumulus.extras.lab.file.load import LoadedExperiment
from kumulus.extras.lab.file.model import OWN, SchedulerName
from kumulus.extras.lab.file.workload import NEVER, Workload
from kumulus.extras.lab.plan.pods import Object, UnknownPlace, place_label
from kumulus.extras.lab.plan.stream import in_users_queue
from kumulus.extras.schedulers import SchedulerError, registry, templates, workloads
from kumulus.extras.schedulers.manifests import COUNTED, counted_templates

if TYPE_CHECKING:
    from kumulus.kube import Client

_KUEUE = "kueue"
_KUBE_SCHEDULER = "kube-scheduler"


def for_scheduler(
    scheduler: SchedulerName,
    workload: Workload,
    job: str,
    objects: list[Object],
    places: Mapping[str, str],
    profiles: Sequence[str] = (),
) -> list[Object]:
    """The objects of a job as a scheduler expects them, including those that have to precede it.

    Args:
        scheduler: the scheduler; the default one takes a job as it is, and knows neither gangs nor queues.
        profiles: the `spec.schedulerName` values that its configuration has; its own one by default.

    Raises:
        LabError: this scheduler does not accept such a job.
        UnknownPlace: the cluster has no such level.
    """
    if wrong := [*_not_taken(scheduler, workload)]:
        raise LabError("\n".join(wrong))
    required, slices = workload.topology.required, workload.topology.slices
    profile = workload.schedulerName or next(iter(profiles), "")
    if scheduler == OWN:
        with_pods = [each for each in objects if each["kind"] in COUNTED and counted_templates(each)]
        templates.assign(with_pods if profile else [], profile)
        return objects
    able = registry.get(scheduler)
    queue = workload.queue if able.queues else ""
    try:
        if workload.gang and able.gangs:
            named = required or ""
            topology = place_label(named, places) if named and able.places is None else named
            found = workloads.gang(
                scheduler,
                objects,
                job,
                queue=queue,
                scheduler_name=profile,
                topology=topology,
                disruption=workload.disruption,
            )
            if slices:
                found = workloads.slices(scheduler, found, place_label(slices.required, places), slices.size)
        else:
            one = partial(workloads.single, scheduler, queue=queue, scheduler_name=profile)
            found = [made for each in objects for made in one(each)]
    except SchedulerError as error:
        raise LabError(f"workload {workload.name}: {' '.join(str(error).split())}") from None
    for each in found:
        # Everything goes into the namespace of the run.
        each["metadata"].pop("namespace", None)
    return found


def unfit(scheduler: SchedulerName, workload: Workload, places: Mapping[str, str]) -> Iterator[str]:
    """A line for each setting of a workload that this scheduler, or a cluster with these places, does not take."""
    yield from _not_taken(scheduler, workload)
    together, topology = workload.affinity, workload.topology
    levels = {"affinity": [together.required, together.preferred]}
    if scheduler in workloads.takes("topology") and registry.get(scheduler).places is None:
        levels["topology"] = [topology.required, topology.slices.required if topology.slices else None]
    for key, named in levels.items():
        for place in dict.fromkeys(filter(None, named)):
            try:
                place_label(place, places)
            except UnknownPlace as error:
                yield f"workload {workload.name}: {key}: {error}"


def without_unfit(workload: Workload) -> Workload:
    """The workload without the settings that :func:`unfit` is about, to see what else is wrong."""
    usual = Workload(name=workload.name)
    settings = ("affinity", "topology", "disruption", "preemptionPolicy")
    return workload.model_copy(update={each: getattr(usual, each) for each in settings})


def _not_taken(scheduler: SchedulerName, workload: Workload) -> Iterator[str]:
    """What a scheduler would not heed, of what a workload has."""
    settings: dict[str, object] = {
        "topology": workload.topology.required,
        workloads.SLICES: workload.topology.slices,
        "disruption": workload.disruption,
        workloads.NEVER: workload.preemptionPolicy == NEVER,
    }
    for what, value in settings.items():
        # The cluster's own is a kube-scheduler, too.
        if value and (_KUBE_SCHEDULER if scheduler == OWN else scheduler) not in (takers := workloads.takes(what)):
            remedy = f"leave it out, or write scheduler: {{name: {' or '.join(takers)}}}"
            yield f"workload {workload.name}: scheduler {scheduler} takes no {what}; {remedy}"


def is_own(scheduler: SchedulerName) -> bool:
    """Whether the cluster's own scheduler places the pods, so that none is started."""
    return scheduler == OWN or registry.get(scheduler).is_own


async def require_own(scheduler: SchedulerName, client: Client) -> None:
    """Refuse a scheduler of the cluster's own that cannot do what is expected of it, with the remedy."""
    if scheduler == OWN or (require := registry.get(scheduler).require) is None:
        return
    try:
        await require(client)
    except SchedulerError as error:
        raise LabError(str(error)) from None


def for_federation(queue: str, workload: Workload, objects: list[Object]) -> list[Object]:
    """The objects of a job as the hub of a federation expects them: suspended Jobs that name its queue."""
    found = []
    for each in objects:
        if each["kind"] != "Job":
            raise LabError(
                f"workload {workload.name}: a federation dispatches Jobs, and no {each['kind']}; write a manifest of "
                "Jobs, or name one cluster by --cluster"
            )
        found += workloads.single(_KUEUE, each, queue=queue)
    for each in found:
        each["metadata"].pop("namespace", None)
    return found


def has_queue_objects(scheduler: SchedulerName) -> bool:
    """Whether the queues that workloads wait in are objects of the cluster, which have to be created."""
    return scheduler != OWN and registry.get(scheduler).queue is not None


def queue_of(scheduler: SchedulerName, workload: Workload) -> str:
    """The queue in which a workload's jobs wait; empty if none is named and the scheduler needs none."""
    return workload.queue or ("" if scheduler == OWN else registry.get(scheduler).needed_queue)


def waiting(loaded: LoadedExperiment) -> list[Workload]:
    """The workloads of an experiment as they wait in queues: those of traces also once for each user's queue."""
    wanted = loaded.experiment.workloads
    of_users = {
        each.queue: each
        for workload in wanted
        for job in loaded.traces.get(workload.name, ())
        for each in (in_users_queue(workload, job.asked),)
    }
    return [*wanted, *of_users.values()]


def queues(
    scheduler: SchedulerName, wanted: list[Workload], there: set[str], quota: dict[str, str], levels: Sequence[str] = ()
) -> list[Object]:
    """The queues that workloads need and the experiment does not have: each with the nodes' whole capacity.

    Args:
        there: names of the queues that the experiment has.
        quota: what all nodes have together.
        levels: the labels of the cluster's topology, from the largest places to the smallest.
    """
    if not has_queue_objects(scheduler):
        return []
    names = {queue_of(scheduler, each) for each in wanted} - there - {""}
    counted = registry.get(scheduler).counted or quota
    quota = {resource: amount for resource, amount in quota.items() if resource in counted}
    together = levels if any(each.topology.required for each in wanted) else ()
    found = [made for name in sorted(names) for made in workloads.queue(scheduler, name, "", quota, together)]
    for each in found:
        each["metadata"].pop("namespace", None)
    return found

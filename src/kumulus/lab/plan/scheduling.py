"""A job in the words of the scheduler that is to place it: as a gang, in a queue, by its name."""

from __future__ import annotations

from kumulus.lab.errors import LabError
from kumulus.lab.file.model import SchedulerName
from kumulus.lab.file.workload import Workload
from kumulus.lab.plan.pods import Object
from kumulus.schedulers import SchedulerError, catalog, workloads


def for_scheduler(scheduler: SchedulerName, workload: Workload, job: str, objects: list[Object]) -> list[Object]:
    """The objects of a job as a scheduler wants them, those included that come before it.

    Args:
        scheduler: the scheduler; the default one takes a job as it is, and knows neither gangs nor queues.
        workload: what the job is of.
        job: its name.
        objects: its objects.

    Raises:
        LabError: this scheduler does not take such a job.
    """
    if scheduler == "default":
        return objects
    able = catalog.get(scheduler)
    queue = workload.queue if able.queues else ""
    try:
        if workload.gang and able.gangs:
            found = workloads.gang(scheduler, objects, job, queue=queue)
        else:
            found = [made for each in objects for made in workloads.single(scheduler, each, queue=queue)]
    except SchedulerError as error:
        raise LabError(f"workload {workload.name}: {' '.join(str(error).split())}") from None
    for each in found:
        # Everything goes into the namespace of the run.
        each["metadata"].pop("namespace", None)
    return found


def queues(scheduler: SchedulerName, wanted: list[Workload], there: set[str], quota: dict[str, str]) -> list[Object]:
    """The queues that workloads wait in and the experiment's own objects do not have: each with all there is.

    Args:
        scheduler: the scheduler.
        wanted: the workloads.
        there: names of the queues that the experiment has.
        quota: what all nodes have together.
    """
    able = scheduler != "default" and catalog.get(scheduler).queues and scheduler != "yunikorn"
    default = "default" if scheduler == "kueue" else ""
    names = {each.queue or default for each in wanted} - there - {""} if able else set()
    return [made for name in sorted(names) for made in _queue(scheduler, name, quota)]


def _queue(scheduler: SchedulerName, name: str, quota: dict[str, str]) -> list[Object]:
    found = workloads.queue(scheduler, name, "", quota)
    for each in found:
        each["metadata"].pop("namespace", None)
    return found

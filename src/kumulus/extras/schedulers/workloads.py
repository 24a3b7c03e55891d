"""Gangs and queues in the format of any scheduler: pure functions that return manifests."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from kumulus.extras.schedulers import registry, templates
from kumulus.extras.schedulers.descriptor import Scheduler
from kumulus.extras.schedulers.errors import SchedulerError
from kumulus.extras.schedulers.manifests import COUNTED, later_pods
from kumulus.extras.schedulers.templates import Manifest


def gang(
    scheduler: str,
    workloads: Sequence[Mapping[str, Any]],
    name: str,
    *,
    minimum: int | None = None,
    queue: str = "",
    scheduler_name: str = "",
    topology: str = "",
    disruption: str = "",
) -> list[Manifest]:
    """Declare that the pods of the given workloads get nodes together or not at all.

    Args:
        scheduler: its name in the registry.
        workloads: Pods, Jobs, JobSets or Deployments of one namespace; they are not changed.
        name: of the gang; unique in its namespace.
        minimum: how many pods suffice to begin; all of them by default.
        queue: the queue that they wait in; the scheduler's default one by default.
        scheduler_name: the `spec.schedulerName` of its pods if the user's configuration names another one.
        topology: the key of a label; all pods get nodes with the same value of it.
        disruption: `all` if they are preempted together only; one by one by default.

    Returns:
        The manifests to create, in this order.

    Raises:
        SchedulerError: this scheduler supports no gangs, or not this one.
    """
    declare = registry.get(scheduler).gang
    if declare is None:
        able = ", ".join(each.name for each in registry.every() if each.gangs)
        raise SchedulerError(f"gang {name!r}: {scheduler} knows no gangs\n  Use one of {able}")
    copies = templates.copied(workloads)
    if not copies:
        raise SchedulerError(f"gang {name!r} has no workload\n  Write at least one")
    if len({templates.namespace(each) for each in copies}) > 1:
        raise SchedulerError(f"gang {name!r}: its workloads are in several namespaces\n  Put them in one")
    pods = templates.size(copies)
    if minimum is not None and not 1 <= minimum <= pods:
        raise SchedulerError(f"gang {name!r}: a minimum of {minimum} of {pods} pods\n  Write a number from 1 to {pods}")
    _require_queues(scheduler, f"gang {name!r}", queue)
    made = declare(copies, name, pods if minimum is None else minimum, queue)
    for what, value, done in (
        ("topology", topology, registry.get(scheduler).bind),
        ("disruption", disruption, registry.get(scheduler).disrupt),
    ):
        if value and done is None:
            able = " or ".join(takes(what))
            raise SchedulerError(f"gang {name!r}: {scheduler} takes no {what} for it\n  Leave it out, or use {able}")
        if value and done:
            done(made, value)
    return _named(made, scheduler_name)


def slices(scheduler: str, made: Sequence[Mapping[str, Any]], topology: str, size: int) -> list[Manifest]:
    """Divide a gang into slices: its pods get nodes as before, and those of each slice in one place of their own.

    Args:
        scheduler: as for :func:`gang`.
        made: the gang, as :func:`gang` has declared it; of one Job, which is not changed.
        topology: the key of a label; all pods of a slice get nodes with the same value of it.
        size: how many pods a slice has.

    Raises:
        SchedulerError: this scheduler knows no slices, or they cannot be of this gang.
    """
    divide = registry.get(scheduler).slices
    if divide is None:
        able = " or ".join(takes(SLICES))
        raise SchedulerError(f"{scheduler} takes no slices of a gang\n  Leave them out, or use {able}")
    copies = templates.copied(made)
    members = [each for each in copies if each["kind"] in COUNTED]
    whole = templates.label(members[0])
    if [each["kind"] for each in members] != ["Job"] or later_pods(members[0]):
        raise SchedulerError(f"{whole}: slices are of one Job, whose pods all run at once\n  Write such a Job")
    if (pods := templates.size(members)) % size:
        raise SchedulerError(f"{whole}: {pods} pods are no whole slices of {size}\n  Write a multiple of {size}")
    return divide(copies, topology, size)


NEVER = "preemptionPolicy: Never"
SLICES = "slices"
_TAKEN: Mapping[str, Callable[[Scheduler], object]] = {
    "topology": lambda each: each.bind,
    SLICES: lambda each: each.slices,
    "disruption": lambda each: each.disrupt,
    NEVER: lambda each: each.never,
}


def takes(what: str) -> list[str]:
    """The names of the schedulers that take a gang's `topology`, `slices` or `disruption`, or pods' :data:`NEVER`."""
    return [each.name for each in registry.every() if _TAKEN[what](each)]


def single(scheduler: str, workload: Mapping[str, Any], *, queue: str = "", scheduler_name: str = "") -> list[Manifest]:
    """Assign a workload to a scheduler; its pods may run one by one.

    Args:
        scheduler: its name in the registry.
        workload: as for :func:`gang`.
        queue: the queue that it waits in; the scheduler's default one by default.
        scheduler_name: as for :func:`gang`.

    Raises:
        SchedulerError: this scheduler has no queues, or does not take this kind.
    """
    known = registry.get(scheduler)
    _require_queues(scheduler, templates.label(workload), queue)
    (made,) = templates.copied([workload])
    if known.single is not None:
        return _named(known.single(made, queue), scheduler_name)
    templates.assign([made], scheduler_name or known.scheduler_name)
    return [made]


def queue(
    scheduler: str, name: str, namespace: str, quota: Mapping[str, str], levels: Sequence[str] = ()
) -> list[Manifest]:
    """Declare a queue with a quota.

    Args:
        scheduler: its name in the registry.
        name: the queue's.
        namespace: the namespace whose workloads use it.
        quota: the most that its workloads may use at once, such as `{"cpu": "64", "nvidia.com/gpu": "8"}`.
        levels: labels of nodes, from the largest places to the smallest, if its workloads have to be in one place.

    Raises:
        SchedulerError: this scheduler has no queues, or they are not objects in the cluster.
    """
    known = registry.get(scheduler)
    if known.queue is not None:
        return known.queue(name, namespace, quota, levels)
    if known.queues:
        raise SchedulerError(
            f"queue {name!r}: the queues of {scheduler} are in its configuration\n"
            "  Start it with a queues.yaml; without one, queues are made as they are named"
        )
    raise SchedulerError(f"queue {name!r}: {scheduler} has no queues\n  Use {registry.with_queues()}")


def _require_queues(scheduler: str, what: str, queue: str) -> None:
    if queue and not registry.get(scheduler).queues:
        able = registry.with_queues()
        raise SchedulerError(f"{what}: {scheduler} has no queues\n  Leave queue {queue!r} out, or use {able}")


def _named(manifests: list[Manifest], scheduler_name: str) -> list[Manifest]:
    if scheduler_name:
        templates.assign([each for each in manifests if each["kind"] != "PodGroup"], scheduler_name)
    return manifests

"""Everything that a repetition creates, and when."""

import hashlib
import json
import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from kumulus.extras.lab.errors import LabError
from kumulus.extras.lab.file.load import LoadedExperiment
from kumulus.extras.lab.file.manifest import filled, objects_of
from kumulus.extras.lab.file.trace import TraceJob
from kumulus.extras.lab.file.workload import NEVER, Workload
from kumulus.extras.lab.plan.pods import (
    JOB_LABEL,
    WORKLOAD_LABEL,
    Object,
    PlannedJob,
    class_object,
    job_objects,
    pod_template,
    priority_class,
)
from kumulus.extras.lab.plan.replayed import Replayed, classes, replayed
from kumulus.extras.lab.plan.scheduling import for_federation, for_scheduler
from kumulus.extras.lab.plan.stream import (
    State,
    allocated_by,
    asking,
    by_claim,
    in_users_queue,
    jobs_drawn,
    on_models,
    playable,
)
from kumulus.extras.schedulers import registry
from kumulus.extras.schedulers.manifests import expected_pods, later_pods, pod_templates
from kumulus.model.distributions import drawn


@dataclass(frozen=True)
class RepetitionPlan:
    """What a repetition creates."""

    setup: tuple[Object, ...]
    """Objects to create before the first job."""
    jobs: tuple[PlannedJob, ...]
    """In the order of their arrival; those that come once others are placed are the last."""
    digest: str
    """SHA-256 of the plan: two plans with the same digest create the same objects, but for what the scheduler's own
    configuration calls itself."""
    replays: Mapping[str, Replayed] = field(default_factory=dict)
    """The recordings that are replayed, by workload; their jobs are in `jobs`, too."""
    drawn: State = ()
    """The state of the seed's source of random numbers, after the order of the jobs was drawn."""

    @property
    def pods(self) -> int:
        """How many pods are expected."""
        return sum(job.workers for job in self.jobs)

    @property
    def later(self) -> int:
        """How many more are expected as these complete."""
        return sum(job.later for job in self.jobs)


def make(
    loaded: LoadedExperiment, places: Mapping[str, str], setup: tuple[Object, ...] = (), gpus: int = 0, queue: str = ""
) -> RepetitionPlan:
    """Plan a repetition.

    Args:
        places: the label key of each level of the cluster's topology.
        setup: objects to create besides those of the experiment.
        gpus: of the cluster; a trace may be inflated to a share of them.
        queue: of the federation on whose hub it is created; empty for a single cluster.

    Raises:
        UnknownPlace: a workload asks for a level that the cluster does not have.
        LabError: a trace cannot be inflated or played on a cluster, the scheduler does not take a workload, or two
            objects with pods have one name.
    """
    playable(loaded)
    allocated_by(loaded)
    experiment = loaded.experiment
    replays = {
        each.name: replayed(each, loaded.recordings[each.name], experiment.scheduler.name, loaded.profiles)
        for each in experiment.workloads
        if each.replay is not None
    }
    own = [each for each in experiment.workloads if each.replay is None]
    source = random.Random(experiment.seed)
    ordered = {each.name: jobs_drawn(loaded, each, gpus, source) for each in own}
    claims: dict[str, Object] = {}
    jobs = [job for each in own for job in _jobs(loaded, each, places, ordered[each.name], claims, queue)]
    _require_names(jobs)
    jobs += [job for each in replays.values() for job in each.jobs]
    jobs.sort(key=lambda job: (job.once, job.at))
    before = (*_priority_classes(loaded), *classes(loaded.recordings), *setup, *loaded.setup, *claims.values())
    steps = [(step.at, step.do, step.job, step.spec) for each in replays.values() for step in each.steps]
    once = [job.name for job in jobs if job.once]
    # A plan without replays keeps the digest that it had before Kumulus had replays.
    whole = [before, [(job.at, job.objects) for job in jobs], *([steps] if replays else []), *([once] if once else [])]
    text = json.dumps(whole, sort_keys=True)
    for profile in loaded.profiles[:1]:
        usual = registry.get(experiment.scheduler.name).scheduler_name
        text = text.replace(f'"schedulerName": {json.dumps(profile)}', f'"schedulerName": {json.dumps(usual)}')
    return RepetitionPlan(before, tuple(jobs), hashlib.sha256(text.encode()).hexdigest(), replays, source.getstate())


def _jobs(
    loaded: LoadedExperiment,
    workload: Workload,
    places: Mapping[str, str],
    trace: Sequence[TraceJob],
    claims: dict[str, Object],
    queue: str,
) -> Iterator[PlannedJob]:
    experiment = loaded.experiment
    times, once = arrivals(workload, experiment.seed, trace), workload.arrival.once is not None

    def for_its_scheduler(waiting: Workload, name: str, objects: list[Object]) -> tuple[Object, ...]:
        if queue:
            return tuple(for_federation(queue, waiting, objects))
        return tuple(for_scheduler(experiment.scheduler.name, waiting, name, objects, places, loaded.profiles))

    lengths = stream(experiment.seed, workload.name, "duration")
    for number, at in enumerate(times, start=1):
        name = f"{workload.name}-{number}"
        if workload.manifest:
            text = filled(loaded.manifests[workload.name], workload.replace, number)
            objects = objects_of(text, workload.manifest)
            workers = adopt(objects, workload.name, name, number if len(times) > 1 else 0)
            later = sum(map(later_pods, objects))
            made = for_its_scheduler(workload, name, objects)
            yield PlannedJob(name, workload.name, at, workers, made, later, once)
            continue
        recorded = trace[number - 1] if trace else None
        workers = (recorded.size if recorded else None) or workload.workers
        length = recorded.duration if recorded else None
        if length is None and workload.duration is not None:
            length = drawn(workload.duration, lengths)
        asked = recorded.asked if recorded else None
        template = pod_template(
            asking(workload, asked) if asked else workload,
            name,
            duration=length,
            product_label=experiment.productLabel,
            places=places,
        )
        if asked:
            on_models(template, asked, experiment.productLabel)
        by_claim(template, workload, claims)
        objects = job_objects(workload.kind, name, workers, template)
        waiting = in_users_queue(workload, asked)
        yield PlannedJob(name, workload.name, at, workers, for_its_scheduler(waiting, name, objects), once=once)


def _require_names(jobs: Sequence[PlannedJob]) -> None:
    """Refuse a second object of one kind and name: the server would refuse it as one that exists already."""
    first: dict[tuple[str, str], str] = {}
    for job in jobs:
        for each in job.objects:
            if not any(pod_templates(each)):
                continue
            named = each["kind"], each["metadata"]["name"]
            if named in first:
                raise LabError(
                    f"workload {job.workload}: its {' '.join(named)} has the name of one of job {first[named]}\n"
                    "  Give each a name of its own; replace: puts one into a manifest"
                )
            first[named] = job.name


def _priority_classes(loaded: LoadedExperiment) -> Iterator[Object]:
    wanted = loaded.experiment.workloads
    values = {(each.priority, each.preemptionPolicy) for each in wanted}
    recorded = ((each, job.asked) for each in wanted for job in loaded.traces.get(each.name, ()))
    values |= {(asked.priority, of.preemptionPolicy) for of, asked in recorded if asked and asked.priority is not None}
    # Pods without a priority need a class for their policy alone.
    values |= {(0, NEVER) for value, policy in values if value == "" and policy == NEVER}
    numbers = [(value, priority_class(value, policy), policy) for value, policy in values if isinstance(value, int)]
    for value, name, policy in sorted(numbers):
        yield class_object(name, value, policy)


# When each job of a workload arrives, in seconds from the experiment's start.


def arrivals(workload: Workload, seed: int, trace: Sequence[TraceJob] = ()) -> list[float]:
    """The times, in ascending order."""
    plan = workload.arrival
    if plan.trace is not None:
        return [plan.after + job.arrival for job in trace]
    if plan.rate is not None:
        return [plan.after + number / plan.rate for number in range(workload.jobs)]
    if plan.poisson is not None:
        source, now, times = stream(seed, workload.name, "arrival"), plan.after, []
        for _ in range(workload.jobs):
            times.append(now)
            now += source.expovariate(plan.poisson)
        return times
    return [plan.after] * workload.jobs


# The objects of a job from the user's manifest: unchanged except for labels and repeated names.


def adopt(objects: list[Object], workload: str, job: str, index: int) -> int:
    """Name the objects, label their pods, and return how many pods they make.

    A `generateName` becomes a name, so that two runs create the same objects. If there are several jobs, the job's
    number is appended to plain names, and fields of its objects that name another one of them follow.

    Args:
        objects: of one job; changed in place.
        index: the job's number, from 1; 0 when the workload has only this one.
    """
    pods, renamed = 0, dict[str, str]()
    for each in objects:
        metadata = _within(each, "metadata")
        prefix = metadata.pop("generateName", None)
        if prefix is not None:
            metadata["name"] = f"{prefix}{index or 1}"
        elif index and "name" in metadata:
            name = metadata["name"]
            renamed[name] = metadata["name"] = f"{name}-{index}"
        elif "name" not in metadata:
            metadata["name"] = job
        metadata.pop("namespace", None)
        for template in pod_templates(each):
            _within(_within(template, "metadata"), "labels").update({WORKLOAD_LABEL: workload, JOB_LABEL: job})
        pods += expected_pods(each)
    _follow(objects, renamed)
    return pods


def _follow(node: Any, renamed: Mapping[str, str]) -> None:
    """Have fields such as `podGroupName`, and annotations such as `…/group-name`, name what was renamed."""
    if isinstance(node, dict):
        for key, value in node.items():
            if isinstance(value, str) and value in renamed and str(key).endswith(("Name", "-name")):
                node[key] = renamed[value]
            else:
                _follow(value, renamed)
    elif isinstance(node, list):
        for each in node:
            _follow(each, renamed)


def _within(node: Object, key: str) -> Object:
    """The mapping at a key, made where there is none or the key has no value."""
    if node.get(key) is None:
        node[key] = {}
    found: Object = node[key]
    return found


def stream(seed: int, *what: object) -> random.Random:
    """The stream of random numbers for one thing that is drawn: a workload more changes nothing about the others."""
    # Random hashes a text by SHA-512, which is the same on every machine and in every version of Python since 3.2.
    return random.Random("/".join(map(str, (seed, *what))))

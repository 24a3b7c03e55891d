"""A recording as jobs and steps: the part that is replayed, at its speed. Pure."""

import copy
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from kumulus.extras.lab.file.model import SchedulerName
from kumulus.extras.lab.file.recording import RecordedStep, Recording
from kumulus.extras.lab.file.timeline import TimelineEvent
from kumulus.extras.lab.file.workload import Workload
from kumulus.extras.lab.plan.pods import JOB_LABEL, TOLERATIONS, WORKLOAD_LABEL, Object, PlannedJob, class_object
from kumulus.extras.lab.plan.scheduling import for_scheduler
from kumulus.extras.schedulers.manifests import expected_pods, pod_templates
from kumulus.model.lifecycles import DELAY_ANNOTATION
from kumulus.model.names import dns_safe
from kumulus.stackfile.faults import FAULT_NAME_LENGTH

# Seconds that a Job's pod runs if it did not end when recorded: longer than any run.
_ENDLESS = 366 * 86_400.0
_ENDING = ("Never", "OnFailure")
_ENDED_BY_PODS = ("Job", "Pod")
CORDON = "kumulus.io/cordoned"
"""The taint of a node that was cordoned in the recording."""


@dataclass(frozen=True)
class PlannedStep:
    """Something that happens to what a recording has created, or to a node."""

    at: float
    do: str
    """Change, delete, evict, drain, cordon or uncordon."""
    job: str
    """The planned job's name, or the node's."""
    spec: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Replayed:
    """What is replayed of a recording.

    Args:
        jobs: what is created, in the order of its times.
        ends: how many seconds a pod that no controller ends runs, by its job.
        speed: how many times faster it is replayed.
        since, until: the part that is replayed, in seconds of the recording.
        strange: how many steps were about nodes that the cluster does not have.
    """

    jobs: tuple[PlannedJob, ...]
    steps: tuple[PlannedStep, ...]
    queues: Mapping[str, str]
    ends: Mapping[str, float]
    recording: Recording
    speed: float
    since: float
    until: float
    strange: int = 0

    @property
    def namespaces(self) -> tuple[str, ...]:
        """The recorded namespaces that it needs."""
        return tuple(sorted({each["metadata"]["namespace"] for job in self.jobs for each in job.objects}))


@dataclass
class _Alive:
    """A workload at some moment: the step that created it, its object, and whether it has been deleted."""

    step: RecordedStep
    object: Object
    gone: bool = False


def replayed(
    workload: Workload, recording: Recording, scheduler: SchedulerName, profiles: Sequence[str] = ()
) -> Replayed:
    """Plan a replay.

    Args:
        profiles: as of :func:`~kumulus.extras.lab.plan.scheduling.for_scheduler`.
    """
    replay = workload.replay
    assert replay is not None
    since, until = replay.from_, min(replay.until or recording.lasted, recording.lasted)
    alive, closed, later = _split(recording, since, until)
    first = [replaced(each, since) for each in alive.values() if not _over(each, since)]
    created = [*first, *(step for step in later if step.do == "create")]
    names = {step.job: f"{workload.name}-{number}" for number, step in enumerate(created, start=1)}
    last = {step.job: _Alive(step, copy.deepcopy(dict(step.what))) for step in created}
    steps = [PlannedStep(0.0, "cordon", node) for node in closed]
    for step in later:
        if step.do == "create":
            continue
        if step.job in last:
            _apply(last[step.job], step)
        if step.job in names or step.do in ("drain", "cordon", "uncordon"):
            job = names.get(step.job, step.job)
            spec = {key: _labelled(key, value, workload, job) for key, value in step.what.items()}
            steps.append(PlannedStep((step.at - since) / replay.speed, step.do, job, spec))
    jobs, ends = [], {}
    for step in created:
        name, lasts = names[step.job], step.ran
        found = _made(step, name, workload, replay.speed)
        if found["kind"] == "Pod" and lasts is not None and found["spec"].get("restartPolicy") in _ENDING:
            ends[name] = lasts / replay.speed
        namespace = found["metadata"].pop("namespace")
        workers = 0 if name in ends else _at_end(last[step.job])
        objects = for_scheduler(scheduler, workload, name, [found], {}, profiles)
        for each in objects:
            each["metadata"]["namespace"] = namespace
        at = (step.at - since) / replay.speed
        jobs.append(PlannedJob(name, workload.name, at, workers, tuple(objects), recorded=True))
    queues = {names[step.job]: step.queue for step in created}
    return Replayed(tuple(jobs), tuple(steps), queues, ends, recording, replay.speed, since, until)


def _split(
    recording: Recording, since: float, until: float
) -> tuple[dict[str, _Alive], dict[str, None], list[RecordedStep]]:
    """What there is at the beginning of a part of a recording, the nodes that are cordoned then, and its steps."""
    alive: dict[str, _Alive] = {}
    closed: dict[str, None] = {}
    steps: list[RecordedStep] = []
    for step in recording.steps:
        if step.at > until:
            break
        if step.at < since:
            _before(alive, closed, step)
        else:
            steps.append(step)
    return alive, closed, steps


def replaced(alive: _Alive, since: float) -> RecordedStep:
    """The creation of a workload as it was at the beginning of the part that is replayed."""
    step, ends = alive.step, _ends(alive)
    # One that had waited until then, or has more pods to come, has its whole run before it.
    left = step.ran if step.ran is None or ends is None else min(step.ran, ends - since)
    return RecordedStep(since, "create", step.job, step.queue, left, what=alive.object)


def _before(alive: dict[str, _Alive], closed: dict[str, None], step: RecordedStep) -> None:
    if step.do == "create":
        alive[step.job] = _Alive(step, copy.deepcopy(dict(step.what)))
    elif step.do == "delete":
        alive.pop(step.job, None)
    elif step.do == "change" and step.job in alive:
        alive[step.job].object["spec"] |= step.what
    elif step.do == "cordon":
        closed[step.job] = None
    elif step.do == "uncordon":
        closed.pop(step.job, None)


def _over(alive: _Alive, since: float) -> bool:
    ends = _ends(alive)
    return ends is not None and ends <= since


def _ends(alive: _Alive) -> float | None:
    """When its last pod had ended; None of what does not end, whatever became of single pods."""
    step = alive.step
    lasts = step.ran if step.over is None else step.over
    return None if lasts is None or alive.object["kind"] not in _ENDED_BY_PODS else step.at + lasts


def _apply(alive: _Alive, step: RecordedStep) -> None:
    if step.do == "delete":
        alive.gone = True
    elif step.do == "change":
        alive.object["spec"] |= step.what


def _at_end(alive: _Alive) -> int:
    """How many pods it has at the end; 0 if that is not known."""
    waiting = alive.object["spec"].get("suspend") or alive.object["spec"].get("paused")
    # No controller replaces a bare Pod, so one that is drained or preempted is not missed.
    if alive.gone or waiting or alive.object["kind"] == "Pod":
        return 0
    return expected_pods(alive.object)


def _made(step: RecordedStep, name: str, workload: Workload, speed: float) -> Object:
    found: Object = copy.deepcopy(dict(step.what))
    for template in pod_templates(found):
        _label(template, workload, name)
        if found["kind"] == "Job":
            lasts = _ENDLESS if step.ran is None else step.ran / speed
            template["metadata"].setdefault("annotations", {})[DELAY_ANNOTATION] = f"{lasts:.3f}s"
    return found


def _labelled(key: str, value: Any, workload: Workload, job: str) -> Any:
    if key != "template":
        return value
    found = copy.deepcopy(value)
    for template in pod_templates(found):
        _label(template, workload, job)
    return found


def _label(template: Object, workload: Workload, job: str) -> None:
    metadata, spec = template.get("metadata") or {}, template["spec"]
    labels = {**(metadata.get("labels") or {}), WORKLOAD_LABEL: workload.name, JOB_LABEL: job}
    template["metadata"] = {**metadata, "labels": labels}
    spec["tolerations"] = [*(spec.get("tolerations") or ()), *TOLERATIONS]


def cordons(replays: Iterable[Replayed]) -> Iterator[TimelineEvent]:
    """The recorded cordons as events of a timeline: each is a fault, which ends with the run at the latest.

    Their nodes are all in the cluster: :func:`on_nodes` has left out the others.
    """
    for step in (step for replay in replays for step in replay.steps):
        name = dns_safe(f"cordon-{step.job}", FAULT_NAME_LENGTH)
        if step.do == "cordon":
            fault = {"name": name, "target": {"names": [step.job]}, "taints": [{"key": CORDON, "effect": "NoSchedule"}]}
            yield TimelineEvent.model_validate({"at": f"{step.at:.3f}s", "fault": fault})
        elif step.do == "uncordon":
            yield TimelineEvent.model_validate({"at": f"{step.at:.3f}s", "clear": name})


def on_nodes(replay: Replayed, nodes: Collection[str]) -> Replayed:
    """A replay without the cordons and drains of nodes that are not there."""
    of_nodes = ("cordon", "uncordon", "drain")
    kept = tuple(step for step in replay.steps if step.do not in of_nodes or step.job in nodes)
    return replace(replay, steps=kept, strange=len(replay.steps) - len(kept))


def classes(recordings: Mapping[str, Recording]) -> Iterator[Object]:
    """The priority classes that recorded pods have; existing ones stay as they are."""
    found = {name: value for each in recordings.values() for name, value in each.priorities.items()}
    for name, value in sorted(found.items()):
        if not name.startswith("system-"):
            yield class_object(name, value)

"""Rules between the parts of an experiment file: names that are defined twice, or not at all.

Like `kumulus.stackfile.rules`, they check the plain file, so that the user sees all problems at once.
"""

from collections.abc import Collection, Iterator, Mapping

from kumulus.extras.schedulers import NAMES, registry
from kumulus.model import durations
from kumulus.model.checks import problem
from kumulus.model.errors import Problem, Where, shown
from kumulus.model.names import instead, suggest
from kumulus.stackfile.plain import duplicates, items

_MOMENTS = ("start", "created", "scheduled")
"""What times of a timeline count from, in the order in which they come."""


def rule_problems(raw: object) -> list[Problem]:
    """Every problem between the parts of an experiment's mapping; none for anything but a mapping."""
    if not isinstance(raw, Mapping):
        return []
    return [
        *_workloads(raw),
        *duplicates(items(raw, "workloads"), ("workloads",), "name", "name"),
        *_references(raw),
        *_scheduler(raw),
        *_stopped(raw),
        *_too_late(raw),
        *_why(raw),
        *_baseline(raw),
    ]


def _workloads(raw: Mapping[str, object]) -> Iterator[Problem]:
    if raw.get("workloads") == []:
        yield problem(("workloads",), "is empty", "write what is created: [{name: training, jobs: 10, workers: 8}]")


def _why(raw: Mapping[str, object]) -> Iterator[Problem]:
    if not raw.get("whyPolicy"):
        return
    if raw.get("why") is not True:
        yield problem(("whyPolicy",), "is shown by `kumulus experiment why` alone", "write why: true as well")
    if raw.get("policy"):
        message = "cannot be combined with a policy that decides"
        yield problem(("whyPolicy",), message, "leave one out; policy: is shown by why: true")


def _baseline(raw: Mapping[str, object]) -> Iterator[Problem]:
    """What is within something of the baseline needs one; one that nothing is compared with has no effect."""
    compared = [index for index, each in items(raw, "expect") if each.get("within") and each.get("measure")]
    if raw.get("baseline"):
        if not compared:
            message = "has no effect: no expectation is within something of it"
            yield problem(("baseline",), message, "write {measure: timeToSchedule.p99, within: 10% of baseline}")
        return
    for index in compared:
        yield problem(("expect", index, "within"), "has no baseline", "write baseline: FILE at the top of the file")


def _references(raw: Mapping[str, object]) -> Iterator[Problem]:
    workloads = [each.get("name") for _, each in items(raw, "workloads")]
    faults = [
        fault.get("name") for _, each in items(raw, "timeline") if isinstance(fault := each.get("fault"), Mapping)
    ]
    for part, key, known, what in (
        ("expect", "workload", workloads, "workload"),
        ("timeline", "delete", workloads, "workload"),
        ("timeline", "clear", faults, "fault of this timeline"),
    ):
        for index, item in items(raw, part):
            yield from _unknown((part, index, key), item.get(key), known, what)
    yield from _of_faults(raw, faults)
    yield from _deleted(raw)
    yield from _scaled(raw, workloads)
    yield from _restored(raw)


def _unknown(where: Where, name: object, known: Collection[object], what: str) -> Iterator[Problem]:
    """A name of something that there is not; one that nothing is like may be meant for what has none."""
    names = [each for each in known if isinstance(each, str)]
    if isinstance(name, str) and name not in names and (len(names) == len(known) or suggest(name, names)):
        yield problem(where, f"{shown(name)} is no {what}", instead(name, names) if names else "leave it out")


def _of_faults(raw: Mapping[str, object], faults: list[object]) -> Iterator[Problem]:
    """What is expected of faulted nodes needs a fault."""
    for index, item in items(raw, "expect"):
        nodes = item.get("nodes")
        name = nodes.get("fault") if isinstance(nodes, Mapping) else None
        yield from _unknown(("expect", index, "nodes", "fault"), name, faults, "fault of this timeline")
        if item.get("onFaultedNodes") is not None and not faults:
            remedy = "write one, as in {fault: {name: rack1, kind: unreachable, target: {rack: r1}}}"
            yield problem(("expect", index, "onFaultedNodes"), "the timeline has no fault", remedy)


def _restored(raw: Mapping[str, object]) -> Iterator[Problem]:
    """Only a worker that the timeline kills or partitions can be restored."""
    struck = [str(each[key]) for _, each in items(raw, "timeline") for key in ("kill", "partition") if each.get(key)]
    for index, item in items(raw, "timeline"):
        what = "worker that this timeline kills or partitions"
        yield from _unknown(("timeline", index, "restore"), item.get("restore"), dict.fromkeys(struck), what)


def _deleted(raw: Mapping[str, object]) -> Iterator[Problem]:
    """A recording has its own deletions, and its objects are in other namespaces."""
    recordings = {each.get("name") for _, each in items(raw, "workloads") if "replay" in each}
    for index, item in items(raw, "timeline"):
        if isinstance(name := item.get("delete"), str) and name in recordings:
            message = f"{shown(name)} is a recording, which says what is deleted, and when"
            yield problem(("timeline", index, "delete"), message, "leave it out, or write replay.until")


def _scaled(raw: Mapping[str, object], workloads: list[object]) -> Iterator[Problem]:
    """Only a workload of Deployments can be scaled."""
    kinds = {str(each.get("name")): each for _, each in items(raw, "workloads")}
    for index, item in items(raw, "timeline"):
        scale = item.get("scale")
        name = scale.get("workload") if isinstance(scale, Mapping) else None
        if not isinstance(name, str):
            continue
        where = ("timeline", index, "scale", "workload")
        if name not in kinds:
            yield from _unknown(where, name, workloads, "workload")
        elif "replay" in kinds[name] or ("manifest" not in kinds[name] and kinds[name].get("kind") != "Deployment"):
            remedy = "write kind: Deployment for it, or delete: for the whole workload"
            yield problem(where, f"{shown(name)} is not made of Deployments, whose pods can be more or fewer", remedy)


def _scheduler(raw: Mapping[str, object]) -> Iterator[Problem]:
    chosen = raw.get("scheduler")
    name = chosen.get("name", "default") if isinstance(chosen, Mapping) else None
    if isinstance(chosen, Mapping) and (name == "default" or (name in NAMES and registry.get(str(name)).is_own)):
        for key in ("config", "binary"):
            if chosen.get(key):
                message = "has no effect on the cluster's own scheduler"
                remedy = "write name: kube-scheduler (--scheduler kube-scheduler), which is started alongside it"
                yield problem(("scheduler", key), message, remedy)


def _stopped(raw: Mapping[str, object]) -> Iterator[Problem]:
    """A scheduler that is stopped and never started would leave an experiment without an outcome."""
    actions = [(index, event) for index, event in items(raw, "timeline") if event.get("scheduler")]
    last, event = max(actions, key=lambda each: (_when(each[1]), each[0]), default=(0, {}))
    if event.get("scheduler") == "stop":
        remedy = "add an item {after: created, scheduler: start}"
        yield problem(("timeline", last, "scheduler"), "stops the scheduler for good", remedy)


def _too_late(raw: Mapping[str, object]) -> Iterator[Problem]:
    """What comes after the timeout never happens."""
    timeout = _length(raw.get("timeout", "10m"))
    for index, event in items(raw, "timeline"):
        if timeout and _length(event.get("at", 0)) >= timeout:
            message = f"is not before the run's timeout, {raw.get('timeout', '10m')}"
            yield problem(("timeline", index, "at"), message, "write an earlier time, or a longer timeout: for the run")


def _when(event: Mapping[str, object]) -> tuple[int, float]:
    """What orders events by their time, as far as that is known before the run."""
    after = event.get("after", "start")
    return _MOMENTS.index(after) if after in _MOMENTS else 0, _length(event.get("at", 0))


def _length(value: object) -> float:
    return durations.of(value) if isinstance(value, str | int) and not durations.duration_problems((), value) else 0.0

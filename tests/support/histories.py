"""Random histories for tests, and a way to read them that shares no code with the product."""

import random
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from kumulus.extras.watch.history.document import History, Sort
from kumulus.extras.watch.history.recorder import Facts, Figures, JobKey, Recorder
from kumulus.extras.watch.live.admission import (
    AdmissionRule,
    AdmissionShape,
    Alternative,
    Nature,
    NodeTaint,
    Requirement,
    Toleration,
)
from tests.support.fleets import WHOLE, node, pod

REASONS = (("Insufficient nvidia.com/gpu",), ("Insufficient cpu", "node(s) had untolerated taint"), ("not tried",))
# Where the pods of a job may go: as the product's rule, and as an independent function of a node.
_EVEN = AdmissionShape((Requirement("parity", "In", ("even",)),))
_TOLERANT = AdmissionShape(tolerations=(Toleration("ill", "Exists", "", ""),))
RULES: tuple[tuple[AdmissionRule, Callable[[int, bool], bool]], ...] = (
    (AdmissionRule(), lambda index, ill: not ill),
    (AdmissionRule((Alternative(_EVEN),)), lambda index, ill: index % 2 == 0 and not ill),
    (AdmissionRule((Alternative(_TOLERANT, None, ("n-3",)),)), lambda index, ill: index != 3),
    (
        AdmissionRule((Alternative(_EVEN), Alternative(_TOLERANT, ("n-5",)))),
        lambda index, ill: (index % 2 == 0 and not ill) or index == 5,
    ),
)


def drawn(seed: int, nodes: int = 40, pods: int = 120, steps: int = 1500, span: int = 600_000) -> History:
    """A random history: nodes come, get faults and are removed; pods wait, are bound, run, are preempted and end."""
    draw, recorder = random.Random(seed), Recorder({"title": f"drawn {seed}", "scheduler": "default"})
    times = sorted(draw.randrange(span) for _ in range(steps))
    for index in range(nodes):
        recorder.node(f"n-{index}", _node(draw, index, well=True), 0)
    for index in range(pods // 10):
        recorder.job(_key(index), Facts(draw.choice((0, 10)), draw.choice(("", "a", "b")), draw.choice((0, 100))), 0)
    for at in times:
        _step(draw, recorder, nodes, pods, at)
    return recorder.history


def _key(index: int) -> JobKey:
    return JobKey(f"train-{index}", "Job", "default")


def _node(draw: random.Random, index: int, well: bool) -> Any:
    # An unhealthy node has a taint, too.
    ill: dict[str, Any] = (
        {} if well else draw.choice(({"faults": ("xid79",)}, {"ready": "Unknown"}, {"cordoned": True}))
    )
    if "faults" in ill:
        ill = {**ill, "allocatable": WHOLE._replace(gpus=7)}
    taints = () if well else (NodeTaint("ill", "", "NoSchedule"),)
    nature = Nature((("parity", ("even", "odd")[index % 2]),), taints)
    return node(f"n-{index}", f"use{index % 3 + 1}", rack=f"r{index // 8}", nature=nature, **ill)


def _step(draw: random.Random, recorder: Recorder, nodes: int, pods: int, at: int) -> None:
    what, index = draw.random(), draw.randrange(pods)
    key, job = f"default/p-{index}", _key(index // 10)
    base = replace(pod(f"p-{index}", "", draw.choice((1, 8))), phase="Pending", reasons=draw.choice(REASONS))
    base = replace(base, rule=RULES[index // 10 % len(RULES)][0])
    bound = replace(base, node=f"n-{draw.randrange(nodes)}", reasons=())
    if what < 0.1:
        number = draw.randrange(nodes)
        recorder.node(f"n-{number}", None if draw.random() < 0.3 else _node(draw, number, draw.random() < 0.5), at)
    elif what < 0.13:
        recorder.happened(f"something {at}", draw.choice(list(Sort)), at)
    elif what < 0.17:
        use = {"cpu": str(draw.randrange(100))}
        recorder.queue("a", "ClusterQueue", Figures({"cpu": "100"}, use, draw.randrange(5), 1), at)
    elif what < 0.35:
        recorder.pod(key, base, job, at)
    elif what < 0.6:
        recorder.pod(key, bound, job, at)
    elif what < 0.75:
        recorder.pod(key, replace(bound, phase="Running"), job, at)
    elif what < 0.85:
        recorder.pod(key, replace(bound, disrupted=draw.choice(("PreemptionByScheduler", "DeletionByTaint"))), job, at)
    elif what < 0.93:
        recorder.pod(key, replace(bound, phase=draw.choice(("Succeeded", "Failed"))), job, at)
    else:
        recorder.pod(key, None, job, at)


def read_at(plain: dict[str, Any], at: int, rooms: bool = False) -> dict[str, Any]:
    """The state at a time, from the last event that names each row: slow, but independent of the product.

    Args:
        plain: a history; with ``rooms`` one that was drawn.
        at: milliseconds.
        rooms: whether to say where more pods of each job could go.
    """
    numbers = plain["events"]
    events = [numbers[n : n + 5] for n in range(0, len(numbers), 5)]
    past = [event for event in events if event[0] <= at]

    def last(kind: int) -> dict[int, list[int]]:
        return {event[2]: event for event in past if event[1] == kind}

    pods = {number: (plain["pods"][number], event[3], event[4]) for number, event in last(1).items()}
    there = {n: plain["conditions"][event[3]] for n, event in last(0).items() if event[3] >= 0}
    nodes = {}
    for number, (state, _, *has) in there.items():
        here = [plain["requests"][row[2]] for row, status, on in pods.values() if 2 <= status <= 5 and on == number]
        taken = [*(sum(each[part] for each in here) for part in range(3)), len(here)]
        nodes[plain["nodes"][number][0]] = [state, has, taken]
    jobs = {}
    for number in {event[2] for event in past if event[1] == 2} | {row[1] for row, _, _ in pods.values()}:
        mine = [(status, other) for row, status, other in pods.values() if row[1] == number]
        count = Counter(status for status, _ in mine)
        held = sum(count[status] for status in (2, 3, 4, 5))
        jobs["/".join(reversed(plain["jobs"][number]))] = {
            "state": _state(plain, number, past, count),
            "waiting": count[1],
            "held": held,
            "running": count[3],
            "succeeded": count[6],
            "lost": count[7] + count[8],
            "reasons": dict(
                Counter(each for status, other in mine if status == 1 for each in plain["texts"][other].split("\n"))
            ),
            "nodes": dict(Counter(plain["nodes"][other][0] for status, other in mine if 2 <= status <= 5)),
            **({"room": _room(plain, number, pods, there, nodes)} if rooms else {}),
        }
    return {
        "nodes": nodes,
        "jobs": jobs,
        "pods": dict(Counter(status for _, status, _ in pods.values())),
        "states": dict(Counter(state for state, _, _ in nodes.values())),
        "has": [sum(has[part] for _, has, _ in nodes.values()) for part in range(4)],
        "taken": [sum(taken[part] for _, _, taken in nodes.values()) for part in range(4)],
        "queues": {
            "/".join(reversed(plain["queues"][n])): plain["figures"][event[3]]
            for n, event in last(3).items()
            if event[3] >= 0
        },
        "happened": [plain["texts"][event[2]] for event in past if event[1] == 4],
    }


def _room(plain: dict[str, Any], number: int, pods: dict[int, Any], there: dict[int, Any], nodes: Any) -> Any:
    """Where a job's waiting pods could go, by the drawn rules and not by what the history records about them."""
    waiting = sorted(n for n, (row, status, _) in pods.items() if row[1] == number and status == 1)
    if not waiting:
        return None
    asks = [*plain["requests"][pods[waiting[0]][0][2]][:3], 1]
    may_go = RULES[int(plain["jobs"][number][0].removeprefix("train-")) % len(RULES)][1]
    may, fit, lacking = [], {}, []
    for row in sorted(there):
        name, (state, has, taken) = plain["nodes"][row][0], nodes[plain["nodes"][row][0]]
        ill = state != "ready"
        if state == "not ready" or not may_go(int(name.removeprefix("n-")), ill):
            continue
        free = [whole - part for whole, part in zip(has, taken, strict=True)]
        most = 0
        while all(amount * (most + 1) <= left for amount, left in zip(asks, free, strict=True)):
            most += 1
        if all(amount <= whole for amount, whole in zip(asks, has, strict=True)):
            may.append(name)
        if most:
            fit[name] = most
        lacks = [max(0, amount * (most + 1) - left) for amount, left in zip(asks, free, strict=True)]
        if all(amount * (most + 1) <= whole for amount, whole in zip(asks, has, strict=True)):
            lacking.append((lacks, row, name))
    least = sorted(lacking)[: max(0, len(waiting) - sum(fit.values()))]
    return {"may": sorted(may), "fit": fit, "free": {name: lacks for lacks, _, name in least}}


def _state(plain: dict[str, Any], number: int, past: list[list[int]], count: Counter[int]) -> str:
    """A job's state, from its last event and from its pods."""
    told = [event[3] for event in past if event[1] == 2 and event[2] == number]
    size, says = (plain["facts"][told[-1]][0], plain["facts"][told[-1]][3]) if told and told[-1] >= 0 else (0, "gone")
    held = sum(count[status] for status in (2, 3, 4, 5))
    if not held and not count[1]:
        remade = says not in ("gone", "Complete", "Completed", "Failed", "Finished")
        if not remade or (count[6] >= size if size else count[6] + count[7] + count[8]):
            return "ended"
    if not held:
        return "waiting"
    wanted = size or count[1] + held + count[6]
    if held + count[6] < wanted:
        return "partly"
    return "running" if count[3] + count[6] >= wanted else "placed"

"""Histories that tests draw, and a reading of them that shares nothing with the product's."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import replace
from typing import Any

from kumulus.cluster.history.document import History
from kumulus.cluster.history.recorder import Facts, Figures, JobKey, Recorder
from kumulus.cluster.history.words import Sort
from tests.support.fleets import WHOLE, node, pod

REASONS = (("Insufficient nvidia.com/gpu",), ("Insufficient cpu", "node(s) had untolerated taint"), ("not tried",))


def drawn(seed: int, nodes: int = 40, pods: int = 120, steps: int = 1500, span: int = 600_000) -> History:
    """A history of nodes that come, fall ill and go, and of pods that wait, are bound, run, are preempted and end."""
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
    ill: dict[str, Any] = (
        {} if well else draw.choice(({"faults": ("xid79",)}, {"ready": "Unknown"}, {"cordoned": True}))
    )
    if "faults" in ill:
        ill = {**ill, "allocatable": WHOLE._replace(gpus=7)}
    return node(f"n-{index}", f"use{index % 3 + 1}", rack=f"r{index // 8}", **ill)


def _step(draw: random.Random, recorder: Recorder, nodes: int, pods: int, at: int) -> None:
    what, index = draw.random(), draw.randrange(pods)
    key, job = f"default/p-{index}", _key(index // 10)
    base = replace(pod(f"p-{index}", "", draw.choice((1, 8))), phase="Pending", reasons=draw.choice(REASONS))
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


def read_at(plain: dict[str, Any], at: int) -> dict[str, Any]:
    """What was so at a time, by looking from each row for the last event that names it: slow, and on its own."""
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


def _state(plain: dict[str, Any], number: int, past: list[list[int]], count: Counter[int]) -> str:
    """A job's state by the last that was said of it and by its pods."""
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

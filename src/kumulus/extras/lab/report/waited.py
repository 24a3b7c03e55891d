"""Why pods waited, in their scheduler's words: from a run's history, for schedulers that do not log how they decide."""

from __future__ import annotations

from typing import Any

from kumulus.extras.lab.measure.summary import plain
from kumulus.extras.watch.history.document import Event, History
from kumulus.extras.watch.history.words import Kind, Status

_HOLDS = (Status.BOUND, Status.RUNNING)


def of_all(history: History) -> tuple[dict[str, Any], list[str]]:
    """For each reason how many pods had it, and how many still had it at the end; for programs, and in lines.

    With what the objects of jobs said: a gang that waits as a whole may say so only there.
    """
    ever: dict[str, set[int]] = {}
    last: dict[int, str] = {}
    said: dict[str, set[int]] = {}
    for event in history:
        if event.kind == Kind.POD:
            last[event.what] = ""
            for reason in _reasons(history, event):
                last[event.what] = reason
                ever.setdefault(reason, set()).add(event.what)
        elif event.kind == Kind.JOB and event.one >= 0 and (text := plain(str(history.facts[event.one][3]))):
            said.setdefault(text, set()).add(event.what)
    by_pods = sorted(ever, key=lambda reason: (-len(ever[reason]), reason))
    pods = {reason: {"pods": len(ever[reason]), "atTheEnd": list(last.values()).count(reason)} for reason in by_pods}
    jobs = {text: len(said[text]) for text in sorted(said, key=lambda text: (-len(said[text]), text))}
    lines = [f"{each['pods']:>9,}  pods waited, {each['atTheEnd']:,} at the end: {why}" for why, each in pods.items()]
    lines += [f"{count:>9,}  jobs said: {text}" for text, count in jobs.items()]
    return {"pods": pods, "jobs": jobs}, lines or ["no scheduler gave a reason why a pod waited"]


def of_pod(history: History, wanted: str) -> tuple[dict[str, Any], list[str]] | None:
    """What became of a job by its name, or of a pod by the start of its name, and why it waited; None if neither is."""
    names = [str(pod[0]) for pod in history.pods]
    found = [at for at, name in enumerate(names) if wanted in (name, name.partition("/")[2])]
    if not found and any(job[0] == wanted for job in history.jobs):
        return _of_job(history, wanted)
    found = found or [at for at, name in enumerate(names) if name.startswith(wanted) or f"/{wanted}" in name]
    if not found:
        return None
    lines, steps = [names[found[0]]], []
    for event in history:
        if event.kind != Kind.POD or event.what != found[0]:
            continue
        status = Status(event.one).name.lower()
        reasons = _reasons(history, event)
        node = history.nodes[event.other][0] if event.one in _HOLDS and event.other >= 0 else ""
        steps.append({"seconds": event.at / 1000, "status": status, "node": node, "reasons": reasons})
        after = "".join(f": {each}" for each in reasons) or (f" on {node}" if node else "")
        lines.append(f"  {event.at / 1000:>8.1f} s  {status}{after}")
    return {"pod": names[found[0]], "steps": steps}, lines


def _of_job(history: History, wanted: str) -> tuple[dict[str, Any], list[str]]:
    """What the objects of a job said of it, such as its PodGroup, and how many of its pods were evicted for others."""
    number = [job[0] for job in history.jobs].index(wanted)
    steps: list[dict[str, Any]] = []
    victims = 0
    for event in history:
        if event.kind == Kind.JOB and event.what == number and event.one >= 0:
            said = str(history.facts[event.one][3])
            if said and (not steps or steps[-1]["said"] != said):
                steps.append({"seconds": event.at / 1000, "said": said})
        elif event.kind == Kind.POD and event.one == Status.PREEMPTED and history.pods[event.what][1] == number:
            victims += 1
    lines = [wanted, *(f"  {each['seconds']:>8.1f} s  {each['said']}" for each in steps)]
    lines += [f"  {victims:>10,}  of its pods were evicted for others"] if victims else []
    return {"job": wanted, "steps": steps, "preempted": victims}, lines


def _reasons(history: History, event: Event) -> list[str]:
    if event.one != Status.WAITING or event.other < 0:
        return []
    return [reason for each in history.texts[event.other].split("\n") if (reason := plain(each))]

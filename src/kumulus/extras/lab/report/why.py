"""Why a pod went to its node, in words: the filters that refused other nodes, the scores, and earlier refusals.

Of schedulers that do not log how they decide, a run's history says why pods waited, in the scheduler's words.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from kumulus.extras.lab.errors import LabError
from kumulus.extras.lab.extender import column
from kumulus.extras.lab.extender.column import PolicyColumn
from kumulus.extras.lab.measure.summary import plain
from kumulus.extras.schedulers.decisions import document
from kumulus.extras.schedulers.decisions.document import Decision, DecisionTotals
from kumulus.extras.watch.history.document import EventKind, History, HistoryEvent, Status
from kumulus.model.names import suggest

NOT_ASKED = "kube-scheduler asked no extender"
_SHOWN = 10


_HOLDS = (Status.BOUND, Status.RUNNING)


def explained(decision: Decision, column: PolicyColumn | None = None) -> list[str]:
    """The lines about one pod.

    Args:
        column: the scores that a policy gave nodes, if there is one.
    """
    lines = [*_lines(decision), *(_of_policy(decision, column) if column else ())]
    return [f"{decision.pod} -> {decision.node}", *(f"  {line}" for line in lines)]


def sums(
    kept: Sequence[Decision], totals: Sequence[DecisionTotals], *, of_one: bool = False
) -> tuple[dict[str, Any], list[str]]:
    """How many bindings are explained, and what decided them; for programs, and in lines.

    Args:
        totals: of each start of the scheduler.
        of_one: whether they are of one repetition; of what was not kept, it is not known which had it.
    """
    dropped = sum(each.dropped for each in totals)
    ways = Counter(_way(each) for each in kept)
    known = sum(each.explained for each in kept)
    bound = len(kept) + (0 if of_one else dropped)
    share = 100 * known / bound if bound else 100.0
    document = {"bound": bound, "explained": known, "percent": round(share, 2), "by": dict(ways), "dropped": dropped}
    lines = [f"{known:,} of {bound:,} bindings are explained ({share:.1f} %)"]
    lines += [f"  {count:>9,}  {way}" for way, count in ways.most_common()]
    document["filters"], of_filters = _filters(kept)
    lines += of_filters
    if dropped:
        which = "of all repetitions " if of_one else ""
        lines.append(f"  {dropped:>9,}  {which}not kept, as the file had reached its limit")
    return document, lines


def _filters(kept: Sequence[Decision]) -> tuple[dict[str, Any], list[str]]:
    """For how many of the bindings with refused nodes the refusing filters are known."""
    refusing = [each for each in kept if each.missing]
    if not refusing:
        return {"bindings": 0, "named": 0, "refused": {}, "unknown": {}}, []
    named = [each for each in refusing if each.filters]
    nodes: Counter[str] = Counter()
    for each in named:
        nodes.update(each.filters)
    unknown = Counter(each.unknown or NOT_ASKED for each in refusing if not each.filters)
    share = 100 * len(named) / len(refusing)
    lines = [f"of {len(refusing):,} with refused nodes, the filters are known of {len(named):,} ({share:.1f} %)"]
    lines += [f"  {count:>9,}  nodes refused by {name}" for name, count in nodes.most_common()]
    lines += [f"  {count:>9,}  not known: {why}" for why, count in unknown.most_common()]
    document = {"bindings": len(refusing), "named": len(named), "percent": round(share, 2)}
    return {**document, "refused": dict(nodes), "unknown": dict(unknown)}, lines


def _way(decision: Decision) -> str:
    if decision.like:
        return "the next of the list of an equal pod"
    if decision.feasible == 1:
        return "the only node that fitted" if decision.passed <= 1 else "the only node that an extender left"
    if decision.chosen is None:
        return "not known"
    return "the highest score" if decision.equal == 1 else "drawn among the highest scores"


def _lines(decision: Decision) -> Iterator[str]:
    if decision.refused:
        yield f"refused before  {decision.refused} times, the last time: {decision.reason}"
    if decision.like:
        yield f"nodes           those of {decision.like}, an equal pod, whose list was used again"
    else:
        fitted = decision.passed or decision.feasible
        looked_at = max(decision.evaluated, fitted + decision.missing)
        yield f"nodes           {looked_at} looked at, {fitted} fitted, {decision.missing} were refused"
        if decision.filters:
            yield "refused by      " + ", ".join(f"{name} {count}" for name, count in decision.filters.items())
        elif decision.missing:
            yield f"refused by      not known: {decision.unknown or NOT_ASKED}"
        if fitted > decision.feasible:
            yield f"left            {decision.feasible} of those that fitted, by an extender"
    yield f"decided         {_decided(decision)}"
    if decision.chosen is not None:
        yield from _table(decision)


def _decided(decision: Decision) -> str:
    if decision.equal > 1:
        lower = decision.chosen and decision.next and decision.next.total < decision.chosen.total
        then = "; next to it the best of the lower ones" if lower else ""
        return f"one of {decision.equal} nodes with the highest score, drawn by kube-scheduler{then}"
    return _way(decision)


def _of_policy(decision: Decision, column: PolicyColumn) -> Iterator[str]:
    yield f"policy          {column.policy}, which {'decides' if column.decides else 'looks on'}: {_ranking(column)}"
    if column.score is not None or column.other:
        heads = [column.node or decision.node, *([column.other] if column.other else [])]
        yield from _rows([("policy's score", heads), (column.policy, [column.score, column.other_score])])


def _ranking(column: PolicyColumn) -> str:
    if column.failure:
        return f"it failed: {column.failure.splitlines()[0]}"
    if column.score is None and not column.higher:
        return f"it scores no node of the {column.offered} that fitted"
    if column.score is None:
        return f"by its account the pod does not fit here, and fits on {column.fitting} of {column.offered} nodes"
    if column.higher:
        return f"{column.higher} of {column.fitting} nodes {'has' if column.higher == 1 else 'have'} a higher score"
    return "the highest score" if column.equal == 1 else f"the highest score, as {column.equal} nodes have it"


def _table(decision: Decision) -> Iterator[str]:
    chosen, other = decision.chosen, decision.next
    assert chosen is not None
    nodes = [chosen, *([other] if other else [])]
    rows: list[tuple[str, list[str | float | None]]] = [("score", [each.node for each in nodes])]
    rows += [(name, [each.scores.get(name, 0) for each in nodes]) for name in sorted(chosen.scores)]
    rows.append(("total", [each.total for each in nodes]))
    yield from _rows(rows)


def _rows(rows: Sequence[tuple[str, Sequence[str | float | None]]]) -> Iterator[str]:
    """A table: the first row has the column heads, to which the other cells are right-aligned."""
    width, heads = max(len(name) for name, _ in rows), rows[0][1]
    for name, cells in rows:
        texts = [f"{_cell(cell):>{len(str(head))}}" for cell, head in zip(cells, heads, strict=False)]
        yield f"{name:<{width}}  " + "  ".join(texts)


def _cell(cell: str | float | None) -> str:
    if isinstance(cell, float):
        return f"{cell:g}"
    return "-" if cell is None else str(cell)


@dataclass
class Decided:
    """What was recorded in all repetitions."""

    decisions: list[Decision] = field(default_factory=list)
    totals: list[DecisionTotals] = field(default_factory=list)
    columns: dict[str, PolicyColumn] = field(default_factory=dict)
    """The scores that a policy gave nodes, by pod."""

    def of(self, repetition: int | None) -> Sequence[Decision]:
        """The decisions of one repetition; None for all of them."""
        return [each for each in self.decisions if _is_of(each.pod, repetition)]

    def waiting(self, repetition: int | None) -> dict[str, str]:
        """The pods of a repetition that were never bound, with the last message about each."""
        found = (each for totals in self.totals for each in totals.waiting.items())
        return {pod: reason for pod, reason in found if _is_of(pod, repetition)}


def _is_of(pod: str, repetition: int | None) -> bool:
    return repetition is None or pod.partition("/")[0].endswith(f"-{repetition}")


def named(pods: Iterable[str], wanted: str) -> str | None:
    """The pod of a name, or the only one whose name begins so, first of a job's name; None if there is none."""
    every = dict.fromkeys(pods)
    found = [pod for pod in every if wanted in (pod, _name(pod))]
    found = found or [pod for pod in every if _name(pod).startswith(f"{wanted}-")]
    found = found or [pod for pod in every if _name(pod).startswith(wanted) or pod.startswith(wanted)]
    if len(found) > 1:
        shown = ", ".join(found[:_SHOWN]) + (" …" if len(found) > _SHOWN else "")
        raise LabError(f"{len(found)} pods begin with {wanted}: {shown}\n  Write more of it, or --repetition N")
    return found[0] if found else None


def like(names: Iterable[str], wanted: str) -> str | None:
    """The pod or job that a misspelt name most likely means; a pod's job is its name without the last part."""
    found = dict.fromkeys(each.rpartition("/")[2] for each in names)
    return suggest(wanted.rpartition("/")[2], filter(None, [*(each.rpartition("-")[0] for each in found), *found]))


def _name(pod: str) -> str:
    return pod.partition("/")[2]


def read(run: Path) -> Decided | None:
    """What was recorded below the directory of a run; None if its file did not ask for it."""
    files = sorted(run.glob(f"scheduler*/{document.NAME}"))
    if not files:
        return None
    found = Decided()
    try:
        for file in files:
            for each in document.decisions(file):
                if isinstance(each, DecisionTotals):
                    found.totals.append(each)
                else:
                    found.decisions.append(each)
        for file in sorted(run.glob(f"scheduler*/{column.NAME}")):
            found.columns |= {each.pod: each for each in column.columns(file)}
    except OSError as error:
        raise LabError(f"{error.filename} cannot be read: {error.strerror}") from None
    return found


def waits(history: History) -> tuple[dict[str, Any], list[str]]:
    """For each reason how many pods had it, and how many still had it at the end; for programs, and in lines.

    With what the objects of jobs said: a gang that waits as a whole may say so only there.
    """
    ever: dict[str, set[int]] = {}
    last: dict[int, str] = {}
    said: dict[str, set[int]] = {}
    for event in history:
        if event.kind == EventKind.POD:
            last[event.what] = ""
            for reason in _reasons(history, event):
                last[event.what] = reason
                ever.setdefault(reason, set()).add(event.what)
        elif event.kind == EventKind.JOB and event.one >= 0 and (text := plain(str(history.facts[event.one][3]))):
            said.setdefault(text, set()).add(event.what)
    by_pods = sorted(ever, key=lambda reason: (-len(ever[reason]), reason))
    pods = {reason: {"pods": len(ever[reason]), "atTheEnd": list(last.values()).count(reason)} for reason in by_pods}
    jobs = {text: len(said[text]) for text in sorted(said, key=lambda text: (-len(said[text]), text))}
    lines = [f"{each['pods']:>9,}  pods waited, {each['atTheEnd']:,} at the end: {why}" for why, each in pods.items()]
    lines += [f"{count:>9,}  jobs said: {text}" for text, count in jobs.items()]
    return {"pods": pods, "jobs": jobs}, lines or ["no scheduler gave a reason why a pod waited"]


def waits_of(history: History, wanted: str) -> tuple[dict[str, Any], list[str]] | None:
    """What became of a job by its name, or of a pod by the start of its name, and why it waited; None if neither is."""
    names = [str(pod[0]) for pod in history.pods]
    if not any(wanted in (name, _name(name)) for name in names) and any(job[0] == wanted for job in history.jobs):
        return _of_job(history, wanted)
    if (found := named(names, wanted)) is None:
        return None
    number = names.index(found)
    lines, steps = [found], []
    for event in history:
        if event.kind != EventKind.POD or event.what != number:
            continue
        status = Status(event.one).name.lower()
        reasons = _reasons(history, event)
        node = history.nodes[event.other][0] if event.one in _HOLDS and event.other >= 0 else ""
        steps.append({"seconds": event.at / 1000, "status": status, "node": node, "reasons": reasons})
        after = "".join(f": {each}" for each in reasons) or (f" on {node}" if node else "")
        lines.append(f"  {event.at / 1000:>8.1f} s  {status}{after}")
    return {"pod": found, "steps": steps}, lines


def _of_job(history: History, wanted: str) -> tuple[dict[str, Any], list[str]]:
    """What the objects of a job said of it, such as its PodGroup, and how many of its pods were evicted or waited."""
    number = [job[0] for job in history.jobs].index(wanted)
    steps: list[dict[str, Any]] = []
    waits: dict[int, str] = {}
    victims = 0
    for event in history:
        if event.kind == EventKind.JOB and event.what == number and event.one >= 0:
            said = str(history.facts[event.one][3])
            if said and (not steps or steps[-1]["said"] != said):
                steps.append({"seconds": event.at / 1000, "said": said})
        elif event.kind == EventKind.POD and history.pods[event.what][1] == number:
            victims += event.one == Status.PREEMPTED
            waits[event.what] = "; ".join(_reasons(history, event))
    lines = [wanted, *(f"  {each['seconds']:>8.1f} s  {each['said']}" for each in steps)]
    lines += [f"  {victims:>10,}  of its pods were evicted for others"] if victims else []
    left = Counter(filter(None, waits.values()))
    lines += [f"  {count:>10,}  of its pods waited at the end: {reason}" for reason, count in left.most_common()]
    return {"job": wanted, "steps": steps, "preempted": victims, "waiting": dict(left)}, lines


def _reasons(history: History, event: HistoryEvent) -> list[str]:
    if event.one != Status.WAITING or event.other < 0:
        return []
    return [reason for each in history.texts[event.other].split("\n") if (reason := plain(each))]

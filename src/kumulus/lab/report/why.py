"""Why a pod went to its node, in words: the scores that decided, and what had refused it before."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

from kumulus.schedulers.decisions.document import Decision, Totals


def explained(decision: Decision) -> list[str]:
    """The lines about one pod."""
    return [f"{decision.pod} -> {decision.node}", *(f"  {line}" for line in _lines(decision))]


def sums(kept: Sequence[Decision], totals: Sequence[Totals]) -> tuple[dict[str, Any], list[str]]:
    """Of how many bindings it is known why, and what decided them; for programs, and in lines.

    Args:
        kept: the decisions.
        totals: of each start of the scheduler.
    """
    dropped = sum(each.dropped for each in totals)
    ways = Counter(_way(each) for each in kept)
    known = sum(each.explained for each in kept)
    bound = len(kept) + dropped
    share = 100 * known / bound if bound else 100.0
    document = {"bound": bound, "explained": known, "percent": round(share, 2), "by": dict(ways), "dropped": dropped}
    lines = [f"{known:,} of {bound:,} bindings are explained ({share:.1f} %)"]
    lines += [f"  {count:>9,}  {way}" for way, count in ways.most_common()]
    if dropped:
        lines.append(f"  {dropped:>9,}  not kept, as the file had reached its limit")
    return document, lines


def _way(decision: Decision) -> str:
    if decision.like:
        return "the next of the list of an equal pod"
    if decision.feasible == 1:
        return "the only node that fitted"
    if decision.chosen is None:
        return "not known"
    return "the highest score" if decision.equal == 1 else "drawn among the highest scores"


def _lines(decision: Decision) -> Iterator[str]:
    if decision.refused:
        yield f"refused before  {decision.refused} times, the last time: {decision.reason}"
    if decision.like:
        yield f"nodes           those of {decision.like}, an equal pod, whose list was used again"
    else:
        refused = decision.evaluated - decision.feasible
        yield f"nodes           {decision.evaluated} looked at, {decision.feasible} fitted, {refused} were refused"
    yield f"decided         {_decided(decision)}"
    if decision.chosen is not None:
        yield from _table(decision)


def _decided(decision: Decision) -> str:
    if decision.equal > 1:
        return f"one of {decision.equal} nodes with the highest score, drawn by kube-scheduler"
    return _way(decision)


def _table(decision: Decision) -> Iterator[str]:
    chosen, other = decision.chosen, decision.next
    assert chosen is not None
    heads = [chosen.node, *([other.node] if other else [])]
    width = max(len(name) for name in ("score", *chosen.scores))
    yield f"{'score':<{width}}  " + "  ".join(heads)
    for plugin in sorted(chosen.scores):
        columns = [chosen.scores[plugin], *([other.scores.get(plugin, 0)] if other else [])]
        yield f"{plugin:<{width}}  " + "  ".join(f"{n:>{len(head)}}" for n, head in zip(columns, heads, strict=True))
    columns = [chosen.total, *([other.total] if other else [])]
    yield f"{'total':<{width}}  " + "  ".join(f"{n:>{len(head)}}" for n, head in zip(columns, heads, strict=True))

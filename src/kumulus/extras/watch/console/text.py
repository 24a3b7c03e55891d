"""A summary as plain text, for pipes, CI and everything else that is not a terminal. Pure functions."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence

from kumulus.extras.watch.console.figures import RESOURCES, amount, bar, percent, written
from kumulus.extras.watch.live.summary import Share, Summary
from kumulus.model.words import counted

_BAR = 20
_MOST_REASONS = 8


def text(stack: str, found: Summary) -> str:
    """The summary of a stack's fleet.

    Args:
        stack: the stack's name.
        found: its fleet at a moment.
    """
    moment = time.strftime("%H:%M:%S", time.localtime(found.at))
    lines = [f"{stack} at {moment}: {headline(found.total)}", ""]
    lines += _table("GPU product", found.by_product, found.total)
    lines += ["", *_table("zone", found.by_zone, found.total)]
    lines += ["", f"pods: {phases(found)}"]
    lines += [f"  {number:>6,} × {reason}" for reason, number in found.reasons[:_MOST_REASONS]]
    if hidden := len(found.reasons) - _MOST_REASONS:
        lines += [f"  and {counted(hidden, 'more reason')}"] if hidden > 0 else []
    lines.append(f"bound: {found.bound_per_second:,.1f} pods/s over the last 10 s")
    lines.append(f"cost: {cost(found.total)}")
    lines.append(f"control plane: {' · '.join(_checks(found))}")
    return "\n".join(lines)


def headline(total: Share) -> str:
    """Nodes by state, and GPUs: 30 nodes (29 ready, 1 cordoned), 240 GPUs, 96 allocated (40 %)."""
    states = ", ".join(f"{number:,} {state}" for state, number in total.states.items())
    nodes = counted(total.nodes, "node") + (f" ({states})" if states else "")
    whole, part = total.allocatable.gpus, total.taken.gpus
    return f"{nodes}, {counted(whole, 'GPU')}" + (f", {part:,} allocated ({percent(part, whole)})" if whole else "")


def cost(total: Share) -> str:
    """What nodes cost an hour, and how many of them have no known price."""
    if not total.priced:
        return "price not known" if total.nodes else "none"
    without = total.nodes - total.priced
    return f"${total.hourly:,.2f}/h" + (f", without {without:,} whose price is not known" if without else "")


def phases(found: Summary) -> str:
    """Pods by phase, without empty phases: 96 Running, 4 Pending (4 unscheduled)."""
    parts = [
        f"{number:,} {phase}" + (f" ({found.waiting:,} unscheduled)" if phase == "Pending" else "")
        for phase, number in found.phases.items()
        if number
    ]
    return ", ".join(parts) or "none"


def main_resource(total: Share) -> str:
    """The main resource of a fleet: GPUs, or CPU if it has none."""
    return RESOURCES[0] if total.allocatable.gpus else RESOURCES[1]


def _table(what: str, shares: Sequence[Share], total: Share) -> Iterator[str]:
    first = main_resource(total)
    others = [resource for resource in RESOURCES if resource != first]
    width = max([len(what), *(len(share.name) for share in shares)])
    column = max([len("of"), *(len(_of(share, first)) for share in shares)])
    heads = "".join(f"{resource:>8}" for resource in others)
    yield f"{what:<{width}}  {'nodes':>6}  {f'{first} allocated':<{_BAR + column + 7}}{heads}"
    for share in shares:
        part, whole = amount(first, share.taken), amount(first, share.allocatable)
        figures = f"{bar(part, whole, _BAR)} {_of(share, first):>{column}} {percent(part, whole):>5}"
        rest = "".join(f"{percent(amount(r, share.taken), amount(r, share.allocatable)):>8}" for r in others)
        yield f"{share.name:<{width}}  {share.nodes:>6,}  {figures}{rest}"


def _of(share: Share, resource: str) -> str:
    part, whole = amount(resource, share.taken), amount(resource, share.allocatable)
    return f"{written(resource, part)} of {written(resource, whole)}"


def _checks(found: Summary) -> list[str]:
    return [
        f"{name} {check.status}{f' ({check.detail})' if check.detail else ''}" for name, check in found.checks.items()
    ]

"""A summary as plain text, for pipes, CI and everything else that is not a terminal. Pure functions."""

import time
from collections.abc import Iterator, Sequence

from kumulus.extras.watch.live.amounts import Amounts
from kumulus.extras.watch.live.summary import CapacityShare, Summary
from kumulus.model.words import counted

_BAR = 20
_MOST_REASONS = 8
RESOURCES = ("GPUs", "CPU", "memory", "pods")
"""The resources whose allocation is shown, in the order in which the terminal offers them."""
_UNITS = ("B", "KiB", "MiB", "GiB", "TiB", "PiB")
_EIGHTHS = " ▏▎▍▌▋▊▉█"


def text(stack: str, found: Summary) -> str:
    """The summary of a stack's fleet."""
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
    checks = found.checks.items()
    said = (f"{name} {check.status}{f' ({check.detail})' if check.detail else ''}" for name, check in checks)
    lines.append(f"control plane: {' · '.join(said)}")
    return "\n".join(lines)


def headline(total: CapacityShare) -> str:
    """Nodes by state, and GPUs: 30 nodes (29 ready, 1 cordoned), 240 GPUs, 96 allocated (40 %)."""
    states = ", ".join(f"{number:,} {state}" for state, number in total.states.items())
    nodes = counted(total.nodes, "node") + (f" ({states})" if states else "")
    whole, part = total.allocatable.gpus, total.taken.gpus
    return f"{nodes}, {counted(whole, 'GPU')}" + (f", {part:,} allocated ({percent(part, whole)})" if whole else "")


def cost(total: CapacityShare) -> str:
    """What nodes cost an hour, and how many of them have no known price."""
    if not total.priced:
        return "price not known" if total.nodes else "none"
    without = total.nodes - total.priced
    return f"${total.hourly:,.2f}/h" + (f", without {without:,} whose price is not known" if without else "")


def phases(found: Summary) -> str:
    """Pods by phase, without empty phases: 96 Running, 4 Pending (4 unscheduled), 2 not created."""
    parts = [
        f"{number:,} {phase}" + (f" ({found.waiting:,} unscheduled)" if phase == "Pending" else "")
        for phase, number in found.phases.items()
        if number
    ]
    parts += [f"{found.refused:,} not created"] if found.refused else []
    return ", ".join(parts) or "none"


def main_resource(total: CapacityShare) -> str:
    """The main resource of a fleet: GPUs, or CPU if it has none."""
    return RESOURCES[0] if total.allocatable.gpus else RESOURCES[1]


def _table(what: str, shares: Sequence[CapacityShare], total: CapacityShare) -> Iterator[str]:
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


def _of(share: CapacityShare, resource: str) -> str:
    part, whole = amount(resource, share.taken), amount(resource, share.allocatable)
    return f"{written(resource, part)} of {written(resource, whole)}"


def amount(resource: str, found: Amounts) -> int:
    """How much there is of one of :data:`RESOURCES`: pieces, thousandths of a core, or bytes."""
    return {"GPUs": found.gpus, "CPU": found.cpu, "memory": found.memory, "pods": found.pods}[resource]


def written(resource: str, number: int) -> str:
    """An amount in a unit for people: 20,400 · 3,072 cores · 13.4 TiB."""
    if resource == "memory":
        size, unit = float(number), 0
        while size >= 1024 and unit < len(_UNITS) - 1:
            size, unit = size / 1024, unit + 1
        return f"{size:,.1f} {_UNITS[unit]}" if unit and size < 100 else f"{size:,.0f} {_UNITS[unit]}"
    if resource == "CPU":
        return f"{number / 1000:,.0f}"
    return f"{number:,}"


def percent(part: int, whole: int) -> str:
    """A part of a whole: 64 %; never 0 % for more than nothing or 100 % for less than all; – if the whole is 0."""
    if not whole:
        return "–"
    found = round(100 * part / whole)
    if part and not found:
        return "<1 %"
    if found == 100 and part < whole:
        return ">99 %"
    return f"{found} %"


def bar(part: int, whole: int, width: int) -> str:
    """A bar of the given width in characters, filled to an eighth of a character."""
    eighths = min(8 * width, round(8 * width * part / whole)) if whole else 0
    if part and whole and not eighths:
        eighths = 1
    full, rest = divmod(eighths, 8)
    return ("█" * full + (_EIGHTHS[rest] if rest else "")).ljust(width)

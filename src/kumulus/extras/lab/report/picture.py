"""A moment of a recorded run as a picture: the nodes by zone, in the colour of what pods had, and its course."""

import math
from collections.abc import Iterable, Sequence
from itertools import groupby
from pathlib import Path
from textwrap import wrap

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap, to_rgb
from matplotlib.patches import Patch

from kumulus.extras.lab.report import drawing
from kumulus.extras.lab.report.drawing import COLOURS, INK
from kumulus.extras.watch.history.document import HOLDING, EventKind, History
from kumulus.extras.watch.history.moment import HistoryMoment, NodeThen, fullest, holding, moment
from kumulus.extras.watch.live.node import STATES, State
from kumulus.model.words import counted

_FREE, _FULL = "#e3eaf1", COLOURS[0]
_ILL: dict[State, str] = {"cordoned": COLOURS[6], "faulted": COLOURS[1], "not ready": COLOURS[4]}
_SHADES = LinearSegmentedColormap.from_list("allocated", [_FREE, _FULL])
# Nodes next to each other for each one below another: a panel is that much wider than it is high.
_WIDER = 2.2
# So many letters of a heading are as wide as a panel.
_LETTERS = 104


def write(histories: Sequence[History], at: int | None, file: Path) -> None:
    """Draw runs side by side, all at one moment.

    Args:
        at: milliseconds from the beginning; by default when the most pods had a node.
        file: where to, in the format that its suffix names.
    """
    when = max(map(fullest, histories)) if at is None else at
    with drawing.drawn(6.4 * len(histories), 4.6, 2, len(histories)) as (figure, panels):
        for number, history in enumerate(histories):
            _map(panels[number], history, moment(history, when), when)
            _course(panels[number + len(histories)], history, when)
        drawing.save(figure, file)


def result(history: History) -> str:
    """What came of a run, in a line: what was so when the most pods had a node, and how much ever was placed."""
    return "; ".join(_result(history))


def _result(history: History) -> list[str]:
    """What came of a run and, if not all of it was heard, what was not."""
    when = fullest(history)
    then, last = moment(history, when), moment(history, history.end)
    gpus = then.allocatable.gpus
    share = f"{100 * then.taken.gpus / gpus:.0f} % of the GPUs allocated at {when / 1000:,.1f} s, " if gpus else ""
    placed = {event.what for event in history if event.kind == EventKind.POD and event.one in HOLDING}
    whole = sum(job.whole >= 0 for job in last.jobs.values())
    jobs = f", {whole:,} of {counted(len(history.jobs), 'job')} whole" if history.jobs else ""
    unheard = history.about.get("unheard") or []
    lacks = "not all was heard in time: " + "; ".join([unheard] if isinstance(unheard, str) else unheard)
    came = f"{share}{len(placed):,} of {counted(len(history.pods), 'pod')} had a node{jobs}"
    return [came, lacks] if unheard else [came]


def _map(axes: Axes, history: History, then: HistoryMoment, when: int) -> None:
    """A square for each node, zone next to zone; a node that is not there is an empty place."""
    rows = max(1, math.ceil(math.sqrt(len(history.nodes) / _WIDER)))
    blocks, places, names = [], [], []
    begin = 0
    for zone, nodes in groupby(sorted(history.nodes, key=_order), key=lambda node: str(node[1])):
        block = _block([then.nodes.get(node[0]) for node in nodes], rows)
        places.append(begin + block.shape[1] / 2 - 0.5)
        names.append(zone or "no zone")
        begin += block.shape[1] + 1
        blocks += [block, np.ones((rows, 1, 3))]
    axes.imshow(
        np.concatenate(blocks[:-1], axis=1) if blocks else np.ones((1, 1, 3)), aspect="auto", interpolation="nearest"
    )
    axes.set_xticks(places, names)
    axes.set_yticks([])
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)
    gpus = then.allocatable.gpus
    share = f", {then.taken.gpus:,} of {gpus:,} GPUs allocated" if gpus else ""
    lines = (str(history.about.get("title", ""))[:80], *_result(history), f"at {when / 1000:,.1f} s{share}")
    wrapped = [each for line in lines for each in wrap(line, _LETTERS)]
    axes.set_title("\n".join(wrapped), fontsize=8, loc="left")
    states = [(state, _ILL[state]) for state in STATES if state in _ILL and then.states[state]]
    known = [("nothing allocated", _FREE), ("all", _FULL), *states]
    patches = [Patch(color=colour, label=name) for name, colour in known]
    corner = (0, -0.12)
    axes.legend(handles=patches, fontsize=7, frameon=False, ncols=len(known), loc="upper left", bbox_to_anchor=corner)


def _order(node: Sequence[object]) -> tuple[str, str, str, str]:
    name, zone, _, _, block, rack = node[:6]
    return str(zone), str(block), str(rack), str(name)


def _block(nodes: Iterable[NodeThen | None], rows: int) -> np.ndarray[tuple[int, ...], np.dtype[np.float64]]:
    colours = [(1.0, 1.0, 1.0) if node is None else _colour(node) for node in nodes]
    columns = max(1, math.ceil(len(colours) / rows))
    colours += [(1.0, 1.0, 1.0)] * (rows * columns - len(colours))
    return np.array(colours).reshape(columns, rows, 3).transpose(1, 0, 2)


def _colour(node: NodeThen) -> tuple[float, float, float]:
    ill = [colour for state, colour in _ILL.items() if state == node.state]
    return to_rgb(ill[0] if ill else _SHADES(_share(node)))


def _share(node: NodeThen) -> float:
    """How much of a node pods had: of its GPUs or, if it has none, of its CPU."""
    has, had = node.allocatable, node.taken
    if has.gpus:
        return min(1.0, had.gpus / has.gpus)
    return min(1.0, had.cpu / has.cpu) if has.cpu else 0.0


def _course(axes: Axes, history: History, when: int) -> None:
    held = [(history.begin, 0), *holding(history), (history.end, 0)]
    held[-1] = (history.end, held[-2][1])
    axes.step([at / 1000 for at, _ in held], [number for _, number in held], where="post", color=_FULL)
    axes.axvline(when / 1000, color=INK, linewidth=1)
    axes.set_xlabel("s")
    drawing.titled(axes, "pods that have a node")
    drawing.plain(axes)

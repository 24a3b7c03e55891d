"""A stack's nodes as a picture: boxes within boxes, a square for each node, coloured by its GPUs. Pure functions.

What is drawn is what the stack file says; only its amount is limited: of many domains side by side the first are
drawn and the rest is counted.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from html import escape

from kumulus.extras.watch.commands.topology import NAMES, describe
from kumulus.model.pools import Pool
from kumulus.model.topology import Level
from kumulus.model.totals import totals
from kumulus.model.words import counted

_MOST_DOMAINS = 8
_MOST_NODES = 36
_SQUARE, _GAP, _PAD = 11.0, 4.0, 8.0
_HEAD = 17.0
_WIDEST = 1120.0
_LETTER = 7.0
_FONT = 'font-family="Helvetica, Arial, sans-serif"'
_GPU_COLOURS = ("#2f6fb2", "#d9822b", "#3a9a5b", "#8e5ab5", "#c24a4a", "#6b7a8f", "#b8a12c", "#d0699f")
_PLAIN_COLOUR = "#9aa5b1"
# Fill, outline and colour of the head; only switches have a coloured head: the nodes behind them are drawn below it.
_LOOKS = {
    "zone": ("#ffffff", "#56606b", "#ffffff"),
    "pool": ("#f4f6f8", "#c5cdd6", "#f4f6f8"),
    "block": ("#e6ebf0", "#98a4b0", "#e6ebf0"),
    "spine": ("#edf3fa", "#4a78ad", "#b9d0ea"),
    "leaf": ("#eef6ee", "#5c9565", "#c4e0c6"),
    "rack": ("#ffffff", "#7b8794", "#ffffff"),
    "nvlinkDomain": ("#fff6dd", "#c9a227", "#fff6dd"),
}


@dataclass(frozen=True)
class SvgShape:
    """Something to draw, its size in pixels; ``at`` returns its SVG elements, by their upper left corner."""

    width: float
    height: float
    at: Callable[[float, float], Iterator[str]]


def picture(stack: str, pools: Sequence[Pool]) -> str:
    """An SVG document."""
    sums = totals(pools)
    colours = {product: _GPU_COLOURS[n % len(_GPU_COLOURS)] for n, product in enumerate(sums.gpu_products)}
    zones = dict.fromkeys(pool.zone for pool in pools)
    panels = [_zone(zone, [pool for pool in pools if pool.zone == zone], colours) for zone in zones]
    title = _text(f"{stack}: {counted(sums.nodes, 'node')}, {counted(sums.gpus, 'GPU')}", 16, bold=True)
    whole = _stacked([title, _legend(pools, colours), *panels], 12.0)
    width, height = whole.width + 2 * _PAD, whole.height + 2 * _PAD
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height:.0f}" '
        f'viewBox="0 0 {width:.0f} {height:.0f}">',
        f"<title>{escape(stack)}</title>",
        f'<rect width="{width:.0f}" height="{height:.0f}" fill="#ffffff"/>',
        *whole.at(_PAD, _PAD),
        "</svg>",
    ]
    return "\n".join(lines) + "\n"


def _zone(zone: str, pools: Sequence[Pool], colours: dict[str, str]) -> SvgShape:
    nodes = counted(sum(pool.replicas for pool in pools), "node")
    inside = [_pool(pool, colours.get(pool.gpu_product, _PLAIN_COLOUR)) for pool in pools]
    return _box("zone", f"{f'zone {zone}' if zone else 'no zone'} · {nodes}", inside)


def _pool(pool: Pool, colour: str) -> SvgShape:
    levels = tuple(reversed(pool.topology.levels)) if pool.topology else ()
    return _box("pool", describe(pool), _domains(levels, range(pool.replicas), colour))


def _domains(levels: Sequence[Level], nodes: range, colour: str) -> list[SvgShape]:
    """The domains of the first level, or the nodes if no level is left."""
    if not levels:
        return [_nodes(len(nodes), colour)]
    level, stop = levels[0], nodes.stop
    indices = range(nodes.start // level.nodes, (stop - 1) // level.nodes + 1) if nodes else range(0)
    # A single further domain is drawn: the text "and 1 more" would take as much room.
    shown = indices if len(indices) <= _MOST_DOMAINS + 1 else indices[:_MOST_DOMAINS]
    found = []
    for index in shown:
        ordinals = level.ordinals(index, stop)
        found.append(_box(level.name, level.place(ordinals.start), _domains(levels[1:], ordinals, colour)))
    if hidden := len(indices) - len(shown):
        found.append(_text(f"and {hidden:,} more {NAMES[level.name][hidden > 1]}", 11))
    return found


def _nodes(count: int, colour: str) -> SvgShape:
    """One square for each node, in columns of up to six."""
    shown = min(count, _MOST_NODES)
    step = _SQUARE + _GAP
    rows = min(shown, 6)
    columns = -(-shown // 6)
    more = _text(f"+{count - shown:,}", 10) if count > shown else None

    def at(x: float, y: float) -> Iterator[str]:
        for n in range(shown):
            left, top = x + step * (n // 6), y + step * (n % 6)
            yield f'<rect x="{left:g}" y="{top:g}" width="{_SQUARE:g}" height="{_SQUARE:g}" rx="2" fill="{colour}"/>'
        if more:
            yield from more.at(x + step * columns, y)

    return SvgShape(max(step * columns - _GAP, 0) + (more.width + _GAP if more else 0), max(step * rows - _GAP, 0), at)


def _box(kind: str, title: str, inside: Sequence[SvgShape]) -> SvgShape:
    """A titled box around shapes, which are laid out in rows."""
    fill, outline, head = _LOOKS[kind]
    content = _rows(inside)
    heading = _text(title, 12 if kind in ("zone", "pool") else 10, bold=kind == "zone")
    width = max(content.width, heading.width) + 2 * _PAD
    height = content.height + _HEAD + 1.5 * _PAD

    def at(x: float, y: float) -> Iterator[str]:
        shape = f'x="{x:g}" y="{y:g}" width="{width:g}" rx="4"'
        yield f'<rect {shape} height="{height:g}" fill="{fill}" stroke="{outline}"/>'
        if head != fill:
            yield f'<rect {shape} height="{_HEAD:g}" fill="{head}" stroke="{outline}"/>'
        yield from heading.at(x + _PAD, y + (_HEAD - heading.height) / 2)
        yield from content.at(x + _PAD, y + _HEAD + _PAD / 2)

    return SvgShape(width, height, at)


def _rows(shapes: Sequence[SvgShape]) -> SvgShape:
    """Shapes side by side, in as many rows as they need."""
    rows: list[list[SvgShape]] = []
    for shape in shapes:
        if not rows or sum(each.width + _PAD for each in rows[-1]) + shape.width > _WIDEST:
            rows.append([])
        rows[-1].append(shape)
    return _stacked([_side_by_side(row) for row in rows], _PAD)


def _side_by_side(shapes: Sequence[SvgShape]) -> SvgShape:
    def at(x: float, y: float) -> Iterator[str]:
        for shape in shapes:
            yield from shape.at(x, y)
            x += shape.width + _PAD

    width = sum(shape.width + _PAD for shape in shapes) - _PAD
    return SvgShape(width, max(shape.height for shape in shapes), at)


def _stacked(shapes: Sequence[SvgShape], gap: float) -> SvgShape:
    def at(x: float, y: float) -> Iterator[str]:
        for shape in shapes:
            yield from shape.at(x, y)
            y += shape.height + gap

    if not shapes:
        return SvgShape(0, 0, at)
    return SvgShape(max(shape.width for shape in shapes), sum(shape.height + gap for shape in shapes) - gap, at)


def _text(text: str, size: int, bold: bool = False) -> SvgShape:
    weight = ' font-weight="bold"' if bold else ""

    def at(x: float, y: float) -> Iterator[str]:
        place = f'x="{x:g}" y="{y + 0.8 * size:g}" font-size="{size}"{weight}'
        yield f'<text {place} {_FONT} fill="#27313b">{escape(text)}</text>'

    return SvgShape(len(text) * _LETTER * size / 11 * (1.06 if bold else 1.0), size, at)


def _legend(pools: Sequence[Pool], colours: dict[str, str]) -> SvgShape:
    """What the colours of squares and boxes mean, for the colours that the picture uses."""
    entries = [_entry(_swatch(colour), product) for product, colour in colours.items()]
    if any(pool.replicas and not pool.gpu_product for pool in pools):
        entries.append(_entry(_swatch(_PLAIN_COLOUR), "other nodes"))
    used = {level.name for pool in pools if pool.topology for level in pool.topology.levels}
    for name, (one, _) in NAMES.items():
        if name in used:
            fill, outline, head = _LOOKS[name]
            entries.append(_entry(_swatch(head if head != fill else fill, outline), one))
    return _rows(entries)


def _entry(swatch: SvgShape, text: str) -> SvgShape:
    return _side_by_side([swatch, _text(text, 11)])


def _swatch(fill: str, outline: str = "none") -> SvgShape:
    def at(x: float, y: float) -> Iterator[str]:
        size = f'width="{_SQUARE:g}" height="{_SQUARE:g}" rx="2"'
        yield f'<rect x="{x:g}" y="{y:g}" {size} fill="{fill}" stroke="{outline}"/>'

    return SvgShape(_SQUARE, _SQUARE, at)

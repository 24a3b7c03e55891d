"""Draw the rooms of the package for ARCHITECTURE.md: the layers of the import contract and the actual imports.

``python -m benchmarks.architecture`` writes docs/pictures/architecture.svg; a test checks that it agrees with both.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from xml.sax.saxutils import escape

import grimp

ROOT = Path(__file__).resolve().parents[1]
PICTURE = ROOT / "docs" / "pictures" / "architecture.svg"
PACKAGE = "kumulus"

# A few words for each room; ARCHITECTURE.md has a sentence about each.
ABOUT = {
    "mcp": "clusters for agents",
    "testing": "clusters for tests",
    "extras": "lab, watch, capture, …",
    "cli": "the command",
    "provider": "resources, protocol, plugin",
    "program": "a project's five lines",
    "components": "Pulumi components",
    "stackfile": "what a stack file may say",
    "runtimes": "kwok, kind, existing",
    "helm": "charts, CRDs, repairs",
    "kind_image": "node images for kind",
    "nodes": "pools, nodes, faults",
    "kwok": "stages, lifecycles, usage",
    "kube": "API client",
    "toolchain": "pinned tools",
    "host": "this machine",
    "model": "what a fleet is",
}

WIDTH, MARGIN, HEIGHT, GAP = 1000, 20, 46, 44
_STYLE = (
    "text{font-family:system-ui,sans-serif;fill:#1c2733}.name{font-size:14px;font-weight:600}"
    ".about{font-size:11px;fill:#51606f}rect{fill:#eef3f9;stroke:#9fb3c8}"
    "path{fill:none;stroke:#7a93ad;stroke-width:1.3}"
)


def layers() -> list[list[str]]:
    """The rooms of each layer, the highest first, as the import contract in pyproject.toml has them."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())
    contracts = settings["tool"]["importlinter"]["contracts"]
    (contract,) = (each for each in contracts if each.get("containers") == ["kumulus"])
    return [[room.strip() for room in layer.replace(":", "|").split("|")] for layer in contract["layers"]]


def imports() -> set[tuple[str, str]]:
    """Which room imports which, directly."""
    graph = grimp.build_graph(PACKAGE, cache_dir=None)
    found: set[tuple[str, str]] = set()
    for module in graph.modules:
        for imported in graph.find_modules_directly_imported_by(module):
            pair = _room(module), _room(imported)
            if all(pair) and pair[0] != pair[1]:
                found.add(pair)
    return found


def needed(arrows: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
    """The arrows that do not follow from others (the transitive reduction), sorted."""
    known = set(arrows)
    return sorted(pair for pair in known if pair[1] not in _reached(pair[0], known - {pair}))


def draw(rows: Sequence[Sequence[str]], arrows: Iterable[tuple[str, str]]) -> str:
    """The picture, an SVG document."""
    arrows = list(arrows)
    places = _places(rows, arrows)
    height = 2 * MARGIN + len(rows) * HEIGHT + (len(rows) - 1) * GAP
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}" '
        'role="img" aria-label="The rooms of the package kumulus and who imports whom">',
        f"<style>{_STYLE}</style>",
        '<defs><marker id="head" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto">'
        '<path d="M0,0L8,4L0,8z" style="fill:#7a93ad;stroke:none"/></marker></defs>',
        f'<rect width="{WIDTH}" height="{height}" style="fill:#fff;stroke:none"/>',
        *_lines(places, arrows),
    ]
    for room, (left, top, width) in places.items():
        middle, about = left + width / 2, escape(ABOUT[room])
        lines += [
            f'<rect x="{left:.0f}" y="{top:.0f}" width="{width:.0f}" height="{HEIGHT}" rx="6"/>',
            f'<text class="name" x="{middle:.0f}" y="{top + 19:.0f}" text-anchor="middle">{escape(room)}</text>',
            f'<text class="about" x="{middle:.0f}" y="{top + 36:.0f}" text-anchor="middle">{about}</text>',
        ]
    return "\n".join([*lines, "</svg>"]) + "\n"


def _room(module: str) -> str:
    parts = module.split(".")
    return parts[1] if len(parts) > 1 and parts[1] in ABOUT else ""


def _reached(start: str, arrows: Iterable[tuple[str, str]]) -> set[str]:
    seen: set[str] = set()
    waiting = [start]
    while waiting:
        room = waiting.pop()
        further = {target for source, target in arrows if source == room} - seen
        seen |= further
        waiting += further
    return seen


def _places(rows: Sequence[Sequence[str]], arrows: Sequence[tuple[str, str]]) -> dict[str, tuple[float, float, float]]:
    places: dict[str, tuple[float, float, float]] = {}
    for number, row in enumerate(rows):
        width = min(170.0, (WIDTH - 2 * MARGIN - 14 * (len(row) - 1)) / len(row))
        gap = (WIDTH - 2 * MARGIN - width * len(row)) / (len(row) + 1)
        for place, room in enumerate(row):
            places[room] = (MARGIN + gap + place * (width + gap), MARGIN + number * (HEIGHT + GAP), width)
    # A room alone in its row is placed where the fewest arrows pass behind it and its own arrows are short.
    for row in rows[1:]:
        if len(row) == 1:
            _, top, width = places[row[0]]
            lefts = range(MARGIN, WIDTH - MARGIN - int(width) + 1, 10)
            costs = {left: _cost(row[0], left, places, arrows) for left in lefts}
            places[row[0]] = (min(costs, key=costs.__getitem__), top, width)
    return places


def _cost(
    room: str, left: float, places: Mapping[str, tuple[float, float, float]], arrows: Sequence[tuple[str, str]]
) -> float:
    _, top, width = places[room]
    cost = 0.0
    for source, target in arrows:
        (start, above, wide), (end, below, broad) = places[source], places[target]
        start, end = start + wide / 2, end + broad / 2
        if room in (source, target):
            cost += abs((end if source == room else start) - left - width / 2) / WIDTH
        elif above < top < below:
            at = start + (end - start) * (top - above) / (below - above)
            cost += 10 if left - 25 < at < left + width + 25 else 0
    return cost


def _lines(places: Mapping[str, tuple[float, float, float]], arrows: list[tuple[str, str]]) -> list[str]:
    def middle(room: str) -> float:
        return places[room][0] + places[room][2] / 2

    def port(room: str, others: list[str], other: str) -> float:
        # Each arrow has its own place along the box's edge, ordered by where it leads.
        order = sorted(others, key=middle)
        left, _, width = places[room]
        return left + width * (order.index(other) + 1) / (len(order) + 1)

    drawn = []
    for source, target in arrows:
        start = port(source, [b for a, b in arrows if a == source], target)
        end = port(target, [a for a, b in arrows if b == target], source)
        top, bottom = places[source][1] + HEIGHT, places[target][1]
        bend = min(0.5 * (bottom - top), 70.0)
        drawn.append(
            f'<path d="M{start:.0f},{top:.0f}C{start:.0f},{top + bend:.0f} {end:.0f},{bottom - bend:.0f} '
            f'{end:.0f},{bottom - 1:.0f}" marker-end="url(#head)"><title>{source} imports {target}</title></path>'
        )
    return drawn


if __name__ == "__main__":
    PICTURE.write_text(draw(layers(), needed(imports())))
    print(f"wrote {PICTURE.relative_to(ROOT)}")

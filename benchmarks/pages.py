"""``python -m benchmarks.pages``: write the tables of the docs that follow from the code; tests compare them."""

import re
import tomllib
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, Literal, get_args, get_origin

import grimp

from benchmarks.fidelity.gpus import with_gpus
from kumulus.components.arguments import Argument, described_arguments, outputs
from kumulus.components.resources import ClusterLike
from kumulus.model.fault_effects import XID_ANNOTATION
from kumulus.model.words import with_part
from kumulus.nodes.catalog.faults import FaultKind, fault_kinds
from kumulus.runtimes import registry

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"
_PART = re.compile(r"<!-- (\w+): begin -->\n.*?<!-- \1: end -->\n", re.DOTALL)
_NAMES: Mapping[Any, str] = {
    str: "text",
    int: "whole number",
    float: "number",
    bool: "True or False",
    Any: "anything",
    ClusterLike: "a cluster",
}


def with_faults(text: str) -> str:
    """The page of faults with the catalog's tables: faults of nodes, pods and offerings, followed by the sources."""
    every = fault_kinds().values()
    offers = [kind for kind in every if kind.offers is not None]
    cited = {name: text for kind in every for name, text in kind.sources.items()}
    lines = [
        *_faults("On the node", [kind for kind in every if kind.of_nodes], _on_node),
        *_faults("In the pod", [kind for kind in every if kind.pods is not None], _in_pod),
        *_faults("To an autoscaler's offerings", offers, _to_offers),
        *(f"- {name}: {text}" for name, text in cited.items()),
    ]
    return with_part(text, "catalog", "\n".join(lines) + "\n")


def with_runtimes(text: str) -> str:
    """The page of clusters with the table of runtimes."""
    return with_part(text, "runtimes", runtimes())


def runtimes() -> str:
    """The runtimes as a table of Markdown."""
    lines = ["| `runtime:` | What it is | Takes | Ready in |", "|---|---|---|---|"]
    for each in registry.every():
        name = f"[`{each.name}`]({each.page})" if each.page else f"`{each.name}`"
        name += " (default)" if each.name == registry.DEFAULT else ""
        lines.append(f"| {name} | {each.about} | {each.takes} | {each.ready_in} |")
    return "\n".join(lines) + "\n"


def with_components(text: str) -> str:
    """The page of the library with each component's arguments and outputs."""
    return _PART.sub(lambda found: f"<!-- {found[1]}: begin -->\n{_tables(found[1])}<!-- {found[1]}: end -->\n", text)


def with_rooms(text: str) -> str:
    """The page of the architecture with the pictures of which room imports which, of the core and of the extras."""
    graph = grimp.build_graph("kumulus", cache_dir=None)
    rooms = {room for row in layers() for room in row}
    extras = {name.rpartition(".")[2] for name in graph.find_children("kumulus.extras")}
    text = with_part(text, "rooms", _picture(imports(graph, "kumulus", rooms), rooms))
    return with_part(text, "extras", _picture(imports(graph, "kumulus.extras", extras), extras))


def layers() -> list[list[str]]:
    """The rooms of each layer, the highest first, as the import contract in pyproject.toml has them."""
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    (contract,) = (each for each in contracts if each.get("containers") == ["kumulus"])
    return [[room.strip() for room in layer.replace(":", "|").split("|")] for layer in contract["layers"]]


def imports(graph: grimp.ImportGraph, package: str, rooms: set[str]) -> set[tuple[str, str]]:
    """Which room of a package imports which, directly; commands and registrations may know every extra."""
    found = set()
    for module in graph.find_descendants(package):
        if package != "kumulus" and {"commands", "extra"} & set(module.split(".")):
            continue
        for imported in graph.find_modules_directly_imported_by(module):
            source, target = (each.removeprefix(f"{package}.").split(".")[0] for each in (module, imported))
            if source != target and {source, target} <= rooms and imported.startswith(f"{package}."):
                found.add((source, target))
    return found


def _picture(arrows: set[tuple[str, str]], rooms: set[str]) -> str:
    lines = [f"  {source} --> {target}" for source, target in needed(arrows)]
    lines += [f"  {room}" for room in sorted(rooms.difference(*arrows))]
    return "\n".join(["```mermaid", "flowchart TB", *lines, "```", ""])


def needed(arrows: set[tuple[str, str]]) -> list[tuple[str, str]]:
    """The arrows that do not follow from others (the transitive reduction), sorted."""

    def reached(start: str, known: set[tuple[str, str]]) -> set[str]:
        targets = {target for source, target in known if source == start}
        return targets.union(*(reached(target, known) for target in targets))

    return sorted(pair for pair in arrows if pair[1] not in reached(pair[0], arrows - {pair}))


PAGES: Mapping[Path, Callable[[str], str]] = {
    ROOT / "ARCHITECTURE.md": with_rooms,
    DOCS / "faults.md": with_faults,
    DOCS / "clusters.md": with_runtimes,
    DOCS / "fidelity.md": with_gpus,
    DOCS / "library.md": with_components,
}
"""What writes the tables of each page; the text around them stays."""


def _faults(where: str, of: Sequence[FaultKind], effect: Callable[[FaultKind], str]) -> list[str]:
    rows = [
        f"| {', '.join(f'`{name}`' for name in (each.name, *each.also))} | {each.summary} | {effect(each)} "
        f"| {', '.join(each.sources)} |"
        for each in of
    ]
    return [f"| Kind | What happens | {where} | Sources |", "|---|---|---|---|", *rows, ""]


def _on_node(kind: FaultKind) -> str:
    node = kind.node
    found = [f"{name}={each.status} ({each.reason})" for name, each in node.conditions.items()]
    found += [f"taint `{taint.key}={taint.value}:{taint.effect}`" for taint in node.taints]
    found += [f"XID {node.annotations[XID_ANNOTATION]}"] if XID_ANNOTATION in node.annotations else []
    found += [f"{name}: {change}" for name, change in node.capacity.items()]
    found += [f"kubelet: {node.kubelet}"] if node.kubelet else []
    return "; ".join(found)


def _in_pod(kind: FaultKind) -> str:
    pods = kind.pods
    assert pods is not None
    exits = f", exit code {pods.exit_code}" if pods.action in ("fail", "failInit") else ""
    reason = f", {pods.reason}" if pods.reason else ""
    return f"{pods.action}{exits}{reason}"


def _to_offers(kind: FaultKind) -> str:
    offers = kind.offers
    if offers is not None and offers.interruption is not None:
        return "NodeClaims deleted at the notice, nodes gone at its end"
    if offers is not None and offers.sold_out:
        return "none available"
    return "no more than `limits`" if kind.name == "quota" else "their price times `priceFactor`"


def _tables(component: str) -> str:
    module = import_module(getattr(import_module("kumulus"), component).__module__)
    lines = ["| Argument | | What it is |", "|---|---|---|"]
    lines += [_row(each) for each in described_arguments(getattr(module, f"{component}Args"))]
    if rows := outputs(getattr(module, component)):
        lines += ["", "| Output | | What it is |", "|---|---|---|"]
        lines += [f"| `{each.name}` | {_type(each.type)} | {_text(each.doc)} |" for each in rows]
    return "\n".join(lines) + "\n"


def _row(each: Argument) -> str:
    kind = _type(each.type) + ("" if each.plain else ", or an output")
    return f"| {f'**`{each.name}`**' if each.required else f'`{each.name}`'} | {kind} | {_text(each.doc)} |"


def _type(kind: Any) -> str:
    origin, parts = get_origin(kind), get_args(kind)
    if origin is Literal:
        return " or ".join(f"`{each}`" for each in parts)
    return "mapping" if origin is Mapping else "list" if origin is Sequence else _NAMES.get(kind, "text")


def _text(doc: str) -> str:
    """A docstring as a table cell, with its code as in Markdown."""
    plain = re.sub(r":class:`(?:\w+\.)*(\w+)`", r"`\1`", " ".join(doc.split()))
    return plain.replace("``", "`").replace("|", "\\|")


if __name__ == "__main__":
    for page, with_tables in PAGES.items():
        page.write_text(with_tables(page.read_text(encoding="utf-8")), encoding="utf-8")

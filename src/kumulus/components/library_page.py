"""``python -m kumulus.components.library_page``: write the arguments into docs/library.md; a test keeps both alike."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, Literal, get_args, get_origin

from kumulus.components.arguments import Argument, described, outputs
from kumulus.components.resources import ClusterLike

PAGE = Path(__file__).resolve().parents[3] / "docs" / "library.md"
_PART = re.compile(r"<!-- (\w+): begin -->\n.*?<!-- \1: end -->\n", re.DOTALL)
_NAMES: Mapping[Any, str] = {
    str: "text",
    int: "whole number",
    float: "number",
    bool: "True or False",
    Any: "anything",
    ClusterLike: "a cluster",
}


def with_tables(text: str) -> str:
    """The page with each component's current arguments and outputs; the text around them stays."""
    return _PART.sub(lambda found: f"<!-- {found[1]}: begin -->\n{tables(found[1])}<!-- {found[1]}: end -->\n", text)


def tables(component: str) -> str:
    """The arguments and outputs of a component as tables of Markdown."""
    module = import_module(getattr(import_module("kumulus"), component).__module__)
    lines = ["| Argument | | What it is |", "|---|---|---|"]
    lines += [_row(each) for each in described(getattr(module, f"{component}Args"))]
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
    if origin is Mapping:
        return "mapping"
    if origin is Sequence:
        return "list"
    return _NAMES.get(kind, "text")


def _text(doc: str) -> str:
    """A docstring as a table cell, with its code as in Markdown."""
    plain = re.sub(r":class:`(?:\w+\.)*(\w+)`", r"`\1`", " ".join(doc.split()))
    return plain.replace("``", "`").replace("|", "\\|")


if __name__ == "__main__":
    PAGE.write_text(with_tables(PAGE.read_text(encoding="utf-8")), encoding="utf-8")

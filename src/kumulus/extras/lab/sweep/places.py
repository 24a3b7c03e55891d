"""Paths of a sweep's matrix into an experiment and into its stack: values put there, and what they do wrong."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kumulus.model.errors import Problem, SpecError, Where, path_text, shown
from kumulus.model.names import nearest
from kumulus.stackfile.clusters import load_stack

CLUSTER = "kumulus:cluster"
_SHOWN = 5


@dataclass(frozen=True)
class MatrixPlace:
    """Where a value of the matrix went.

    Args:
        whole: its keys and indices.
        there: how many of them there were before.
    """

    whole: Where
    there: int

    def has(self, path: str) -> bool:
        """Whether a place in the file is this one, or within it, or was made for it."""
        made = path_text(self.whole[: self.there + 1])
        return path == made or path.startswith((f"{made}.", f"{made}["))


def put(node: Any, path: list[str], value: Any, axis: str, source: str) -> MatrixPlace:
    """Put a value at a path, creating mappings on the way; items of lists have to exist."""
    whole: list[str | int] = []
    there = 0
    for index, part in enumerate(path):
        last = index == len(path) - 1
        there += there == len(whole) and (isinstance(node, list) or (isinstance(node, dict) and part in node))
        if isinstance(node, list):
            names = [str(each.get("name", "")) if isinstance(each, Mapping) else "" for each in node]
            place = names.index(part) if part in names else int(part) if part.isdecimal() else len(node)
            if place >= len(node):
                known = [name for name in names if name]
                near = nearest(part, known) or known[:_SHOWN] or [f"a number below {len(node)}"]
                message = f"{shown(part)} is none of the {len(node)} items there"
                raise SpecError([Problem(f"matrix.{axis}", message, f"write {' or '.join(near)}")], source)
            whole.append(place)
            if last:
                node[place] = value
            else:
                node = node[place]
        elif isinstance(node, dict):
            whole.append(part)
            if last:
                node[part] = value
            elif node.get(part) is None:
                node[part] = node = {}
            else:
                node = node[part]
        else:
            message = f"{'.'.join(path[:index])} is {shown(node)}, which has no fields"
            raise SpecError([Problem(f"matrix.{axis}", message, "write another path")], source)
    return MatrixPlace(tuple(whole), there)


def check(
    stack: Mapping[str, Any], directory: Path, source: str, places: Mapping[str, MatrixPlace], of_sweep: str
) -> None:
    """Check the stack of a cell; what a value of the matrix does wrong is a problem of the sweep's file."""
    try:
        load_stack(dict(stack), "sweep", directory, source=source)
    except SpecError as error:
        found = [
            _of_matrix(each, axis, place, stack[CLUSTER])
            for each in error.problems
            for axis, place in places.items()
            if error.source == source and place.has(each.path)
        ]
        if not found:
            raise
        raise SpecError(found, of_sweep) from None


def _of_matrix(found: Problem, axis: str, place: MatrixPlace, root: Any) -> Problem:
    """A problem of a value of the matrix; where its key belongs further down, it names that path."""
    path = f"matrix.{axis}"
    if found.path != path_text(place.whole):
        return Problem(path, f"{found.path} {found.message}", found.remedy)
    *above, last = place.whole
    if place.there == len(above):
        for part in above:
            root = root[part]
        if deeper := _deeper(root, str(last)):
            return Problem(path, found.message, f"write {axis.rpartition('.')[0]}.{deeper}")
    return Problem(path, found.message, found.remedy)


def _deeper(node: Any, key: str) -> str:
    """The path to a key in what a mapping or a list has; empty if none has it."""
    items = node.items() if isinstance(node, Mapping) else enumerate(node) if isinstance(node, list) else ()
    for name, each in items:
        if isinstance(each, Mapping) and key in each:
            return f"{name}.{key}"
        if below := _deeper(each, key):
            return f"{name}.{below}"
    return ""

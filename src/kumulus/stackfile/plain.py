"""Parts of a stack file as it was written, for its rules; those of the wrong type are skipped: the models report them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from kumulus.model.checks import problem
from kumulus.model.errors import Problem, Where, path_text, shown

Found = Iterator[Problem]
Item = tuple[int, Mapping[str, object]]


def items(raw: object, key: str) -> list[Item]:
    values = raw.get(key) if isinstance(raw, Mapping) else None
    if not isinstance(values, list | tuple):
        return []
    return [(index, value) for index, value in enumerate(values) if isinstance(value, Mapping)]


def text(raw: Mapping[str, object], key: str) -> str:
    value = raw.get(key)
    return value if isinstance(value, str) else ""


def duplicates(items: list[Item], where: Where, key: str, what: str) -> Found:
    first: dict[str, int] = {}
    for index, item in items:
        name = text(item, key)
        if name in first and name:
            place = path_text((*where, first[name], key))
            yield problem((*where, index, key), f"{shown(name)} is already {place}", f"write another {what}")
        first.setdefault(name, index)


def count(replicas: object) -> int:
    return int(replicas) if isinstance(replicas, int | float) and 0 <= replicas < 10**9 else 0

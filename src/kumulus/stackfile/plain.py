"""Parts of a stack file as it was written, for its rules; the models report those of the wrong type."""

from collections.abc import Iterator, Mapping

from kumulus.model.checks import problem
from kumulus.model.errors import Problem, Where, path_text, shown
from kumulus.runtimes import registry
from kumulus.runtimes.descriptor import Descriptor

Problems = Iterator[Problem]
Item = tuple[int, Mapping[str, object]]


def items(raw: object, key: str) -> list[Item]:
    """The mappings in a list of a mapping, each with its index; none where the list is missing or is something else."""
    values = raw.get(key) if isinstance(raw, Mapping) else None
    if not isinstance(values, list | tuple):
        return []
    return [(index, value) for index, value in enumerate(values) if isinstance(value, Mapping)]


def runtime_of(raw: Mapping[str, object]) -> Descriptor | None:
    """The runtime that a cluster's mapping names, or the default one; None where it names none of those there are."""
    name = raw.get("runtime") or registry.DEFAULT
    return registry.get(name) if isinstance(name, str) and name in registry.NAMES else None


def text(raw: Mapping[str, object], key: str) -> str:
    """A text of a mapping; empty where it is missing or is something else."""
    value = raw.get(key)
    return value if isinstance(value, str) else ""


def duplicates(entries: list[Item], where: Where, key: str, what: str) -> Problems:
    """A problem for each entry whose text under a key is an earlier entry's, too; `what`: its name in the remedy."""
    first: dict[str, int] = {}
    for index, item in entries:
        name = text(item, key)
        if name in first and name:
            place = path_text((*where, first[name], key))
            yield problem((*where, index, key), f"{shown(name)} is already {place}", f"write another {what}")
        first.setdefault(name, index)


def count(replicas: object) -> int:
    """A number of nodes; 0 where it is something else."""
    return int(replicas) if isinstance(replicas, int | float) and 0 <= replicas < 10**9 else 0

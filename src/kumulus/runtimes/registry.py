"""The list of runtimes: each of ours has a folder of this package, and a line here; extras bring others.

A folder has a :class:`~kumulus.runtimes.descriptor.Descriptor` called `RUNTIME` in its `__init__.py`. Reading them all
is cheap: the implementation, and what needs pydantic, is imported only on request.
"""

from functools import cache
from importlib import import_module
from pathlib import Path

from kumulus.host import extras
from kumulus.runtimes.descriptor import Descriptor

OURS: tuple[str, ...] = (
    "kwok",
    "kind",
    "existing",
)
NAMES = (*OURS, *extras.names("runtimes", OURS))
DEFAULT = NAMES[0]


@cache
def get(name: str) -> Descriptor:
    """The runtime of that name; KeyError if there is none, BrokenExtra if the extra that brings it is broken."""
    if name not in NAMES:
        raise KeyError(name)
    if name in OURS:
        found: Descriptor = import_module(f"kumulus.runtimes.{name}").RUNTIME
    else:
        found = extras.named("runtimes", name, Descriptor)
    return found


def every() -> tuple[Descriptor, ...]:
    """All runtimes, the default one first."""
    return tuple(map(get, NAMES))


def of_directory(directory: Path) -> Descriptor:
    """The runtime of the cluster whose files a directory has; the default one where no file tells."""
    found = (each for each in every() if each.own_file and (directory / each.own_file).exists())
    return next(found, get(DEFAULT))


def outlives_stack(name: object) -> bool:
    """Whether the clusters of a runtime exist before and after their stacks; False for an unknown runtime."""
    return isinstance(name, str) and name in NAMES and get(name).outlives_stack


def sections() -> dict[str, str]:
    """The runtime of each section of the stack file that has an effect with only one runtime."""
    return {section: each.name for each in every() for section in each.sections}


def listed(runtimes: tuple[Descriptor, ...]) -> str:
    """The names of some runtimes, for a message: `kind or existing`."""
    *names, last = [each.name for each in runtimes]
    return f"{', '.join(names)} or {last}" if names else last

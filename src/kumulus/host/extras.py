"""The extras: what is installed outside the core, found by the entry points of the group `kumulus`.

An entry point names an :class:`Extra`, in our own packages (`kumulus.extras.NAME.extra:EXTRA`) as in a third party's.
The core asks here what there is, and imports no extra itself. Whatever an :class:`Extra` brings is named as
``module:attribute`` and imported only when it is used, so that to know the extras costs next to nothing.

Only the standard library is needed here, as the command lists its subcommands before anything is installed.
"""

import functools
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from importlib import import_module, metadata, util
from typing import Any

from kumulus.host import installation

GROUP = "kumulus"
"""The group of entry points."""


class BrokenExtra(Exception):
    """What an entry point or an :class:`Extra` names cannot be imported, is not what it has to be, or is there twice.

    Every function here that looks for an extra, or for what it brings, may raise it.
    """


@dataclass(frozen=True)
class Extra:
    """What an extra brings. Each part is found where it is used; nothing is registered anywhere else."""

    name: str
    """As in ``pip install 'kumulus[NAME]'``; a third party's is the name of its distribution."""
    summary: str
    """What it is for, in a few words."""
    needs: tuple[str, ...] = ()
    """The modules of other distributions that its commands import. If one is missing, they say what to install, but for
    commands that are ``core_only``."""
    commands: Mapping[str, Any] = field(default_factory=dict)
    """Its subcommands, by name: :class:`kumulus.cli.registry.Command`."""
    resources: tuple[str, ...] = ()
    """The classes of its Pulumi resources, :class:`kumulus.provider.resources.base.Resource`."""
    additions: tuple[str, ...] = ()
    """What it adds to a control plane, :class:`kumulus.runtimes.kwok.addition.Addition`."""
    folders: tuple[str, ...] = ()
    """The folders that its additions have in a control plane's directory."""
    runs: tuple[str, ...] = ()
    """Its runs that change a cluster for a while, :class:`kumulus.nodes.runs.Runs`."""
    findings: tuple[str, ...] = ()
    """Functions without arguments that return a line of `kumulus doctor`, :class:`kumulus.cli.doctor.Finding`."""
    schedulers: Mapping[str, str] = field(default_factory=dict)
    """Schedulers by name, :class:`kumulus.extras.schedulers.descriptor.Scheduler`."""
    runtimes: Mapping[str, str] = field(default_factory=dict)
    """Ways to get a control plane, :class:`kumulus.runtimes.descriptor.Descriptor`, by name."""
    sections: Mapping[str, str] = field(default_factory=dict)
    """Sections of the stack file's cluster, :class:`kumulus.stackfile.section.ClusterSection`, by name."""
    stack_sections: Mapping[str, str] = field(default_factory=dict)
    """Keys of a stack of several clusters that are about all of them, :class:`kumulus.stackfile.section.StackSection`,
    by name."""
    tools: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Tools, or sets of them, that a part of the stack file needs, by what `kumulus tools --list` calls the part."""
    files: tuple[str, ...] = ()
    """Files besides the stack's that have a schema, :class:`kumulus.stackfile.schema.published.DescribedFile`."""
    install: str = ""
    """What `pip install` gets it by; by default, the extra of Kumulus with this name."""

    @property
    def missing(self) -> list[str]:
        """The modules that it needs and that are not installed."""
        return [module for module in self.needs if util.find_spec(module) is None]

    @property
    def way_to_install(self) -> str:
        """The command that gets them."""
        return f"pip install '{self.install}'" if self.install else installation.way_to_add(self.name)


@functools.cache
def every() -> tuple[Extra, ...]:
    """All extras, in the order of their names."""
    found = [_extra(name, value) for name, value in _entry_points().items()]
    return tuple(sorted(found, key=lambda each: each.name))


def brought(part: str) -> list[Any]:
    """What the extras bring as one of the parts of an :class:`Extra`, imported, in the order of their names."""
    return [imported(place, each.name) for each in every() for place in getattr(each, part)]


def names(part: str, taken: Iterable[str] = ()) -> tuple[str, ...]:
    """The names of what the extras bring as one of the parts that have names, such as their ``runtimes``.

    Args:
        taken: names that the core has.
    """
    found = []
    owners = dict.fromkeys(taken, "the core")
    for extra in every():
        for name in getattr(extra, part):
            if name in owners:
                raise BrokenExtra(
                    f"the extra {extra.name} brings {name!r} among its {part}, which {owners[name]} has; uninstall it"
                )
            owners[name] = f"the extra {extra.name}"
            found.append(name)
    return tuple(found)


def named(part: str, name: str, kind: type | None = None) -> Any:
    """One of the parts that have names, imported; None if no extra brings it.

    Args:
        kind: what it is to be an instance of, or a subclass.
    """
    for extra in every():
        if place := getattr(extra, part).get(name):
            found = imported(place, extra.name)
            if kind and not _is_of(found, kind):
                raise BrokenExtra(
                    f"the extra {extra.name} ({place}) has no {kind.__name__} for {name!r}; update it, or uninstall it"
                )
            return found
    return None


def _is_of(found: Any, kind: type) -> bool:
    return issubclass(found, kind) if isinstance(found, type) else isinstance(found, kind)


def _entry_points() -> dict[str, str]:
    found = {each.name: each.value for each in metadata.entry_points(group=GROUP)}
    if root := installation.checkout():
        # A checkout's command runs before anything is installed.
        settings = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))
        found |= settings["project"]["entry-points"][GROUP]
    return found


def _extra(name: str, value: str) -> Extra:
    found = imported(value, name)
    if not isinstance(found, Extra):
        raise BrokenExtra(f"the extra {name} ({value}) is no Extra; update it, or uninstall it")
    return found


def imported(place: str, extra: str) -> Any:
    """What a place, ``module:attribute``, names.

    Args:
        extra: the name of the extra that it is of, for the error.
    """
    module, _, attribute = place.partition(":")
    try:
        return getattr(import_module(module), attribute)
    except BrokenExtra:
        raise
    except Exception as error:
        # Whatever a third party's module does when it is imported, the user gets one line.
        why = " ".join(str(error).split()) or type(error).__name__
        raise BrokenExtra(f"the extra {extra} cannot be loaded ({why}); update it, or uninstall it") from error

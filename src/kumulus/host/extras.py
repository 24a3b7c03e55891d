"""The extras: what is installed beside the core, found by the entry points of the group `kumulus`.

An entry point names an :class:`Extra`, in our own packages (`kumulus.extras.NAME.extra:EXTRA`) as in a third party's.
The core asks here what there is, and imports no extra itself. Whatever an :class:`Extra` brings is named as
``module:attribute`` and imported only when it is used, so that to know the extras costs next to nothing.

Only the standard library is needed here, as the command lists its subcommands before anything is installed.
"""

from __future__ import annotations

import functools
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import import_module, metadata, util
from typing import Any

from kumulus.host import installation

GROUP = "kumulus"
"""The group of entry points."""


class BrokenExtra(Exception):
    """An entry point names something that cannot be imported, or that is no :class:`Extra`."""


@dataclass(frozen=True)
class Extra:
    """What an extra brings. Each part is found where it is used; nothing is registered anywhere else.

    Attributes:
        name: as in ``pip install 'kumulus[NAME]'``; a third party's is the name of its distribution.
        summary: what it is for, in a few words.
        needs: the modules of other distributions that its commands import. If one is missing, they say what to install.
        commands: its subcommands, by name: :class:`kumulus.cli.registry.Command`.
        resources: the classes of its Pulumi resources, :class:`kumulus.provider.resources.base.Resource`.
        additions: what it adds to a control plane, :class:`kumulus.runtimes.kwok.addition.Addition`.
        folders: the folders that its additions have in a control plane's directory.
        runs: its runs that change a cluster for a while, :class:`kumulus.nodes.runs.Runs`.
        sections_in_cluster: functions that declare what a section of the stack file means in a cluster whose nodes run
            containers, by the section.
        files: files besides the stack's that have a schema, :class:`kumulus.stackfile.schema.published.DescribedFile`.
        install: what pip is to be given; by default the extra of Kumulus with this name.
    """

    name: str
    summary: str
    needs: tuple[str, ...] = ()
    commands: Mapping[str, Any] = field(default_factory=dict)
    resources: tuple[str, ...] = ()
    additions: tuple[str, ...] = ()
    folders: tuple[str, ...] = ()
    runs: tuple[str, ...] = ()
    sections_in_cluster: Mapping[str, str] = field(default_factory=dict)
    files: tuple[str, ...] = ()
    install: str = ""

    @property
    def missing(self) -> list[str]:
        """The modules that it needs and that are not installed."""
        return [module for module in self.needs if util.find_spec(module) is None]

    @property
    def to_install(self) -> str:
        """What pip is to be given to have it whole."""
        return self.install or f"kumulus[{self.name}]"


@functools.cache
def every() -> tuple[Extra, ...]:
    """All extras, by name.

    Raises:
        BrokenExtra: one of them cannot be imported, or is none.
    """
    return tuple(sorted((_extra(name, value) for name, value in _entry_points().items()), key=lambda each: each.name))


def brought(part: str) -> list[Any]:
    """What the extras bring as one of the parts of an :class:`Extra`, imported, in the order of their names.

    Raises:
        BrokenExtra: one of them cannot be imported.
    """
    return [_object(each.name, named) for each in every() for named in getattr(each, part)]


def declares(section: str) -> Any:
    """The function of the extra that declares a section of the stack file in a cluster; None if no extra does.

    Raises:
        BrokenExtra: it cannot be imported.
    """
    for each in every():
        if section in each.sections_in_cluster:
            return _object(each.name, each.sections_in_cluster[section])
    return None


def _entry_points() -> dict[str, str]:
    found = {each.name: each.value for each in metadata.entry_points(group=GROUP)}
    if root := installation.checkout():
        # Its command runs before it is installed anywhere.
        settings = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))
        found |= settings["project"]["entry-points"][GROUP]
    return found


def _extra(name: str, value: str) -> Extra:
    found = _object(name, value)
    if not isinstance(found, Extra):
        raise BrokenExtra(f"the extra {name} ({value}) is no Extra; update it, or uninstall it")
    return found


def _object(name: str, value: str) -> Any:
    module, _, attribute = value.partition(":")
    try:
        return getattr(import_module(module), attribute)
    except (ImportError, AttributeError) as error:
        raise BrokenExtra(f"the extra {name} cannot be loaded ({error}); update it, or uninstall it") from error

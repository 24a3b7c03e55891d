"""Mistakes in a program's components: it goes on after one, and fails with those of all components.

From the first mistake on, components check their arguments and nothing is declared; what is asked of them is unknown.
When the program has run to its end, or needs what is not there, it fails with all that was found.
"""

from __future__ import annotations

import asyncio
import sys
from functools import wraps
from pathlib import Path
from types import FrameType
from typing import Any, NoReturn, TypeVar
from weakref import WeakKeyDictionary

import pulumi
from pulumi.runtime.settings import get_root_resource
from pulumi.runtime.stack import Stack

from kumulus.components.arguments import outputs
from kumulus.components.engine import UserMistake, end_with_engine_if_hosted, user_error
from kumulus.model.errors import Problem, SpecError, shown
from kumulus.model.names import default_cluster_name

Component = TypeVar("Component", bound=pulumi.Resource)
_LEFT_OUT, _LABEL = "_left_out", "_label"


class Mistakes(pulumi.RunError):
    """What is wrong with a program so far; what is found later is in its text, too."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[pulumi.RunError] = []
        # What the program has not been looked at after, as text; empty if all of it has been.
        self.ended_by = ""
        # Whether a component is being constructed: what it declares itself is part of it.
        self.constructing = False
        self.task = asyncio.current_task()
        self._types: WeakKeyDictionary[pulumi.Resource, str] = WeakKeyDictionary()
        self._places: dict[tuple[type, str, object], str] = {}

    def __str__(self) -> str:
        rest = f"What follows {self.ended_by} in the program has not been looked at." if self.ended_by else ""
        return "\n".join(filter(None, [*map(str, self.found), rest]))

    def refuse(self, asked: pulumi.ResourceTransformationArgs) -> None:
        """Let nothing be declared after a mistake; in a preview, other providers' resources may be."""
        self._types[asked.resource] = f"{self._type(asked.opts.parent)}${asked.type_}"
        may_be_declared = pulumi.runtime.is_dry_run() and not asked.type_.startswith("kumulus:")
        if self.found and not may_be_declared:
            self.ended_by = f"{asked.type_} {asked.name}"
            raise self

    def require_new_name(self, kind: type, name: str, opts: object, place: FrameType) -> None:
        """Report a component with the name of another of its kind: Pulumi distinguishes them by nothing else.

        Args:
            place: where the program declares it.
        """
        key = (kind, name, self._type(getattr(opts, "parent", None)))
        here = f"{Path(place.f_code.co_filename).name}:{place.f_lineno}"
        if there := self._places.get(key):
            message = f"{shown(name)} at {here} is already the {kind.__name__} at {there}"
            found = SpecError([Problem("resource_name", message, "write another name")], f"{kind.__name__} {name}")
            self.add(user_error(found))
        self._places.setdefault(key, here)

    def _type(self, parent: pulumi.Resource | None) -> object:
        """What a parent adds to its children's URNs: its type and those above it; or itself, if that is unknown."""
        return "" if parent is None else self._types.get(parent, parent)

    async def _raised(self) -> NoReturn:
        raise self

    def add(self, mistake: pulumi.RunError) -> None:
        """Add a mistake: the program fails with all of them when it ends, however it ends."""
        if not self.found:
            pulumi.Output.from_input(self._raised())
        self.found.append(mistake)


# By the program: a process may run several, by the Automation API.
_programs: WeakKeyDictionary[Stack, Mistakes] = WeakKeyDictionary()


def _of_program() -> Mistakes | None:
    """The mistakes of the program that Pulumi runs; None of a component that another program declares."""
    program = get_root_resource()
    if not isinstance(program, Stack):
        return None
    if program not in _programs:
        # A mistake in the first component ends it before any of the plugin is asked for.
        end_with_engine_if_hosted()
        _programs[program] = Mistakes()
        # Before anything is declared: resources have the transformations that their parents had.
        pulumi.runtime.register_stack_transformation(_programs[program].refuse)
    return _programs[program]


def collected(kind: type[Component]) -> type[Component]:
    """Decorate a component: after a mistake in it the program goes on, and its outputs are unknown."""
    wrapped: Any = kind
    construct = wrapped.__init__

    @wraps(construct)
    def constructed(self: Any, *args: Any, **kwargs: Any) -> None:
        mistakes = _of_program()
        if mistakes is None or mistakes.constructing:
            construct(self, *args, **kwargs)
            return
        named = args[0] if args else kwargs.get("resource_name", "")
        mistakes.require_new_name(kind, named, kwargs.get("opts"), sys._getframe(1))
        mistakes.constructing = True
        try:
            construct(self, *args, **kwargs)
        except (UserMistake, Mistakes) as mistake:
            if isinstance(mistake, UserMistake):
                mistakes.add(mistake)
            # Otherwise a component that it needs has mistakes. Either way, the program goes on.
            mistakes.ended_by = ""
            _leave_out(mistakes, self, *args, **kwargs)
        finally:
            mistakes.constructing = False

    def asked(self: Any, name: str) -> NoReturn:
        mistakes: Mistakes | None = vars(self).get(_LEFT_OUT)
        if mistakes is None or name.startswith("__"):
            raise AttributeError(f"{kind.__name__!r} object has no attribute {name!r}", name=name, obj=self)
        # Pulumi's own tasks ask resources, too.
        if asyncio.current_task() is mistakes.task:
            mistakes.ended_by = f"the first use of {vars(self)[_LABEL]}"
        raise mistakes

    wrapped.__init__, wrapped.__getattr__ = constructed, asked
    return kind


def _leave_out(mistakes: Mistakes, component: Any, resource_name: str, **arguments: Any) -> None:
    """Have a component know nothing but what later ones need to check their arguments."""
    kind: Any = type(component)
    known: dict[str, Any] = {each.name: settled(None, known=False) for each in outputs(kind)}
    known |= {_LEFT_OUT: mistakes, _LABEL: f"{kind.__name__} {resource_name}"}
    if "cluster" not in arguments:
        cluster_name = default_cluster_name(resource_name)
        itself = {"cluster_name": cluster_name, "groups": [], "faults": [], "namespaces": {}, "prefix": ""}
        known |= {name: value for name, value in itself.items() if name not in vars(component)}
    vars(component).update(known)


def settled(value: object, *, known: bool, origin: pulumi.Resource | None = None) -> pulumi.Output[Any]:
    """An output that has its value already; if it is not known, it never will be."""
    loop = asyncio.get_event_loop()

    def future(result: object) -> asyncio.Future[Any]:
        found: asyncio.Future[Any] = loop.create_future()
        found.set_result(result)
        return found

    return pulumi.Output({origin} if origin else set(), future(value), future(known), future(False))

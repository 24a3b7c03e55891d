"""A component's arguments: its ``…Args`` as plain data, to check calls and to generate SDKs of other languages.

An ``…Args`` is a TypedDict with a docstring beneath each field. A field may be ``Required[…]``; one that may be an
output is a ``pulumi.Input[…]``; a mapping that is written as a section of the stack file is
``Annotated[…, SectionOf("module:Model")]``.
"""

from __future__ import annotations

import ast
import inspect
import sys
from collections.abc import Awaitable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from types import NoneType, UnionType
from typing import Annotated, Any, ForwardRef, Required, Union, get_args, get_origin

import pulumi

from kumulus.components.engine import user_error
from kumulus.components.inputs import later
from kumulus.model.checks import unknown_key_remedy
from kumulus.model.errors import Problem, SpecError, path_text, shown
from kumulus.model.plain import camel

_PLAIN = "write a plain value, or one of pulumi.Config"
_KINDS: dict[Any, str] = {
    str: "a text",
    bool: "true or false",
    int: "a whole number",
    Mapping: "a mapping",
    Sequence: "a list",
}


@dataclass(frozen=True)
class SectionOf:
    """Says of an argument that its mapping is written as a section of the stack file."""

    model: str
    """The section's pydantic model, ``module:Class``; by name, so that nothing of it is imported."""


@dataclass(frozen=True)
class Argument:
    """One argument, or one output, of a component."""

    name: str
    """As Python has it, ``repo_url``."""
    key: str
    """As Pulumi's schema has it, ``repoUrl``."""
    type: Any
    """Without what the other fields say: Input, Output, Required, Annotated and None are taken off."""
    required: bool
    """Whether it has to be given."""
    plain: bool
    """Whether it has to be known when the program runs; others may be outputs."""
    doc: str
    """What it is."""
    section: str | None = None
    """The model of a mapping that is written as a section of the stack file; None for others."""


@cache
def described_arguments(arguments: type) -> tuple[Argument, ...]:
    """The arguments of a component, in their order."""
    docs = _docs(arguments)
    return tuple(
        _argument(name, _evaluated(written, arguments.__module__), docs.get(name, ""))
        # A TypedDict includes the annotations of those that it extends.
        for name, written in arguments.__annotations__.items()
    )


@cache
def outputs(component: type) -> tuple[Argument, ...]:
    """The outputs of a component: the attributes that its class or a base class annotates as ``Output``."""
    found: dict[str, Argument] = {}
    for each in reversed(component.__mro__):
        docs = _docs(each) if each.__module__.startswith("kumulus.") else {}
        for name, written in inspect.get_annotations(each).items() if docs else ():
            origin: Any = get_origin(written)
            if origin is pulumi.Output or str(written).startswith("pulumi.Output["):
                found[name] = _argument(name, Required[_evaluated(written, each.__module__)], docs.get(name, ""))
    return tuple(found.values())


def check(given: Mapping[str, Any], arguments: type, source: str) -> None:
    """Report arguments that are unknown or missing, and outputs where a plain value is needed.

    Args:
        source: the component and the resource's name, ``HelmAddon metrics``.

    Raises:
        pulumi.RunError: there are some; lists all of them.
    """
    known = {each.name: each for each in described_arguments(arguments)}
    wrong = [
        Problem(name, "is not a known argument", unknown_key_remedy(name, known)) for name in given if name not in known
    ]
    wrong += [
        Problem(name, "is missing", f"write {name}=…: {each.doc.splitlines()[0]}")
        for name, each in known.items()
        if each.required and given.get(name) is None
    ]
    wrong += [
        Problem(path_text((name, *map(str, place))), "is an output, known too late: resources follow from it", _PLAIN)
        for name, value in given.items()
        if name in known and known[name].plain
        for place in later(value)
    ]
    wrong += [
        Problem(name, f"is {shown(value)}", f"write {kind}: {known[name].doc.splitlines()[0]}")
        for name, value in given.items()
        if name in known and (kind := _mistyped(known[name], value))
    ]
    if wrong:
        raise user_error(SpecError(wrong, source))


def _mistyped(argument: Argument, value: Any) -> str:
    """What a plain argument has to be and is not; empty if it is, or if the model of a section says so anyway."""
    if argument.name == "cluster":
        return (
            "" if value is None or hasattr(value, "cluster_name") else "the component of a cluster, such as KwokCluster"
        )
    if argument.name == "node_groups" and isinstance(value, Sequence):
        return "" if all(hasattr(each, "pools") for each in value) else "a list of KwokNodeGroup components"
    kind = get_origin(argument.type) or argument.type
    if value is None or not argument.plain or argument.section or kind not in _KINDS:
        return ""
    text = isinstance(value, str)
    fits = isinstance(value, kind) and not (text and kind is Sequence) and not (isinstance(value, bool) and kind is int)
    # A mapping with any values may also be a text of YAML.
    return "" if fits or (text and get_args(argument.type)[1:] == (Any,)) else _KINDS[kind]


def fields(arguments: type, *, but: Collection[str], otherwise: Mapping[str, str] | None = None) -> dict[str, str]:
    """What the stack file calls the arguments of a component.

    Args:
        but: arguments that the stack file does not have.
        otherwise: arguments that have another name there.
    """
    # Not by `described`, which reads the source and would slow down every program.
    return {name: camel(name) for name in arguments.__annotations__ if name not in but} | dict(otherwise or {})


def _evaluated(written: Any, module: str) -> Any:
    """Evaluate an annotation, a string in our modules; ``typing`` would look up even Pulumi's own names in them."""
    if isinstance(written, ForwardRef):
        module, written = written.__forward_module__ or module, written.__forward_arg__
    return eval(written, vars(sys.modules[module])) if isinstance(written, str) else written  # noqa: S307 - our own text


def _argument(name: str, kind: Any, doc: str) -> Argument:
    required, section, plain = get_origin(kind) is Required, None, True
    kind = get_args(kind)[0] if required else kind
    while True:
        if get_origin(kind) is Annotated:
            kind, *said = get_args(kind)
            section = next((each.model for each in said if isinstance(each, SectionOf)), section)
        elif get_origin(kind) is pulumi.Output:
            plain, (kind,) = False, get_args(kind)
        elif get_origin(kind) in (Union, UnionType):
            parts = [each for each in get_args(kind) if each is not NoneType]
            futures = [each for each in parts if get_origin(each) is Awaitable]
            # An Input[T] is a T, an awaitable T or an Output[T].
            plain = plain and not futures
            if not futures and len(parts) > 1:
                break
            kind = get_args(futures[0])[0] if futures else parts[0]
        else:
            break
    return Argument(name, camel(name), kind, required, plain, doc, section)


def _docs(of: type) -> dict[str, str]:
    """The docstrings beneath a class's fields, by field."""
    # Imported here, because it needs pydantic, and only errors and the plugin's description need the docstrings.
    from kumulus.model.fields import definition_of, docs_beneath

    definition = definition_of(of)
    found: dict[str, str] = {}
    for base in definition.bases:
        # A TypedDict does not record at run time what it extends.
        extended = _evaluated(ast.unparse(base), of.__module__)
        if hasattr(extended, "__total__"):
            found |= _docs(extended)
    return found | docs_beneath(definition)

"""A component's arguments: its ``…Args`` as plain data, to check calls and to generate SDKs of other languages.

An ``…Args`` is a TypedDict with a docstring beneath each field. A field may be ``Required[…]``; one that may be an
output is a ``pulumi.Input[…]``; a mapping that is written as a section of the stack file is
``Annotated[…, SectionOf("module:Model")]``.
"""

from __future__ import annotations

import ast
import inspect
import re
import sys
from collections.abc import Awaitable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from types import NoneType, UnionType
from typing import Annotated, Any, ForwardRef, Required, Union, get_args, get_origin

import pulumi

from kumulus.components.engine import UserMistake, user_error
from kumulus.components.inputs import later
from kumulus.model.checks import unknown_key_remedy
from kumulus.model.errors import Problem, SpecError, path_text, shown
from kumulus.model.names import suggest
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

    @property
    def meaning(self) -> str:
        """The first sentence of what it is, in one line and without its full stop."""
        return re.split(r"\.(?=\s|$)", " ".join(self.doc.split()))[0]


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
        if not each.__module__.startswith("kumulus."):
            continue
        docs = _docs(each)
        for name, written in inspect.get_annotations(each).items():
            origin: Any = get_origin(written)
            if origin is pulumi.Output or str(written).startswith("pulumi.Output["):
                found[name] = _argument(name, Required[_evaluated(written, each.__module__)], docs.get(name, ""))
    return tuple(found.values())


@dataclass(frozen=True)
class WrongArguments:
    """What is wrong with the arguments of one component, collected while they are looked at."""

    problems: list[Problem]
    unusable: Collection[str]
    """Arguments that are wrong or missing, and those that a misspelt name seems to mean: what is found wrong with them
    is not reported."""

    def add(self, argument: str, message: str, remedy: str) -> None:
        """Report one more."""
        self.problems.append(Problem(argument, message, remedy))

    def require(self, argument: str) -> None:
        """Leave the block of :func:`checked` if an argument cannot be used: its mistake is reported already.

        Has the effect of `args[argument]`, which is gone.
        """
        if argument in self.unusable:
            raise KeyError(argument)

    @contextmanager
    def also(self) -> Iterator[None]:
        """Collect what the block finds wrong. A KeyError for an unusable argument only ends it."""
        try:
            yield
        except pulumi.RunError as error:
            if isinstance(error, UserMistake):
                self.problems.extend(each for each in error.problems if not self._follows(each))
            # Otherwise a component that this one needs has mistakes, reported with it; this one's own are raised by
            # `checked`.
            elif not self.problems:
                raise
        except KeyError as absent:
            if absent.args[0] not in self.unusable:
                raise

    def _follows(self, problem: Problem) -> bool:
        """Whether a problem may be there only because of an argument that cannot be used."""
        return bool(self.unusable) and _top(problem.path) in {"", *self.unusable}


@contextmanager
def checked(args: Any, arguments: type, source: str) -> Iterator[WrongArguments]:
    """Report arguments that are unknown or missing, outputs where a plain value is needed, and what the block finds.

    Those that are wrong are taken out of ``args``, so that the block does not see them.

    Args:
        args: the arguments of the call, by name.
        arguments: the component's ``…Args``.
        source: the component and the resource's name, ``HelmAddon metrics``.

    Raises:
        pulumi.RunError: something is wrong; the message has all of it.
    """
    known = {each.name: each for each in described_arguments(arguments)}
    wrong = [
        Problem(name, "is not a known argument", unknown_key_remedy(name, known)) for name in args if name not in known
    ]
    # An argument that a misspelt one seems to mean is not missing.
    meant = [near for name in args if name not in known and (near := suggest(name, known)) and near not in args]
    wrong += [
        Problem(name, "is missing", f"write {name}=…: {each.meaning}")
        for name, each in known.items()
        if each.required and args.get(name) is None and name not in meant
    ]
    wrong += [
        Problem(path_text((name, *map(str, place))), "is an output, known too late: resources follow from it", _PLAIN)
        for name, value in args.items()
        if name in known and known[name].plain
        for place in later(value)
    ]
    wrong += [
        Problem(name, f"is {shown(value)}", f"write {kind}: {known[name].meaning}")
        for name, value in args.items()
        if name in known and (kind := _kind_to_write(known[name], value))
    ]
    names = {_top(each.path) for each in wrong}
    for name in names & set(args):
        del args[name]
    found = WrongArguments(wrong, {*names, *meant})
    with found.also():
        yield found
    if found.problems:
        raise user_error(SpecError(dict.fromkeys(found.problems), source))


def _top(path: str) -> str:
    """The argument that a path begins with."""
    return re.split(r"[.\[]", path)[0]


def _is_group(value: Any) -> bool:
    try:
        return hasattr(value, "pools")
    except pulumi.RunError:
        # One with mistakes, which says so.
        return True


def _kind_to_write(argument: Argument, value: Any) -> str:
    """What to write for a plain argument of the wrong kind; empty if the kind is right, or checked later by a model."""
    if value is None:
        return ""
    if argument.name == "cluster":
        return "" if hasattr(value, "cluster_name") else "the component of a cluster, such as KwokCluster"
    if argument.name == "node_groups" and isinstance(value, Sequence):
        return "" if all(map(_is_group, value)) else "a list of KwokNodeGroup components"
    kind = get_origin(argument.type) or argument.type
    if not argument.plain or argument.section or kind not in _KINDS or _is_of_kind(value, kind):
        return ""
    # A mapping with any values may also be a text of YAML.
    may_be_text = get_args(argument.type)[1:] == (Any,)
    return "" if may_be_text and isinstance(value, str) else _KINDS[kind]


def _is_of_kind(value: Any, kind: Any) -> bool:
    """Whether a value is of one of :data:`_KINDS`: a text is no list, and True no number."""
    if isinstance(value, str) and kind is Sequence:
        return False
    if isinstance(value, bool) and kind is int:
        return False
    return isinstance(value, kind)


def fields(arguments: type, *, but: Collection[str], otherwise: Mapping[str, str] | None = None) -> dict[str, str]:
    """What the stack file calls the arguments of a component, by their names.

    Args:
        but: arguments that the stack file does not have.
        otherwise: what it calls those that it does not just write in camelCase.
    """
    # Not by `described_arguments`, which reads the source and would slow down every program.
    return {name: camel(name) for name in arguments.__annotations__ if name not in but} | dict(otherwise or {})


def _evaluated(written: Any, module: str) -> Any:
    """Evaluate an annotation, which is a string in our modules.

    ``typing.get_type_hints`` does not do: it would evaluate Pulumi's own forward references in our module, too.
    """
    if isinstance(written, ForwardRef):
        module, written = written.__forward_module__ or module, written.__forward_arg__
    return eval(written, vars(sys.modules[module])) if isinstance(written, str) else written  # noqa: S307 - our own text


def _argument(name: str, kind: Any, doc: str) -> Argument:
    """An argument from its annotation, whose wrappers are taken off one by one; a union of plain types stays one."""
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

"""The components' part of the package's schema, from the arguments of the Python classes."""

import importlib
import inspect
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args, get_origin

from pydantic import BaseModel, TypeAdapter

from kumulus.components.arguments import Argument
from kumulus.components.described_cluster import CLASSES
from kumulus.provider.object_types import documented, type_of
from kumulus.provider.plugin.components import ComponentKind, component_kinds, is_cluster, is_groups
from kumulus.provider.properties import ANY, Schema
from kumulus.stackfile.schema.document import schema_of
from kumulus.stackfile.schema.forms import forms

_SCALARS = ("string", "integer", "number", "boolean")


def plainly(kind: Schema) -> Schema:
    """A type whose members all have to be known."""
    within: Schema = {key: plainly(kind[key]) for key in ("items", "additionalProperties") if key in kind}
    return {**kind, **within, "plain": True}


@dataclass
class _SchemaReader:
    """Translates a model's JSON schema into the package's types."""

    types: dict[str, Any]
    """The object types that were met, by token; it adds to them."""
    definitions: dict[str, Schema]
    """The schemas that the model's own refers to, by name."""
    plain: bool
    """Whether all of a value has to be known at the start."""

    def object_type(self, name: str, schema: Schema) -> Schema:
        """A reference to the object type of a schema with properties."""
        # The suffix avoids a clash: a pool's own types are called Taint and Topology, too.
        token = f"kumulus:index:{name[:1].upper()}{name[1:].removesuffix('Spec')}Spec"
        # If one of the arguments of this type may be an output, the type has to allow outputs.
        if token not in self.types or not self.plain:
            summary, descriptions = documented(schema.get("description", ""))
            required = schema.get("required", [])
            made: Schema = {"type": "object", "description": summary, "properties": {}, "required": required}
            self.types[token] = made
            for key, each in schema["properties"].items():
                kind = plainly(self._type(each)) if self.plain else self._type(each)
                description = each.get("description") or descriptions.get(key) or f"As `{key}` in a stack file."
                made["properties"][key] = {**kind, "description": description}
        return {"$ref": f"#/types/{token}"}

    def _type(self, schema: Schema, name: str = "") -> Schema:
        """The type of what a schema describes; the name is that of its definition, if it is one."""
        if "$ref" in schema:
            name = schema["$ref"].rpartition("/")[2]
            return self._type(self.definitions[name], name)
        # Next to properties, alternatives are only rules about which of these go together.
        if "properties" not in schema:
            for key in ("anyOf", "oneOf", "allOf"):
                choices = [each for each in schema.get(key, []) if each.get("type") != "null"]
                if key == "allOf":
                    choices = choices[:1]
                if choices:
                    return self._choice(choices, name)
        kind = _kind_named(schema)
        if kind in _SCALARS:
            return {"type": kind}
        if kind == "array":
            return {"type": "array", "items": self._type(schema.get("items", {}))}
        if kind != "object":
            return ANY
        values = schema.get("additionalProperties")
        if isinstance(values, dict) or "properties" not in schema:
            within = self._type(values) if isinstance(values, dict) else ANY
            return {"type": "object", "additionalProperties": within}
        if name:
            return self.object_type(name, schema)
        kinds = [self._type(each) for each in schema["properties"].values()]
        return {"type": "object", "additionalProperties": kinds[0] if _all_same(kinds) else ANY}

    def _choice(self, choices: Sequence[Schema], name: str) -> Schema:
        """The type of what one of several schemas describes."""
        if len(choices) == 1:
            return self._type(choices[0], name)
        kinds = [self._type(each) for each in choices]
        if not all(each.get("type") in _SCALARS for each in kinds):
            return ANY
        # For example a quantity, which is a string or a number.
        return kinds[0] if _all_same(kinds) else {"oneOf": kinds}


def _kind_named(schema: Schema) -> str | None:
    """The `type` of a schema, which may be a list with `null`; None if it has none."""
    named = schema.get("type", "string" if "enum" in schema else [])
    kinds: list[str] = [named] if isinstance(named, str) else named
    return next((each for each in kinds if each != "null"), None)


def _all_same(kinds: Sequence[Schema]) -> bool:
    return bool(kinds) and all(each == kinds[0] for each in kinds)


def _section(model: type, plain: bool, found: dict[str, Any]) -> Schema:
    """A reference to the type of a pydantic model or a dataclass; if plain, all of it is known at the start."""
    if issubclass(model, BaseModel):
        whole, definitions = schema_of(model, forms())
    else:
        whole = TypeAdapter(model).json_schema()
        definitions = whole.get("$defs", {})
    return _SchemaReader(found, definitions, plain).object_type(model.__name__, whole)


_CLUSTERS = (*(each.__name__ for each in CLASSES), "EmulatedCluster")
_ROLE = re.compile(r":\w+:`([^`]+)`")
_CODE = re.compile(r"``([^`]+)``")


def components_schema() -> tuple[dict[str, Any], dict[str, Any]]:
    """The components, and the object types of their arguments, each by token."""
    sections: dict[str, Any] = {}
    return {kind.token: _component(kind, sections) for kind in component_kinds()}, sections


def _component(kind: ComponentKind, sections: dict[str, Any]) -> dict[str, Any]:
    arguments, outputs = kind.arguments, kind.outputs
    names = {each.name: each.key for each in arguments}
    summary = inspect.cleandoc(kind.component.__doc__ or "").split("\n\n")[0]
    return {
        "isComponent": True,
        "description": _text(summary, names),
        "inputProperties": {each.key: _property(each, names, sections) for each in arguments},
        "requiredInputs": [each.key for each in arguments if each.required],
        "properties": {
            each.key: {
                **type_of(each.type),
                "description": _text(each.doc, names),
                # An output is a secret if its docstring says so.
                **({"secret": True} if "a secret" in each.doc else {}),
            }
            for each in outputs
        },
        "required": [each.key for each in outputs],
    }


def _property(argument: Argument, names: Mapping[str, str], sections: dict[str, Any]) -> dict[str, Any]:
    # A plain argument has to be known, because resources depend on it.
    kind = _kind(argument, sections)
    choice = _choice(argument.type)
    return {
        **(plainly(kind) if argument.plain else kind),
        "description": _text(argument.doc, names) + (f" One of {choice}." if choice else ""),
    }


def _kind(argument: Argument, sections: dict[str, Any]) -> dict[str, Any]:
    if is_cluster(argument):
        return {"oneOf": [{"$ref": f"#/resources/kumulus:index:{name}"} for name in _CLUSTERS]}
    if is_groups(argument):
        return {"type": "array", "items": {"$ref": "#/resources/kumulus:index:KwokNodeGroup"}}
    if argument.section is not None:
        module, _, name = argument.section.partition(":")
        found = _section(getattr(importlib.import_module(module), name), argument.plain, sections)
        return {"type": "array", "items": found} if get_origin(argument.type) is Sequence else found
    return type_of(argument.type)


def _choice(kind: Any) -> str:
    """The values of a Literal, as text; empty for another type."""
    return ", ".join(f"`{each}`" for each in get_args(kind)) if get_origin(kind) is Literal else ""


def _text(doc: str, names: Mapping[str, str]) -> str:
    """A docstring as Markdown, with the arguments' names in the schema."""
    found = _ROLE.sub(lambda match: f"`{match[1].rpartition('.')[2]}`", " ".join(doc.split()))
    return _CODE.sub(lambda match: f"`{names.get(match[1], match[1])}`", found)

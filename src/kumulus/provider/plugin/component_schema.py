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
        if "$ref" in schema:
            name = schema["$ref"].rpartition("/")[2]
            return self._type(self.definitions[name], name)
        for key in ("anyOf", "oneOf", "allOf"):
            if "properties" in schema:
                # Alternatives are then only rules about which properties go together.
                break
            choices = [each for each in schema.get(key, []) if each.get("type") != "null"]
            if choices and (key == "allOf" or len(choices) == 1):
                return self._type(choices[0], name)
            kinds = [self._type(each) for each in choices]
            if kinds and all(each.get("type") in _SCALARS for each in kinds):
                # For example a quantity, which is a string or a number.
                return kinds[0] if kinds.count(kinds[0]) == len(kinds) else {"oneOf": kinds}
            if kinds:
                return ANY
        named = schema.get("type", "string" if "enum" in schema else [])
        kind = next((each for each in ([named] if isinstance(named, str) else named) if each != "null"), None)
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
        within_all = [self._type(each) for each in schema["properties"].values()]
        same = within_all and all(each == within_all[0] for each in within_all)
        return {"type": "object", "additionalProperties": within_all[0] if same else ANY}


def _section(model: type, plain: bool, found: dict[str, Any]) -> Schema:
    """A reference to the type of a pydantic model or a dataclass; if plain, all of it is known at the start."""
    if issubclass(model, BaseModel):
        whole, definitions = schema_of(model, forms())
    else:
        whole, definitions = TypeAdapter(model).json_schema(), {}
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
    found = plainly(_kind(argument, sections)) if argument.plain else _kind(argument, sections)
    choice = _choice(argument.type)
    return {
        **found,
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
    return ", ".join(f"`{each}`" for each in get_args(kind)) if get_origin(kind) is Literal else ""


def _text(doc: str, names: Mapping[str, str]) -> str:
    """A docstring as Markdown, with the arguments' names in the schema."""
    found = _ROLE.sub(lambda match: f"`{match[1].rpartition('.')[2]}`", " ".join(doc.split()))
    return _CODE.sub(lambda match: f"`{names.get(match[1], match[1])}`", found)

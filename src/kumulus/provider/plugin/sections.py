"""Object types in the package's schema for sections of the stack file, from their models' JSON schemas."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, TypeAdapter

from kumulus.provider.object_types import documented
from kumulus.stackfile.schema.document import schema_of
from kumulus.stackfile.schema.forms import forms

_SCALARS = ("string", "integer", "number", "boolean")
_ANY = {"$ref": "pulumi.json#/Any"}
Schema = dict[str, Any]


class SectionTypes:
    """The object types that were asked for, and those within them.

    Attributes:
        found: by token, as the schema's `types` have them.
    """

    def __init__(self) -> None:
        self.found: dict[str, Any] = {}

    def of(self, model: type, plain: bool) -> Schema:
        """A reference to the type of a section.

        Args:
            model: a pydantic model, or a dataclass.
            plain: whether all of it has to be known when the program runs.
        """
        if issubclass(model, BaseModel):
            whole, definitions = schema_of(model, forms())
        else:
            whole, definitions = TypeAdapter(model).json_schema(), {}
        reading = _Reading(self.found, definitions, plain)
        return reading.object_type(model.__name__, whole)


def plainly(kind: Schema) -> Schema:
    """A type whose members all have to be known."""
    within: Schema = {key: plainly(kind[key]) for key in ("items", "additionalProperties") if key in kind}
    return {**kind, **within, "plain": True}


class _Reading:
    """One model's schema, being read.

    Args:
        found: the object types so far.
        definitions: what the schema refers to.
        plain: as for :meth:`SectionTypes.of`.
    """

    def __init__(self, found: dict[str, Any], definitions: dict[str, Schema], plain: bool) -> None:
        self._found, self._definitions, self._plain = found, definitions, plain

    def object_type(self, name: str, schema: Schema) -> Schema:
        """A reference to the object type of a schema with properties."""
        # The suffix avoids a clash: a pool's own types are called Taint and Topology, too.
        token = f"kumulus:index:{name[:1].upper()}{name[1:].removesuffix('Spec')}Spec"
        # If one of the arguments of this type may be an output, the type has to allow outputs.
        if token not in self._found or not self._plain:
            summary, descriptions = documented(schema.get("description", ""))
            made: Schema = {"type": "object", "description": summary, "properties": {}, "required": []}
            self._found[token] = made
            for key, each in schema["properties"].items():
                kind = plainly(self._type(each)) if self._plain else self._type(each)
                description = each.get("description") or descriptions.get(key) or f"As `{key}` in a stack file."
                made["properties"][key] = {**kind, "description": description}
            made["required"] = [key for key in schema.get("required", []) if key in made["properties"]]
        return {"$ref": f"#/types/{token}"}

    def _type(self, schema: Schema, name: str = "") -> Schema:
        if "$ref" in schema:
            name = schema["$ref"].rpartition("/")[2]
            return self._type(self._definitions[name], name)
        # Beside properties, alternatives are only rules about which properties go together.
        for key in () if "properties" in schema else ("anyOf", "oneOf", "allOf"):
            choices = [each for each in schema.get(key, []) if each.get("type") != "null"]
            if choices and (key == "allOf" or len(choices) == 1):
                return self._type(choices[0], name)
            kinds = [self._type(each) for each in choices]
            if kinds and all(each.get("type") in _SCALARS for each in kinds):
                # For example a quantity, which is a string or a number.
                return kinds[0] if kinds.count(kinds[0]) == len(kinds) else {"oneOf": kinds}
            if kinds:
                return dict(_ANY)
        named = schema.get("type", "string" if "enum" in schema else [])
        kind = next((each for each in ([named] if isinstance(named, str) else named) if each != "null"), None)
        if kind in _SCALARS:
            return {"type": kind}
        if kind == "array":
            return {"type": "array", "items": self._type(schema.get("items", {}))}
        if kind != "object":
            return dict(_ANY)
        values = schema.get("additionalProperties")
        if isinstance(values, dict) or "properties" not in schema:
            within = self._type(values) if isinstance(values, dict) else dict(_ANY)
            return {"type": "object", "additionalProperties": within}
        if name:
            return self.object_type(name, schema)
        within_all = [self._type(each) for each in schema["properties"].values()]
        same = within_all and all(each == within_all[0] for each in within_all)
        return {"type": "object", "additionalProperties": within_all[0] if same else dict(_ANY)}

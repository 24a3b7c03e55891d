"""A JSON schema from a model: pydantic's, with the forms of checked types, and defaults and examples as written.

Draft 7, which editors fully support. It ignores the keywords next to a `$ref`, so such a `$ref` goes into an `allOf`.
"""

from collections.abc import Iterator, Mapping
from contextlib import suppress
from functools import cache
from typing import Any

from pydantic import BaseModel
from pydantic.json_schema import GenerateJsonSchema

from kumulus.model import durations
from kumulus.model.fields import COMPLETED, FORM, Section, definition_of, docs_beneath
from kumulus.stackfile.yamltext import read_yaml

Schema = dict[str, Any]
DRAFT = "http://json-schema.org/draft-07/schema#"
DEFINITIONS = "definitions"
NULLABLE = "$nullable"
"""Marks a key of a form that may have no value, like all optional keys of the models."""

NULL: Schema = {"type": "null"}
_NOTES = ("description", "default", "examples")
_VALUES = ("const", "enum", *_NOTES)


class _Plain(GenerateJsonSchema):
    def field_title_should_be_set(self, schema: Any) -> bool:
        return False

    def model_schema(self, schema: Any) -> Schema:
        made = super().model_schema(schema)
        for written in schema["cls"].__mro__:
            # A variable of the class may have a docstring, too.
            for name in _docs(written).keys() & made.get("properties", {}).keys():
                made["properties"][name].setdefault("description", " ".join(_docs(written)[name].split()))
        return made


@cache
def _docs(written: type) -> dict[str, str]:
    """The docstrings beneath the fields of a class, if it is one of a file's models and was written as a class."""
    if not issubclass(written, Section):
        return {}
    with suppress(OSError):
        # A file's `from` is a field `from_`.
        return {name.rstrip("_"): doc for name, doc in docs_beneath(definition_of(written)).items()}
    return {}


def schema_of(model: type[BaseModel], forms: Mapping[str, Schema]) -> tuple[Schema, dict[str, Schema]]:
    """A model's schema, and the definitions that it refers to; checked types are described by their forms."""
    made = model.model_json_schema(schema_generator=_Plain, ref_template=f"#/{DEFINITIONS}/{{model}}")
    models: dict[str, Schema] = made.pop("$defs", {})
    found: dict[str, Schema] = {}
    whole = _expanded(_fields(made), forms, found)
    for name, each in models.items():
        found[name] = _expanded(_fields(each), forms, found)
    return whole, dict(sorted(found.items()))


def ref(name: str) -> Schema:
    """A reference to a definition."""
    return {"$ref": f"#/{DEFINITIONS}/{name}"}


def closed(properties: Mapping[str, Schema], **more: object) -> Schema:
    """A mapping of known keys, with further keywords such as `required`."""
    return {"type": "object", "properties": dict(properties), **more, "additionalProperties": False}


def target(schema: Schema, definitions: Mapping[str, Schema]) -> Schema:
    """The definition that a schema refers to, or the schema itself."""
    return definitions[schema["$ref"].rpartition("/")[2]] if "$ref" in schema else schema


def inner(schema: Schema) -> Iterator[tuple[Schema, str]]:
    """The schemas of a value's parts, without rules; each as the mapping that holds it, and its key there."""
    for key in ("properties", "patternProperties"):
        for name in schema.get(key, {}):
            yield schema[key], name
    for key in ("additionalProperties", "items"):
        if isinstance(schema.get(key), dict):
            yield schema, key


def _fields(model: Schema) -> Schema:
    """A model's schema with each field in the file's form: examples as values, and optional keys without a value."""
    model.pop("title", None)
    fields = model.get("properties", {})
    needed = [name for name in model.pop("required", []) if not fields[name].pop(COMPLETED, False)]
    model |= {"required": needed} if needed else {}
    for name, field in fields.items():
        fields[name] = {**_field(field), **({} if name in needed else {NULLABLE: True})}
    return model


def _field(made: Schema) -> Schema:
    field = {key: value for key, value in made.items() if key not in ("anyOf", "default", "examples")}
    alternatives = [each for each in made.get("anyOf", []) if each != NULL]
    if len(alternatives) == 1:
        field = {**alternatives[0], **field}
    elif alternatives:
        field = {"anyOf": alternatives, **field}
    if texts := [text for text in made.get("examples", []) if "…" not in text]:
        field["examples"] = [read_yaml(text) for text in texts]
    default = made.get("default")
    # Empty defaults are described in words.
    if default not in (None, "", [], {}):
        in_seconds = field.get(FORM) == "duration" and not isinstance(default, str)
        field["default"] = durations.written(default) if in_seconds else default
    return field


def _expanded(schema: Schema, forms: Mapping[str, Schema], found: dict[str, Schema]) -> Schema:
    """A schema with its forms inserted; forms of mappings, lists and choices become definitions."""
    notes = {key: schema[key] for key in _NOTES if key in schema}
    rest = {key: value for key, value in schema.items() if key not in (*_NOTES, FORM, NULLABLE)}
    made: Schema = {}
    for key, value in rest.items():
        if key in ("properties", "patternProperties"):
            made[key] = {name: _expanded(each, forms, found) for name, each in value.items()}
        elif key in ("anyOf", "allOf", "oneOf"):
            made[key] = [_expanded(each, forms, found) for each in value]
        elif key not in _VALUES and isinstance(value, dict):
            made[key] = _expanded(value, forms, found)
        else:
            made[key] = value
    if FORM in schema:
        made = _formed(schema[FORM], made, forms, found)
    if "$ref" in made and (notes or len(made) > 1):
        rule = {key: value for key, value in made.items() if key != "$ref"}
        made = {"allOf": [{"$ref": made["$ref"]}, *([rule] if rule else [])]}
    if schema.get(NULLABLE):
        made = _or_nothing(made)
    described = {"description": notes.pop("description")} if "description" in notes else {}
    return {**described, **made, **notes}


def _formed(name: str, further: Schema, forms: Mapping[str, Schema], found: dict[str, Schema]) -> Schema:
    """A form with further keys: itself, or if it is more than a single value, a reference to its definition."""
    form = forms[name]
    is_single = not ("anyOf" in form or "enum" in form or form.get("type") in ("object", "array"))
    if is_single:
        return {**_expanded(form, forms, found), **further}
    if name not in found:
        found[name] = _expanded(form, forms, found)
    return {**ref(name), **further}


def _or_nothing(schema: Schema) -> Schema:
    """A schema that also accepts a key without a value."""
    kind = schema.get("type")
    if isinstance(kind, str) and kind in ("string", "boolean", "integer", "number", "object", "array"):
        choices = {"enum": [*schema["enum"], None]} if "enum" in schema else {}
        return {**schema, "type": [kind, "null"], **choices}
    if set(schema) == {"anyOf"}:
        return {"anyOf": [*schema["anyOf"], NULL]}
    alone = schema["allOf"][0] if set(schema) == {"allOf"} and len(schema["allOf"]) == 1 else schema
    return {"anyOf": [alone, NULL]} if schema else schema

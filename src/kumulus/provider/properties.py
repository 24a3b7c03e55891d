"""Declares a resource's properties once: for checking and comparing inputs, and for the package's schema."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

Schema = dict[str, Any]
"""A type of a property, as Pulumi's schema has it."""
STRING: Schema = {"type": "string"}
INTEGER: Schema = {"type": "integer"}
NUMBER: Schema = {"type": "number"}
BOOLEAN: Schema = {"type": "boolean"}
ANY: Schema = {"$ref": "pulumi.json#/Any"}


def listing(of: Schema) -> Schema:
    """A list of something."""
    return {"type": "array", "items": of}


def mapping(of: Schema) -> Schema:
    """A mapping of names to something."""
    return {"type": "object", "additionalProperties": of}


STRINGS, OBJECT = mapping(STRING), mapping(ANY)


@dataclass(frozen=True)
class Property:
    """A property."""

    name: str
    """As Pulumi programs in YAML write it."""
    type: Schema
    description: str
    """What it is, a sentence or two in Markdown."""
    required: bool = False
    """Whether it must be given as an input, and is always present as an output."""
    replaces: bool = False
    """Whether another value replaces the resource."""
    secret: bool = False
    """Whether its value is a secret."""
    fleeting: bool = False
    """Whether it is used but not kept: an input that is no output."""

    def schema(self) -> Schema:
        """The property in a Pulumi schema."""
        return {
            **self.type,
            "description": self.description,
            # Only documentation for programs: the resources' own diffs decide about replacements.
            **({"willReplaceOnChanges": True} if self.replaces else {}),
            **({"secret": True} if self.secret else {}),
        }


OBJECT_TYPES: dict[str, Schema] = {}
"""The types with properties of their own, by token: the schema's `types`."""


def object_type(name: str, description: str, properties: Iterable[Property]) -> Schema:
    """A type with properties of its own, and a name in the schema and in every language."""
    token, within = f"kumulus:index:{name}", list(properties)
    OBJECT_TYPES[token] = {
        "type": "object",
        "description": description,
        "properties": {each.name: each.schema() for each in within},
        "required": [each.name for each in within if each.required],
    }
    return {"$ref": f"#/types/{token}"}

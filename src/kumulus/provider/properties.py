"""Declares a resource's properties once: for checking and comparing inputs, and for the package's schema."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar


@dataclass(frozen=True)
class Type:
    """The type of a property."""

    name: str
    """As in JSON schema: string, integer, number, boolean, array, object."""
    of: Type | None = None
    """Type of the elements of an array or a mapping; anything when None."""
    anything: ClassVar[dict[str, object]] = {"$ref": "pulumi.json#/Any"}

    def schema(self) -> dict[str, object]:
        """The type in a Pulumi schema."""
        within = self.of.schema() if self.of else self.anything
        if self.name == "array":
            return {"type": "array", "items": within}
        if self.name == "object":
            return {"type": "object", "additionalProperties": within}
        return {"type": self.name}

    def objects(self) -> list[ObjectType]:
        """The object types within it."""
        return self.of.objects() if self.of else []


@dataclass(frozen=True)
class Any(Type):
    """Any value."""

    name: str = "any"

    def schema(self) -> dict[str, object]:
        """See :meth:`Type.schema`."""
        return dict(self.anything)


@dataclass(frozen=True)
class Property:
    """A property."""

    name: str
    """As Pulumi programs in YAML write it."""
    type: Type
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

    def schema(self) -> dict[str, object]:
        """The property in a Pulumi schema."""
        return {
            **self.type.schema(),
            "description": self.description,
            # Only documentation for programs: the resources' own diffs decide about replacements.
            **({"willReplaceOnChanges": True} if self.replaces else {}),
            **({"secret": True} if self.secret else {}),
        }


@dataclass(frozen=True)
class ObjectType(Type):
    """A type with properties of its own; `name` is its name in the schema and in every language."""

    description: str = ""
    properties: tuple[Property, ...] = ()

    @property
    def token(self) -> str:
        """Its name in the schema."""
        return f"kumulus:index:{self.name}"

    def schema(self) -> dict[str, object]:
        """See :meth:`Type.schema`."""
        return {"$ref": f"#/types/{self.token}"}

    def definition(self) -> dict[str, object]:
        """The type's entry in the schema's `types`."""
        return {
            "type": "object",
            "description": self.description,
            "properties": {each.name: each.schema() for each in self.properties},
            "required": [each.name for each in self.properties if each.required],
        }

    def objects(self) -> list[ObjectType]:
        """See :meth:`Type.objects`."""
        return [self, *(found for each in self.properties for found in each.type.objects())]


STRING, INTEGER, NUMBER, BOOLEAN, ANY = Type("string"), Type("integer"), Type("number"), Type("boolean"), Any()
STRINGS, OBJECT = Type("object", STRING), Type("object")
"""A mapping to strings, and a mapping to anything."""


def listing(of: Type) -> Type:
    """A list of something."""
    return Type("array", of)


def mapping(of: Type) -> Type:
    """A mapping of names to something."""
    return Type("object", of)

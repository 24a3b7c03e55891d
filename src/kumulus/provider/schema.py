"""The resources' part of the package's schema, generated from their declarations."""

from __future__ import annotations

import inspect
from collections.abc import Iterable
from typing import Any

from kumulus.provider.properties import ObjectType, Property
from kumulus.provider.resources.base import Resource


def resource_schema(resource: type[Resource]) -> dict[str, Any]:
    """A resource's entry in the schema."""
    kept = [each for each in resource.inputs if not each.fleeting] + list(resource.outputs)
    return {
        "description": " ".join(inspect.cleandoc(resource.__doc__ or "").split("\n\n")[0].split()),
        "inputProperties": {each.name: each.schema() for each in resource.inputs},
        "requiredInputs": [each.name for each in resource.inputs if each.required],
        "properties": {each.name: each.schema() for each in kept},
        "required": [each.name for each in kept if each.required],
    }


def types_schema(properties: Iterable[Property]) -> dict[str, Any]:
    """The object types used by properties, by token."""
    found: dict[str, ObjectType] = {found.token: found for each in properties for found in each.type.objects()}
    return {token: found[token].definition() for token in sorted(found)}


def declared(resources: Iterable[type[Resource]]) -> list[Property]:
    """Every property of the given resources."""
    return [each for resource in resources for each in (*resource.inputs, *resource.outputs)]

"""Which of an autoscaler's offerings a fault affects, and how much a quota allows of them."""

# ruff: noqa: N815 - fields are called what the file calls them, so that a path in an error is a path in the code

from __future__ import annotations

from collections.abc import Mapping
from fnmatch import fnmatchcase
from typing import Annotated, Any

from pydantic import Field

from kumulus.model.checks import is_counted_whole, of_mapping, problem, quantity_problems, resource_name_problems
from kumulus.model.errors import Problem, Where, shown
from kumulus.model.fields import FORM, Section, checked
from kumulus.model.quantity import canonical
from kumulus.nodes.catalog.instances import instance_types
from kumulus.stackfile.autoscaler import CapacityType
from kumulus.stackfile.shapes import instance_type_problems

MACHINES = "nodes"
"""The name of a quota's limit of machines, as in the limits of a NodePool."""


def _types_problems(where: Where, raw: object) -> list[Problem]:
    """Whether a text is an instance type of the catalog, or matches several, like `e2-*`."""
    if not isinstance(raw, str) or "*" not in raw:
        return instance_type_problems(where, raw)
    if any(fnmatchcase(name, raw) for name in instance_types()):
        return []
    return [problem(where, f"{shown(raw)} fits no instance type of the catalog", "write more of it as *, such as e2-*")]


@of_mapping
def _limits_problems(where: Where, raw: Mapping[str, Any]) -> list[Problem]:
    """Problems of a mapping from resources, or `nodes`, to their limits."""
    found = list(resource_name_problems(where, {name: each for name, each in raw.items() if name != MACHINES}))
    for name, written in raw.items():
        whole = name == MACHINES or is_counted_whole(str(name))
        found += quantity_problems((*where, name), written, whole=whole, example='"64"')
    return found if raw else [problem(where, "is empty", 'write how much there may be, such as {cpu: "64"}')]


def _limits(raw: Mapping[str, str | int | float]) -> dict[str, str]:
    return {name: canonical(written) for name, written in sorted(raw.items())}


_TYPES = {"anyOf": [{FORM: "instanceType"}, {"type": "string", "pattern": r"[*]"}]}
TypeNames = Annotated[str, checked(_types_problems, form=_TYPES)]
Limits = Annotated[dict[str, str], checked(_limits_problems, _limits, form="resources")]


class Offers(Section):
    """Which of an autoscaler's offerings a fault affects: those that match every field that is given."""

    zones: list[str] = Field(
        default_factory=list,
        description="Offerings in these zones; `*` stands for any characters, so `us-central1-*` is a region.",
        examples=["[us-central1-a]"],
    )
    instanceTypes: list[TypeNames] = Field(
        default_factory=list,
        description="Offerings of these instance types; `e2-*` is a family.",
        examples=["[e2-standard-16]"],
    )
    capacityTypes: list[CapacityType] = Field(
        default_factory=list, description="On demand, or as spot machines.", examples=["[spot]"]
    )

"""What the models have in common: their base class, and field types whose checks are the shared ones of `checks`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, model_validator
from pydantic_core import PydanticCustomError

from spec import checks
from spec.checks import problem
from spec.errors import Problem, Where, shown
from spec.names import LABEL_LENGTH, Fault, dns_label_fault, dns_subdomain_fault, label_value_fault
from spec.pools import Taint, canonical_resources, taints_from

Check = Callable[[Where, object], list[Problem]]


class Section(BaseModel):
    """A mapping of the stack file: known keys only, types as written, and a key without a value means its default."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    @model_validator(mode="before")
    @classmethod
    def _drop_empty(cls, data: object) -> object:
        if not isinstance(data, Mapping):
            return data
        required = {name for name, field in cls.model_fields.items() if field.is_required()}
        return {key: value for key, value in data.items() if value is not None or key in required}


def found(problems: list[Problem]) -> PydanticCustomError:
    """The error that carries problems, their paths relative to the field, through pydantic to `validation`."""
    return PydanticCustomError("problems", "malformed", {"problems": problems})


def checked(check: Check, convert: Callable[[Any], object] = lambda value: value) -> BeforeValidator:
    """A validator from one of the shared checks.

    Args:
        check: takes a place and a value, returns every problem.
        convert: what to keep of a value without problems.
    """

    def validate(value: object) -> object:
        if problems := check((), value):
            raise found(problems)
        return convert(value)

    return BeforeValidator(validate)


def text(fault: Callable[[str], Fault | None]) -> BeforeValidator:
    """A validator for a text, from a function that tells what is wrong with it."""

    def check(where: Where, value: object) -> list[Problem]:
        # Anything but a text is left to pydantic, whose strict str refuses it.
        wrong = fault(value) if isinstance(value, str) else None
        return [problem(where, f"{shown(value)} {wrong.message}", wrong.remedy)] if wrong else []

    return checked(check)


def whole(least: int, most: int) -> BeforeValidator:
    """A validator for a whole number within bounds."""
    return checked(lambda where, value: checks.whole_problems(where, value, least, most), int)


def capacity_problems(where: Where, raw: object) -> list[Problem]:
    """Problems of a template's capacity: those of any resources, misspelt names, and `pods` left out."""
    if wrong := checks.mapping_problems(where, raw):
        return wrong
    assert isinstance(raw, Mapping)
    wrong = checks.resource_problems(where, raw)
    wrong += checks.resource_name_problems(where, raw)
    if "pods" not in raw:
        message = "is missing, so that pods would be 0 and nothing would schedule"
        wrong.append(problem((*where, "pods"), message, 'write pods: "110"'))
    return wrong


def _quantity(where: Where, raw: object) -> list[Problem]:
    return checks.quantity_problems(where, raw)


def _labels(where: Where, raw: object) -> list[Problem]:
    return checks.label_problems(where, raw)


def _annotations(where: Where, raw: object) -> list[Problem]:
    return checks.annotation_problems(where, raw)


def _node_info(raw: Mapping[str, str | None]) -> dict[str, str]:
    return {key: value for key, value in raw.items() if value is not None}


def short_label(longest: int) -> BeforeValidator:
    """A validator for a DNS-1123 label of at most `longest` characters."""
    return text(lambda value: dns_label_fault(value, longest))


GroupName = Annotated[str, text(lambda value: dns_subdomain_fault(value, LABEL_LENGTH))]
LabelValue = Annotated[str, text(label_value_fault)]
Labels = Annotated[dict[str, str], checked(_labels, dict)]
Annotations = Annotated[dict[str, str], checked(_annotations, dict)]
Taints = Annotated[tuple[Taint, ...], checked(checks.taint_problems, taints_from)]
Capacity = Annotated[dict[str, str], checked(capacity_problems, canonical_resources)]
Allocatable = Annotated[dict[str, str], checked(checks.resource_problems, canonical_resources)]
NodeInfoFields = Annotated[dict[str, str], checked(checks.node_info_problems, _node_info)]
Replicas = Annotated[int, checked(checks.replicas_problems, int)]
QuantityText = Annotated[str, checked(_quantity, str)]

"""What the models share: their base class, and field types validated by the checks in `checks`."""

import ast
import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import pairwise
from textwrap import dedent
from typing import Annotated, Any, ClassVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, GetJsonSchemaHandler, model_validator
from pydantic_core import CoreSchema, PydanticCustomError

from kumulus.model import checks
from kumulus.model.device_checks import driver_problems
from kumulus.model.distributions import Distribution, distribution_of, distribution_problems
from kumulus.model.errors import Problem, Where
from kumulus.model.names import LABEL_LENGTH, dns_label_mistake, dns_subdomain_mistake, label_value_mistake
from kumulus.model.pools import Taint, features_from, taints_from
from kumulus.model.quantity import canonical_resources

Form = str | Mapping[str, object]
FORM = "$form"
"""The key that stands for a named form of `schema.forms` until the schema is built."""
COMPLETED = "$completed"
"""Marks a field that the model requires, but the file only where the catalog cannot fill it in."""


class Section(BaseModel):
    """A mapping of the stack file: known keys only, no type coercion, and a key without a value gets its default.

    A docstring beneath a field is its description.
    """

    INSTEAD: ClassVar[Mapping[str, str]] = {}
    """What to write instead of certain keys that it does not have; for others, the most similar field is suggested."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    @model_validator(mode="before")
    @classmethod
    def _drop_empty(cls, data: object) -> object:
        if not isinstance(data, Mapping):
            return data
        # Unknown keys stay, so that they are reported: a misspelt one often has no value yet.
        optional = {name for name, field in cls.model_fields.items() if not field.is_required()}
        return {key: value for key, value in data.items() if value is not None or key not in optional}


def definition_of(cls: type) -> ast.ClassDef:
    """The definition of a class in its source."""
    body = ast.parse(dedent(inspect.getsource(cls))).body[0]
    assert isinstance(body, ast.ClassDef)
    return body


def docs_beneath(definition: ast.ClassDef) -> dict[str, str]:
    """The docstrings beneath a class's own fields, by field; the interpreter drops them."""
    return {
        field.target.id: inspect.cleandoc(after.value.value)
        for field, after in pairwise(definition.body)
        if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name)
        if isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant) and isinstance(after.value.value, str)
    }


def malformed(problems: list[Problem]) -> PydanticCustomError:
    """The error that carries problems, with paths relative to the field, through pydantic to `validation`."""
    return PydanticCustomError("problems", "malformed", {"problems": problems})


# eq=False keeps the validator's own comparison and hash: a form may be a mapping, which is not hashable.
@dataclass(frozen=True, eq=False)
class CheckedField(BeforeValidator):
    """A check, and the form by which a JSON schema describes the values that pass it."""

    form: Form = ""
    """The name of one of `schema.forms`, or the schema itself, which may build on a named form."""

    def __get_pydantic_json_schema__(self, core: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        return {FORM: self.form} if isinstance(self.form, str) else dict(self.form)


def checked(
    check: checks.Check[[]], convert: Callable[[Any], object] = lambda value: value, *, form: Form
) -> CheckedField:
    """A validator from one of the shared checks.

    Args:
        check: takes a place and a value, returns every problem.
        convert: turns a value without problems into the one that is kept.
        form: of the values that pass, as in `CheckedField`.
    """

    def validate(value: object) -> object:
        if problems := check((), value):
            raise malformed(problems)
        return convert(value)

    return CheckedField(validate, form=form)


def text(mistake_of: checks.MistakeOf, *, form: Form) -> CheckedField:
    """A validator for a string.

    Args:
        mistake_of: returns what is wrong with it, or None.
        form: of the values that pass, as in `CheckedField`.
    """

    def check(where: Where, value: object) -> list[Problem]:
        # Anything but a string is left to pydantic, whose strict str rejects it.
        return checks.text_problems(where, value, mistake_of) if isinstance(value, str) else []

    return checked(check, form=form)


def whole(least: int, most: int) -> CheckedField:
    """A validator for a whole number within bounds."""
    form = whole_form(least, most)
    return checked(lambda where, value: checks.whole_problems(where, value, least, most), int, form=form)


def whole_form(least: int, most: int) -> dict[str, object]:
    """The JSON schema of a whole number within bounds."""
    return {"type": "integer", "minimum": least, "maximum": most}


@checks.of_mapping
def capacity_problems(where: Where, raw: Mapping[str, Any]) -> list[Problem]:
    """Problems of a template's capacity: those of any resources, misspelt names, and missing `pods`."""
    wrong = checks.resource_problems(where, raw)
    wrong += checks.resource_name_problems(where, raw)
    if "pods" not in raw:
        message = "is missing, so that pods would be 0 and nothing would schedule"
        wrong.append(checks.problem((*where, "pods"), message, 'write pods: "110"'))
    return wrong


def _node_info(raw: Mapping[str, str | None]) -> dict[str, str]:
    return {key: value for key, value in raw.items() if value is not None}


def short_label(longest: int) -> CheckedField:
    """A validator for a DNS-1123 label of at most `longest` characters."""
    return text(lambda value: dns_label_mistake(value, longest), form={FORM: "label", "maxLength": longest})


GroupName = Annotated[str, text(lambda value: dns_subdomain_mistake(value, LABEL_LENGTH), form="groupName")]
LabelValue = Annotated[str, text(label_value_mistake, form="labelValue")]
Labels = Annotated[dict[str, str], checked(checks.label_problems, dict, form="labels")]
Annotations = Annotated[dict[str, str], checked(checks.annotation_problems, dict, form="annotations")]
Taints = Annotated[tuple[Taint, ...], checked(checks.taint_problems, taints_from, form="taints")]
Capacity = Annotated[dict[str, str], checked(capacity_problems, canonical_resources, form="capacity")]
Allocatable = Annotated[dict[str, str], checked(checks.resource_problems, canonical_resources, form="resources")]
NodeInfoFields = Annotated[dict[str, str], checked(checks.node_info_problems, _node_info, form="nodeInfo")]
DeclaredFeatures = Annotated[tuple[str, ...], checked(checks.feature_problems, features_from, form="features")]
Replicas = Annotated[int, checked(checks.replicas_problems, int, form=whole_form(0, checks.MOST_REPLICAS))]
DriverName = Annotated[str, checked(driver_problems, str, form="driver")]
DurationField = Annotated[Distribution, checked(distribution_problems, distribution_of, form="distribution")]
QuantityText = Annotated[str, checked(checks.quantity_problems, str, form="quantity")]

"""Converts pydantic's errors to problems: the path as in the file, what is wrong, and what to write instead."""

import re
from collections.abc import Iterable, Mapping
from typing import Any, TypeVar, get_args

from pydantic import BaseModel, ModelWrapValidatorHandler, ValidationError
from pydantic.fields import FieldInfo

from kumulus.model.checks import no_text_problem, unknown_key_remedy
from kumulus.model.errors import Problem, SpecError, path_text, shown, under
from kumulus.model.fields import malformed
from kumulus.model.names import instead, suggest

_UNKNOWN, _MISSING = "is not a known key", "is missing"
_EXPECTED = {
    "string_type": "a text",
    "list_type": "a list",
    "tuple_type": "a list",
    "dict_type": "a mapping",
    "model_type": "a mapping",
    "model_attributes_type": "a mapping",
    "bool_type": "true or false",
    "int_type": "a whole number",
}


Model = TypeVar("Model", bound=BaseModel)


def validated(model: type[Model], raw: object, source: str) -> Model:
    """A model from a plain mapping; `source`: the file or stack it is from, for the first line of a SpecError."""
    try:
        return model.model_validate(raw)
    except ValidationError as error:
        raise SpecError(problems_of(error, model), source) from None


def problems_of(error: ValidationError, model: type[BaseModel]) -> list[Problem]:
    """Every problem in the validation error of a model; a key that is misspelt is not reported missing as well."""
    found: list[Problem] = []
    for detail in error.errors(include_url=False):
        found += _problems(detail["type"], detail["loc"], detail["input"], detail.get("ctx", {}), model)
    unknown = [each for each in found if each.message == _UNKNOWN]
    meant = {under(each.path.rpartition(".")[0], each.remedy.removeprefix("write ")) for each in unknown}
    return [each for each in found if each.message != _MISSING or each.path not in meant]


def with_rules(model: type[Model], data: Any, handler: ModelWrapValidatorHandler[Model], rules: list[Problem]) -> Model:
    """A model; if there are problems, of its fields or by rules that span several fields, all are raised at once.

    Args:
        data: the mapping that it is made from.
        handler: makes it; from a `model_validator` of mode "wrap".
        rules: the problems by such rules.
    """
    try:
        made = handler(data)
    except ValidationError as error:
        raise malformed(in_file_order([*problems_of(error, model), *rules])) from None
    if rules:
        raise malformed(in_file_order(rules))
    return made


def in_file_order(problems: Iterable[Problem]) -> list[Problem]:
    """Problems without duplicates, sorted by path, list items by number."""
    return sorted(dict.fromkeys(problems), key=lambda problem: _natural(problem.path))


def _natural(path: str) -> list[tuple[int, str]]:
    return [(int(part), "") if part.isdigit() else (-1, part) for part in re.split(r"([0-9]{1,9})", path)]


def _problems(
    kind: str, where: tuple[int | str, ...], value: object, context: Mapping[str, Any], model: type[BaseModel]
) -> list[Problem]:
    # Pydantic adds this part to the place of a wrong key.
    where = where[:-1] if where[-1:] == ("[key]",) else where
    path = path_text(where)
    if kind == "problems":
        inner: list[Problem] = context["problems"]
        return [Problem(under(path, each.path), each.message, each.remedy) for each in inner]
    field, parent, above = _declared(where, model)
    example = _example(where, field)
    if kind == "extra_forbidden":
        return [Problem(path, _UNKNOWN, _instead_of(str(where[-1]), parent, above))]
    if kind == "missing":
        return [Problem(path, _MISSING, example)]
    if kind == "invalid_key":
        return [Problem(path, "has a key that is no text", "write the key in quotes")]
    if kind == "literal_error":
        return [Problem(path, f"is {shown(value)}", _choice(value, field) or example)]
    if kind == "string_type" and isinstance(value, bool | int | float):
        return [no_text_problem(where, value)]
    expected = _EXPECTED.get(kind)
    message = f"is {shown(value)}, not {expected}" if expected else f"is {shown(value)}, which is not allowed here"
    return [Problem(path, message, example or (f"write {expected}" if expected else ""))]


def _declared(
    where: tuple[int | str, ...], model: type[BaseModel]
) -> tuple[FieldInfo | None, type[BaseModel], dict[str, type[BaseModel]]]:
    """The field at a place, if there is one; the model that contains it, or would; and the models around that.

    These are by the name of their field that leads to the place, outermost first.
    """
    field: FieldInfo | None = None
    above: dict[str, type[BaseModel]] = {}
    name = ""
    for part in where:
        if isinstance(part, int):
            continue
        if field is not None:
            inner = _model_in(field.annotation)
            if inner is None:
                return None, model, above
            above[name] = model
            model = inner
        name = part
        field = _fields(model).get(part)
        if field is None:
            return None, model, above
    return field, model, above


def _instead_of(key: str, model: type[BaseModel], above: Mapping[str, type[BaseModel]]) -> str:
    """What to write instead of an unknown key: one almost the same, the one section that has it, or the nearest."""
    fields = _fields(model)
    declared = getattr(model, "INSTEAD", {})
    if key in declared:
        return f"write {declared[key]}"
    if not suggest(key, fields, likeness=0.8):
        sections = [name for name, field in fields.items() if key in _fields(_model_in(field.annotation) or BaseModel)]
        if len(sections) == 1:
            return f"write it below {sections[0]}"
        for section, outer in reversed(list(above.items())):
            if key in _fields(outer):
                return f"write it next to {section}, not in it"
    return unknown_key_remedy(key, fields)


def _model_in(annotation: Any) -> type[BaseModel] | None:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    return next((inner for inner in map(_model_in, get_args(annotation)) if inner), None)


def _fields(model: type[BaseModel]) -> dict[str, FieldInfo]:
    """The fields of a model, by their names in a file."""
    return {field.alias or name: field for name, field in model.model_fields.items()}


def _example(where: tuple[int | str, ...], field: FieldInfo | None) -> str:
    if field is None or not field.examples or isinstance(where[-1], int):
        return ""
    return f"write {where[-1]}: {field.examples[0]}"


def _choice(value: object, field: FieldInfo | None) -> str:
    choices = [str(choice) for choice in _literals(field.annotation)] if field else []
    return instead(value, choices) if choices else ""


def _literals(annotation: Any) -> list[object]:
    """The values of a Literal, which may be optional."""
    parts = [each for each in get_args(annotation) if each is not type(None)]
    return [value for part in parts for value in (get_args(part) or (part,))]

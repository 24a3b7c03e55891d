"""What pods use, in the stack file: constant amounts, ranges, curves over a pod's age, and loads."""

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Annotated, Any, Self

from pydantic import AfterValidator, ConfigDict, Field, model_validator

from kumulus.model import durations
from kumulus.model import lifecycles as model
from kumulus.model.checks import mapping_problems, of_mapping, problem, unknown_key_problems
from kumulus.model.errors import Problem, Where, shown
from kumulus.model.fields import FORM, CheckedField, Section, checked, malformed, short_label
from kumulus.model.lifecycles import Amount, Usage
from kumulus.model.owner_kinds import OWNER_LABELS
from kumulus.model.quantity import NANO, QuantityError, parse
from kumulus.stackfile.pod_selection import PodSelector, order_problems

_PERCENT = re.compile(r"([0-9]+(?:\.[0-9]+)?)%")
_MOST_PERCENT = 100.0


def _amount_problems(where: Where, raw: object, absolute: str) -> list[Problem]:
    """Problems of an amount; `absolute` is an example of an absolute amount, empty if only shares are allowed."""
    remedy = f"write a share of the request such as 80%, or a quantity such as {absolute}" if absolute else "write 80%"
    if isinstance(raw, str) and (match := _PERCENT.fullmatch(raw)):
        too_much = float(match[1]) > _MOST_PERCENT
        return [problem(where, f"is {shown(raw)}, more than all", "write 100% or less")] if too_much else []
    if not absolute or isinstance(raw, bool) or not isinstance(raw, str | int | float):
        return [problem(where, f"is {shown(raw)}, which is not a share", remedy)]
    try:
        amount = parse(raw)
    except QuantityError as error:
        return [problem(where, f"{shown(raw)} {error}", remedy)]
    return [problem(where, f"is {shown(raw)}, which is negative", remedy)] if amount.nanos < 0 else []


def _amount(raw: str | int | float) -> Amount:
    if isinstance(raw, str) and (match := _PERCENT.fullmatch(raw)):
        return Amount(float(match[1]) / 100, relative=True)
    return Amount(parse(raw).nanos / NANO, relative=False)


def _usage_problems(where: Where, raw: object, absolute: str) -> list[Problem]:
    if not isinstance(raw, Mapping):
        return _amount_problems(where, raw, absolute)
    # What has no absolute amounts, such as how busy a GPU is, cannot be shared out.
    kinds = ("range", "curve", "load") if absolute else ("range", "curve")
    if wrong := mapping_problems(where, raw) or unknown_key_problems(where, raw, kinds):
        return wrong
    if len(raw) != 1:
        return [problem(where, f"is not one of {', '.join(kinds)}", "write {range: {from: 40%, to: 60%}}")]
    ((kind, inner),) = raw.items()
    problems_of = {"range": _range_problems, "curve": _curve_problems, "load": _load_problems}[kind]
    return problems_of((*where, kind), inner, absolute)


def _load_problems(where: Where, raw: object, absolute: str) -> list[Problem]:
    remedy = f"write a quantity such as {absolute}"
    if isinstance(raw, str) and _PERCENT.fullmatch(raw):
        return [problem(where, f"is {shown(raw)}, a share of one container's request, and a load is shared", remedy)]
    return [replace(each, remedy=remedy) for each in _amount_problems(where, raw, absolute)]


@of_mapping
def _range_problems(where: Where, raw: Mapping[str, Any], absolute: str) -> list[Problem]:
    wrong = unknown_key_problems(where, raw, ("from", "to"))
    for key in ("from", "to"):
        wrong += _amount_problems((*where, key), raw.get(key), absolute)
    if wrong:
        return wrong
    low, high = _amount(raw["from"]), _amount(raw["to"])
    if low.relative != high.relative:
        return [problem(where, "mixes a share and a quantity", "write both as shares or both as quantities")]
    swapped = f"write from: {raw['to']} and to: {raw['from']}"
    return [problem(where, "begins after its end", swapped)] if low.number > high.number else []


def _curve_problems(where: Where, raw: object, absolute: str) -> list[Problem]:
    if not isinstance(raw, list | tuple) or not raw:
        return [problem(where, f"is {shown(raw)}", "write a list such as [{at: 0s, value: 10%}, {at: 5m, value: 90%}]")]
    wrong: list[Problem] = []
    for index, point in enumerate(raw):
        here = (*where, index)
        if bad := mapping_problems(here, point) or unknown_key_problems(here, point, ("at", "value")):
            wrong += bad
            continue
        wrong += durations.duration_problems((*here, "at"), point.get("at"))
        wrong += _amount_problems((*here, "value"), point.get("value"), absolute)
    if wrong:
        return wrong
    ages = [durations.of(point["at"]) for point in raw]
    for index in range(1, len(ages)):
        if ages[index] <= ages[index - 1]:
            wrong.append(problem((*where, index, "at"), "is not after the point before", "write the points in order"))
    if len({_amount(point["value"]).relative for point in raw}) > 1:
        wrong.append(problem(where, "mixes shares and quantities", "write all values as shares or all as quantities"))
    return wrong


def _usage(raw: object) -> Usage:
    if not isinstance(raw, Mapping):
        assert isinstance(raw, str | int | float)
        return Usage(((0.0, _amount(raw)),))
    if "load" in raw:
        return Usage(((0.0, _amount(raw["load"])),), shared=True)
    if "range" in raw:
        return Usage(((0.0, _amount(raw["range"]["from"])),), _amount(raw["range"]["to"]))
    return Usage(tuple((durations.of(point["at"]), _amount(point["value"])) for point in raw["curve"]))


def _checked(absolute: str, form: str) -> CheckedField:
    """A validator for a usage; `absolute`: as for :func:`_amount_problems`."""
    return checked(lambda where, raw: _usage_problems(where, raw, absolute), _usage, form=form)


class PodUsageSpec(Section):
    """What the containers of the selected pods use while they run. Fields left out are 0."""

    model_config = ConfigDict(json_schema_extra={FORM: "usageRules"})

    name: Annotated[str, short_label(40)] = Field(examples=["training"])
    """A name for people, unique in the stack."""
    selector: PodSelector = Field(default_factory=PodSelector, examples=["{labels: {app: training}}"])
    """Which pods use this much; the first entry that selects a pod applies."""
    cpu: Annotated[Usage, _checked("500m", "usage")] | None = Field(default=None, examples=["80%"])
    """CPU that each container uses: a share of its request or a quantity, a range or a curve over the pod's age, or a
    part of a load that the ready pods share."""
    memory: Annotated[Usage, _checked("2Gi", "usage")] | None = Field(default=None, examples=["60%"])
    """Memory that each container uses, written as for `cpu`."""
    gpu: Annotated[Usage, _checked("", "usageShare")] | None = Field(default=None, examples=["90%"])
    """How busy each of a container's GPUs is: a share, or a range or a curve over the pod's age."""
    gpuMemory: Annotated[Usage, _checked("", "usageShare")] | None = Field(default=None, examples=["70%"])
    """How full the memory of each of a container's GPUs is, written as for `gpu`."""

    def usage(self) -> model.PodUsage:
        """The usage in the model's form."""
        return model.PodUsage(self.selector.selection(), self.cpu, self.memory, self.gpu, self.gpuMemory)

    @model_validator(mode="after")
    def _complete(self) -> Self:
        wrong: list[Problem] = []
        for index, kind in enumerate(self.selector.ownerKinds):
            if kind not in OWNER_LABELS:
                message = f"{shown(kind)} cannot be read from a pod's labels"
                remedy = f"select its pods by labels, or write one of {', '.join(OWNER_LABELS)}"
                wrong.append(problem(("selector", "ownerKinds", index), message, remedy))
        if not any((self.cpu, self.memory, self.gpu, self.gpuMemory)):
            wrong.append(problem((), "says nothing of what its pods use", "write cpu: 80%, or leave it out"))
        if wrong:
            raise malformed(wrong)
        return self


def _ordered(usages: list[PodUsageSpec]) -> list[PodUsageSpec]:
    if wrong := order_problems("podUsage", [(each.name, each.selector) for each in usages]):
        raise malformed(wrong)
    return usages


PodUsages = Annotated[list[PodUsageSpec], AfterValidator(_ordered)]

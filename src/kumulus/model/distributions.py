"""How long something takes: a fixed duration, or one drawn from a distribution."""

import math
import random
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from kumulus.model import durations
from kumulus.model.checks import mapping_problems, of_mapping, problem, unknown_key_problems, unknown_key_remedy
from kumulus.model.errors import Problem, Where, shown

Kind = Literal["fixed", "uniform", "normal", "lognormal", "exponential"]
_DURATION, _NUMBER = "duration", "number"
PARAMETERS: Mapping[str, Mapping[str, str]] = {
    "fixed": {"value": _DURATION},
    "uniform": {"from": _DURATION, "to": _DURATION},
    "normal": {"mean": _DURATION, "sigma": _DURATION},
    "lognormal": {"median": _DURATION, "sigma": _NUMBER},
    "exponential": {"mean": _DURATION},
}
"""The parameters of each kind, of which the first becomes `Distribution.first`; and whether each is a duration."""
_EXAMPLES = {"value": "5m", "from": "1m", "to": "5m", "mean": "5m", "sigma": "30s", "median": "5m"}
LARGEST_SIGMA = 10.0
"""Of a lognormal distribution."""
_REMEDY = "write a duration such as 5m, or a distribution such as {normal: {mean: 5m, sigma: 30s}}"


@dataclass(frozen=True)
class Distribution:
    """A distribution of durations; a negative draw counts as 0."""

    kind: Kind
    first: float
    """The first of its :data:`PARAMETERS`, in seconds."""
    second: float = 0.0
    """The second, in seconds; for lognormal a plain number, the standard deviation of the logarithm. 0 without one."""

    def __str__(self) -> str:
        """A short, readable description."""
        if self.kind == "fixed":
            return f"{self.first:g}s"
        parameters = zip(PARAMETERS[self.kind].items(), (self.first, self.second), strict=False)
        texts = (f"{name} {value:g}{'s' if unit == _DURATION else ''}" for (name, unit), value in parameters)
        return f"{self.kind} {', '.join(texts)}"


def distribution_problems(where: Where, raw: object) -> list[Problem]:
    """Problems of a duration, or of a mapping from one distribution's name to its parameters."""
    if not isinstance(raw, Mapping):
        if isinstance(raw, str | int | float):
            return durations.duration_problems(where, raw)
        return [problem(where, f"is {shown(raw)}", _REMEDY)]
    if wrong := mapping_problems(where, raw):
        return wrong
    unknown = [key for key in raw if key not in PARAMETERS]
    if unknown:
        return [problem((*where, key), "is not a distribution", unknown_key_remedy(key, PARAMETERS)) for key in unknown]
    if len(raw) != 1:
        what = f"names {len(raw)} distributions" if raw else "is empty"
        return [problem(where, what, f"write one of {', '.join(PARAMETERS)}")]
    ((kind, parameters),) = raw.items()
    return _parameter_problems((*where, kind), parameters, kind)


def distribution_of(raw: object) -> Distribution:
    """A distribution from a checked value."""
    if not isinstance(raw, Mapping):
        assert isinstance(raw, str | int | float)
        return Distribution("fixed", durations.of(raw))
    ((kind, parameters),) = raw.items()
    values = [
        durations.of(parameters[name]) if unit == _DURATION else float(parameters[name])
        for name, unit in PARAMETERS[kind].items()
    ]
    return Distribution(kind, *values)


@of_mapping
def _parameter_problems(where: Where, raw: Mapping[str, Any], kind: str) -> list[Problem]:
    wanted = PARAMETERS[kind]
    wrong = unknown_key_problems(where, raw, wanted)
    for name, unit in wanted.items():
        here = (*where, name)
        if raw.get(name) is None:
            example = "0.5" if unit == _NUMBER else _EXAMPLES[name]
            wrong.append(problem(here, "is missing", f"write {name}: {example}"))
        else:
            check = _sigma_problems if unit == _NUMBER else durations.duration_problems
            wrong += check(here, raw[name])
    if not wrong and kind == "uniform" and durations.of(raw["from"]) > durations.of(raw["to"]):
        wrong.append(problem(where, "begins after its end", f"write from: {raw['to']} and to: {raw['from']}"))
    return wrong


def _sigma_problems(where: Where, raw: object) -> list[Problem]:
    remedy = f"write a number from 0 to {LARGEST_SIGMA:g}, such as 0.5: the spread of the logarithm"
    if isinstance(raw, bool) or not isinstance(raw, int | float) or not math.isfinite(raw):
        return [problem(where, f"is {shown(raw)}, not a number", remedy)]
    if raw < 0:
        return [problem(where, f"is {shown(raw)}, which is negative", remedy)]
    return [problem(where, f"is {shown(raw)}, which is too large", remedy)] if raw > LARGEST_SIGMA else []


def drawn(distribution: Distribution, source: random.Random) -> float:
    """A random duration in seconds; a negative draw counts as 0."""
    first, second = distribution.first, distribution.second
    match distribution.kind:
        case "fixed":
            return first
        case "uniform":
            return source.uniform(first, second)
        case "normal":
            return max(0.0, source.gauss(first, second))
        case "lognormal":
            return source.lognormvariate(math.log(first), second) if first else 0.0
        case "exponential":
            return source.expovariate(1 / first) if first else 0.0

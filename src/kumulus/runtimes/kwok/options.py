"""The options of a cluster of the kwok runtime: its section of the stack file, and what the rest of that file asks."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field, ValidationError, field_validator

from kumulus.kwok.node_metrics import Kind
from kumulus.model.checks import problem
from kumulus.model.errors import Problem, shown
from kumulus.model.fields import Section, checked, found
from kumulus.model.fields.validation import problems_of
from kumulus.model.observability import Observability, observability_from, observability_problems
from kumulus.model.quantity import parse
from kumulus.runtimes.kwok.section import Kwok, Switches


class Kueue(Section):
    """What is asked of Kueue beside the cluster."""

    origin: str = ""
    workerLostTimeout: str = ""
    dispatcher: str = ""
    stepSize: int | None = None


class Options(Kwok):
    """Options of the resource Cluster."""

    # Texts, too, as programs in other languages pass them: "true" and "false".
    featureGates: Switches = Field(default_factory=dict)  # type: ignore[assignment]
    podUsage: Kind | None = None
    kueue: Kueue | None = None
    observability: (
        Annotated[Observability, checked(observability_problems, observability_from, form="observability")] | None
    ) = None
    # Made from the stack's file, which has been checked.
    autoscaler: dict[str, Any] | None = None
    gpuOperator: dict[str, Any] | None = None
    prices: list[dict[str, Any]] | None = None

    @field_validator("featureGates", "runtimeConfig")
    @classmethod
    def _switches(cls, value: dict[str, str]) -> dict[str, str]:
        # They become one argument of the API server, a=true,b=false.
        wrong = [
            problem((name,), f"is {shown(switch)}", "write a name and true or false")
            for name, switch in value.items()
            if not name or set(name) & set("=, \t\n") or switch not in ("true", "false")
        ]
        if wrong:
            raise found(wrong)
        return value

    @field_validator("etcdQuota")
    @classmethod
    def _quota(cls, value: str) -> str:
        if value and parse(value).nanos <= 0:
            raise found([problem((), f"is {shown(value)}", "write a quantity such as 8Gi")])
        return value


def options_problems(options: dict[str, object]) -> list[Problem]:
    """What is wrong with a cluster's options."""
    try:
        Options.model_validate(options)
    except ValidationError as error:
        return problems_of(error, Options)
    return []

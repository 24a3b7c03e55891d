"""An experiment's settings of the stack's autoscaler for its run, in place of the stack's own."""

# ruff: noqa: N815 - fields are called what the file calls them, so that a path in an error is a path in the code

from __future__ import annotations

from typing import Literal, Self

from pydantic import Field, model_validator

from kumulus.model.checks import problem
from kumulus.model.fields import DurationField, Section, found
from kumulus.stackfile.autoscaler import AutoscalerPool


class RunAutoscaler(Section):
    """Settings of the stack's autoscaler for this run; afterwards the stack's own apply again."""

    name: Literal["karpenter"] = Field(
        default="karpenter", description="The stack's autoscaler.", examples=["karpenter"]
    )
    nodePools: list[AutoscalerPool] = Field(
        default_factory=list,
        description="NodePools in place of the stack's; their `requirements` choose from the stack's machines.",
        examples=["[{name: default, spec: {disruption: {consolidationPolicy: WhenEmpty, consolidateAfter: 30s}}}]"],
    )
    registrationDelay: DurationField | None = Field(
        default=None,
        description="How long a machine takes until its node exists, as in a stack file; drawn by the seed.",
        examples=["{lognormal: {median: 40s, sigma: 0.3}}"],
    )

    @model_validator(mode="after")
    def _something(self) -> Self:
        if not self.nodePools and "nodePools" in self.model_fields_set:
            raise found([problem(("nodePools",), "is empty", "write at least one, or leave it out for the stack's")])
        if not self.nodePools and self.registrationDelay is None:
            raise found([problem((), "changes nothing", "write nodePools or registrationDelay, or leave it out")])
        names = [pool.name for pool in self.nodePools]
        for at, name in enumerate(names):
            if name in names[:at]:
                raise found([problem(("nodePools", at, "name"), f"{name} is there twice", "write another name")])
        return self

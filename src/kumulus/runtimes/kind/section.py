"""Settings of the kind runtime, as the stack file has them."""

# ruff: noqa: N815 - fields are called what the file calls them, so that a path in an error is a path in the code

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from kumulus.model import durations
from kumulus.model.fields import checked
from kumulus.runtimes.kind.options import DEFAULT_WAIT, Provider, image_problems
from kumulus.runtimes.section import RuntimeSection


class Kind(RuntimeSection):
    """Settings of the kind runtime."""

    nodeImage: Annotated[str, checked(image_problems, str, form="nodeImage")] | None = Field(
        default=None,
        description="The image of every node, instead of those that `kindConfig` and `kubernetesVersion` name.",
        examples=["kindest/node:v1.35.4"],
    )
    provider: Provider | None = Field(
        default=None,
        description=(
            "What runs the nodes' containers; by default what kind itself finds, or `KIND_EXPERIMENTAL_PROVIDER`."
        ),
        examples=["docker"],
    )
    wait: Annotated[str, checked(durations.duration_problems, str, form="duration")] = Field(
        default=DEFAULT_WAIT, description="How long to wait for the control plane.", examples=["3m"]
    )
    adopt: bool = Field(
        default=False,
        description=(
            "Take over an existing kind cluster of the stack's name; from then on it belongs to the stack, and "
            "`destroy` deletes it."
        ),
        examples=["true"],
    )

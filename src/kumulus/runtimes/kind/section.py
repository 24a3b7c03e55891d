"""Settings of the kind runtime, as the stack file has them."""

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
        default=None, examples=["kindest/node:v1.35.4"]
    )
    """The image of every node, instead of those that `kindConfig` and `kubernetesVersion` name."""
    provider: Provider | None = Field(default=None, examples=["docker"])
    """What runs the nodes' containers; by default what kind itself finds, or `KIND_EXPERIMENTAL_PROVIDER`."""
    wait: Annotated[str, checked(durations.duration_problems, str, form="duration")] = Field(
        default=DEFAULT_WAIT, examples=["3m"]
    )
    """How long to wait for the control plane."""
    adopt: bool = Field(default=False, examples=["true"])
    """Take over an existing kind cluster of the stack's name; from then on it belongs to the stack, and `destroy`
    deletes it."""

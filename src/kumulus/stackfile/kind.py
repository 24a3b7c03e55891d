"""Settings of the kind runtime, as the stack file has them."""

# ruff: noqa: N815 - fields are called what the file calls them, so that a path in an error is a path in the code

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import Field

from kumulus.model import durations
from kumulus.model.errors import Problem, Where
from kumulus.runtimes.kind.kind_config import config_problems
from kumulus.runtimes.kind.options import DEFAULT_WAIT, Provider, image_problems
from kumulus.stackfile.addons import mapping_of_yaml, mapping_problems
from kumulus.stackfile.fields import Section, checked


def _kind_config_problems(where: Where, raw: object) -> list[Problem]:
    if wrong := mapping_problems(where, raw):
        return wrong
    value = mapping_of_yaml(raw)
    assert isinstance(value, Mapping)
    return config_problems(where, value)


def _as_mapping(raw: object) -> dict[str, Any]:
    value = mapping_of_yaml(raw)
    assert isinstance(value, Mapping)
    return dict(value)


KindConfig = Annotated[dict[str, Any], checked(_kind_config_problems, _as_mapping, form="kindConfig")]
"""kind's own configuration, a mapping or a YAML text of one."""


class Kind(Section):
    """Settings of the kind runtime."""

    nodeImage: Annotated[str, checked(image_problems, str, form="nodeImage")] | None = Field(
        default=None,
        description="The image of every node, instead of those that `kindConfig` and `kubernetesVersion` name.",
        examples=["kindest/node:v1.35.4"],
    )
    provider: Provider | None = Field(
        default=None,
        description=(
            "Whose containers the nodes are; what kind itself finds, or `KIND_EXPERIMENTAL_PROVIDER`, unless given."
        ),
        examples=["docker"],
    )
    wait: Annotated[str, checked(durations.duration_problems, str, form="duration")] = Field(
        default=DEFAULT_WAIT, description="How long to wait for the control plane.", examples=["3m"]
    )
    adopt: bool = Field(
        default=False,
        description=(
            "Take a kind cluster of the stack's name over that is there already; it is the stack's from then on, and "
            "`destroy` deletes it."
        ),
        examples=["true"],
    )

    def options(self) -> dict[str, Any]:
        """What is set, under the names of the file, JSON-able: options of the resource Cluster."""
        return {key: value for key, value in self.model_dump(exclude_defaults=True).items() if value is not None}

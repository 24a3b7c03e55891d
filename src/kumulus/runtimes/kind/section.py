"""The options of a cluster of the kind runtime: its section of the stack file, and what the rest of that file asks."""

import re
from typing import Annotated, Any

from pydantic import Field

from kumulus.model import durations
from kumulus.model.checks import mapping_problems, matching
from kumulus.model.errors import Problem, Where
from kumulus.model.fields import checked
from kumulus.runtimes.kind import DEFAULT_WAIT, Provider
from kumulus.runtimes.kind.kind_config import config_problems
from kumulus.runtimes.section import RuntimeSection

IMAGE = re.compile(r"[a-z0-9][A-Za-z0-9._/:@-]*")
_image_problems = matching(IMAGE, "an image", "write its name, such as kindest/node:v1.35.4")


class KindSpec(RuntimeSection):
    """Settings of the kind runtime."""

    nodeImage: Annotated[str, checked(_image_problems, str, form="nodeImage")] | None = Field(
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


def _config_problems(where: Where, raw: Any) -> list[Problem]:
    return mapping_problems(where, raw) or config_problems(where, raw)


class KindOptions(KindSpec):
    """Options of the resource Cluster."""

    kindConfig: Annotated[dict[str, Any], checked(_config_problems, form="kindConfig")] | None = None

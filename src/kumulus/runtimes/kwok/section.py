"""Settings of the kwok runtime, as the stack file has them."""

# ruff: noqa: N815 - fields are called what the file calls them, so that a path in an error is a path in the code

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field

from kumulus.model.checks import of_mapping, problem
from kumulus.model.errors import Problem, Where, shown
from kumulus.model.fields import QuantityText, checked, whole
from kumulus.runtimes.section import RuntimeSection


@of_mapping
def _switches_problems(where: Where, raw: Mapping[str, Any]) -> list[Problem]:
    return [
        problem((*where, key), f"is {shown(value)}", 'write true, false or a text in quotes, such as "true"')
        for key, value in raw.items()
        if not isinstance(value, bool | str)
    ]


def _as_texts(raw: Mapping[str, bool | str]) -> dict[str, str]:
    return {key: value if isinstance(value, str) else str(value).lower() for key, value in raw.items()}


Switches = Annotated[dict[str, str], checked(_switches_problems, _as_texts, form="switches")]


_IMAGE = r"^[a-z0-9][a-z0-9._-]*(:[0-9]+)?(/[a-z0-9._-]+)*$"


class Kwok(RuntimeSection):
    """Settings of the kwok runtime."""

    apiServerPort: Annotated[int, whole(1024, 65535)] | None = Field(
        default=None,
        description="The API server's port on 127.0.0.1; by default a free one.",
        examples=["6443"],
    )
    featureGates: dict[str, bool] = Field(
        default_factory=dict, description="Kubernetes feature gates.", examples=["{DynamicResourceAllocation: true}"]
    )
    runtimeConfig: Switches = Field(
        default_factory=dict,
        description="API groups and versions that the API server serves, such as `api/all: true`.",
        examples=["{api/all: true}"],
    )
    workloads: Literal["native"] | None = Field(
        default=None,
        description=(
            "`native`: Kubernetes' own API for groups of pods, which the cluster's scheduler places all at once and in "
            "one domain of the topology; with its feature gates and API versions. Of Kubernetes 1.37 and later."
        ),
        examples=["native"],
    )
    etcdFsync: bool | None = Field(
        default=None,
        description=(
            "Whether etcd waits for the disk at every write. If not, writes are faster, but a crash of the machine "
            "(not of a process) can lose the cluster."
        ),
        examples=["false"],
    )
    etcdQuota: QuantityText = Field(
        default="", description="How large etcd's data may grow; by default KWOK's own limit.", examples=["8Gi"]
    )
    heartbeatFactor: Annotated[int, whole(1, 1000)] | None = Field(
        default=None,
        description=(
            "Multiplies the nodes' heartbeat intervals; by default 5, and more if a cluster is created for more than "
            "1,000 nodes (docs/scale.md)."
        ),
        examples=["5"],
    )
    createThrough: Literal["storage", "api"] | None = Field(
        default=None,
        description=(
            "How new nodes are created: written to the API server's storage, which is several times faster, or posted "
            "one by one; by default `storage`, wherever that gives the same nodes."
        ),
        examples=["api"],
    )
    processes: dict[Annotated[str, Field(pattern=_IMAGE)], Annotated[str, Field(min_length=1)]] = Field(
        default_factory=dict,
        description=(
            "Pods that really run, as processes of this machine: an image, without its tag, and the program that it "
            "stands for: a path, relative to the project's directory, or a tool that Kumulus has (docs/pods.md)."
        ),
        examples=["{registry.k8s.io/kueue/kueue: kueue}", "{example.com/team/operator: ./bin/operator}"],
    )

    def options(self, base: Path = Path()) -> dict[str, Any]:
        """See :meth:`RuntimeSection.options`; programs with a path have their whole one."""
        found = super().options(base)
        if self.processes:
            found["processes"] = {
                image: str(Path(base, os.path.expanduser(program)).absolute()) if "/" in program else program
                for image, program in self.processes.items()
            }
        return found

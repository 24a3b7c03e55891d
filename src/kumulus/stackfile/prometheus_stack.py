"""How the chart kube-prometheus-stack is installed for `observability` with the runtimes kind and existing."""

# ruff: noqa: N815 - fields are called what the file calls them, so that a path in an error is a path in the code

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from kumulus.model.fields import Section, short_label, text, whole
from kumulus.stackfile.addons import DAY, MappingOrYaml, RepositoryOpts, not_empty_mistake, repository_mistake

NAME = "kube-prometheus-stack"
"""The release's name, with which the names of its parts begin."""


class PrometheusStack(Section):
    """How kube-prometheus-stack is installed in a cluster whose nodes run containers."""

    repoURL: Annotated[str, text(repository_mistake, form="repository")] = Field(
        default="https://prometheus-community.github.io/helm-charts",
        description="The chart repository.",
        examples=["https://charts.example.com"],
    )
    chart: Annotated[str, text(not_empty_mistake, form="name")] = Field(
        default="kube-prometheus-stack",
        description=(
            "The chart's name in the repository, an `oci://` reference, or a path, if no repository can be reached."
        ),
        examples=["./charts/kube-prometheus-stack"],
    )
    version: str = Field(
        default="75.16.1", description="The chart's version in a repository or registry.", examples=['"75.16.1"']
    )
    namespace: Annotated[str, short_label(63)] = Field(
        default="monitoring", description="The namespace it runs in.", examples=["monitoring"]
    )
    valuesObject: MappingOrYaml = Field(
        default_factory=dict,
        description="The chart's values, as a mapping or YAML text; they override those that `observability` sets.",
        examples=["{grafana: {enabled: false}}"],
    )
    # Long enough to pull eight images on a machine that may have none of them.
    timeout: Annotated[int, whole(1, DAY)] = Field(
        default=600, description="Seconds to wait until all of it is ready.", examples=["600"]
    )
    repositoryOpts: RepositoryOpts | None = Field(
        default=None,
        description="Credentials of a private repository.",
        examples=['{username: reader, password: "…"}'],
    )

"""How the chart kube-prometheus-stack is installed for `observability` with the runtimes kind and existing."""

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
        default="https://prometheus-community.github.io/helm-charts", examples=["https://charts.example.com"]
    )
    """The chart repository."""
    chart: Annotated[str, text(not_empty_mistake, form="name")] = Field(
        default="kube-prometheus-stack", examples=["./charts/kube-prometheus-stack"]
    )
    """The chart's name in the repository, an `oci://` reference, or a path, if no repository can be reached."""
    version: str = Field(default="75.16.1", examples=['"75.16.1"'])
    """The chart's version in a repository or registry."""
    namespace: Annotated[str, short_label(63)] = Field(default="monitoring", examples=["monitoring"])
    """The namespace it runs in."""
    valuesObject: MappingOrYaml = Field(default_factory=dict, examples=["{grafana: {enabled: false}}"])
    """The chart's values, as a mapping or YAML text; they override those that `observability` sets."""
    # Long enough to pull eight images on a machine that may have none of them.
    timeout: Annotated[int, whole(1, DAY)] = Field(default=600, examples=["600"])
    """Seconds to wait until all of it is ready."""
    repositoryOpts: RepositoryOpts | None = Field(default=None, examples=['{username: reader, password: "…"}'])
    """Credentials of a private repository."""

"""How the chart kube-prometheus-stack is installed, as the runtimes kind and existing have it for `observability`."""

# ruff: noqa: N815 - fields are called what the file calls them, so that a path in an error is a path in the code

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field

from spec.addons import DAY, MappingOrYaml, RepositoryOpts, chart_kind, not_empty_fault, repository_fault
from spec.fields import Section, short_label, text, whole

NAME = "kube-prometheus-stack"
"""The release's, by which its parts' names begin."""


class PrometheusStack(Section):
    """How kube-prometheus-stack is installed in a cluster whose nodes run containers.

    Args:
        repoURL: the chart repository.
        chart: its name there, an `oci://` reference, or a path, for where no repository is reached.
        version: of the chart in a repository or registry.
        namespace: where it runs.
        valuesObject: the chart's values, which win over those that `observability` makes.
        timeout: seconds to wait until all of it is ready.
        repositoryOpts: for a private repository.
    """

    repoURL: Annotated[str, text(repository_fault)] = Field(
        default="https://prometheus-community.github.io/helm-charts", examples=["https://charts.example.com"]
    )
    chart: Annotated[str, text(not_empty_fault)] = Field(
        default="kube-prometheus-stack", examples=["./charts/kube-prometheus-stack"]
    )
    version: str = Field(default="75.16.1", examples=['"75.16.1"'])
    namespace: Annotated[str, short_label(63)] = Field(default="monitoring", examples=["monitoring"])
    valuesObject: MappingOrYaml = Field(default_factory=dict, examples=["{grafana: {enabled: false}}"])
    # Eight images, on a machine that may have none of them.
    timeout: Annotated[int, whole(1, DAY)] = Field(default=600, examples=["600"])
    repositoryOpts: RepositoryOpts | None = Field(default=None, examples=['{username: reader, password: "…"}'])

    def addon(self, values: dict[str, Any]) -> dict[str, Any]:
        """The release, as an add-on has it.

        Args:
            values: the chart's values, on which `valuesObject` is laid.
        """
        kind = chart_kind(self.chart)
        return {
            "name": NAME,
            "namespace": self.namespace,
            "chart": self.chart,
            "repoURL": self.repoURL if kind == "repository" else None,
            "version": None if kind == "path" else self.version,
            "valuesObject": laid_on(values, self.valuesObject),
            "timeout": self.timeout,
            # ReleaseReady waits, and tells what for.
            "skipAwait": True,
            "repositoryOpts": self.repositoryOpts,
        }


def laid_on(values: dict[str, Any], others: dict[str, Any]) -> dict[str, Any]:
    """Values with others on top, as Helm lays several files of them: mappings key by key, all else as a whole."""
    result = dict(values)
    for key, other in others.items():
        below = result.get(key)
        result[key] = laid_on(below, other) if isinstance(below, dict) and isinstance(other, dict) else other
    return result

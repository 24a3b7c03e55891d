"""A stack's section `prometheusStack`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, ClassVar

from pydantic import Field

from kumulus.model.checks import problem
from kumulus.model.errors import Problem
from kumulus.model.fields import short_label, text, whole
from kumulus.stackfile.addons import (
    DAY,
    MappingOrYaml,
    RepositoryOpts,
    chart_kind,
    missing_chart,
    not_empty_mistake,
    repository_mistake,
)
from kumulus.stackfile.plain import runtime_of
from kumulus.stackfile.rules import with_charts
from kumulus.stackfile.section import ClusterSection

if TYPE_CHECKING:
    from kumulus.stackfile.load import LoadedStack

NAME = "prometheusStack"
"""Its name in the file."""


class PrometheusStackSpec(ClusterSection):
    """How kube-prometheus-stack is installed in a cluster whose nodes run containers."""

    about: ClassVar[str] = "Settings of the chart that `observability` installs with the runtimes kind and existing."
    example: ClassVar[str] = "{chart: ./charts/kube-prometheus-stack}"
    after: ClassVar[str] = "kwokCharts"

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

    @classmethod
    def rules(cls, raw: Mapping[str, object]) -> Iterator[Problem]:
        """See :meth:`ClusterSection.rules`: it is for what `observability` installs in a cluster."""
        if raw.get(NAME) is None or (runtime := runtime_of(raw)) is None:
            return
        if runtime.local:
            message = f"has no effect with the runtime {runtime.name}, where Prometheus runs alongside the cluster"
            yield problem((NAME,), message, f"leave it out, or write runtime: {with_charts()}")
        elif raw.get("observability") is None:
            yield problem((NAME,), "has no effect without observability", "write observability: {}")

    def handed(self, loaded: LoadedStack, base: Path) -> tuple[None, list[Problem]]:
        """See :meth:`ClusterSection.handed`: a chart that is a path has to be there."""
        wrong = missing_chart(base / self.chart) if chart_kind(self.chart) == "path" else None
        return None, [Problem(f"{NAME}.chart", *wrong)] if wrong else []

"""A stack's sections `observability` and `prometheusStack`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import MISSING, fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from pydantic import Field

from kumulus.extras.watch.observability import (
    HIGHEST_PORT,
    LOWEST_PORT,
    Observability,
    observability_from,
    observability_problems,
    room_problems,
)
from kumulus.model.checks import problem
from kumulus.model.errors import Problem
from kumulus.model.fields import FORM, checked, short_label, whole
from kumulus.stackfile.addons import (
    DAY,
    ChartName,
    ChartRepository,
    MappingOrYaml,
    RepositoryOpts,
    chart_kind,
    missing_chart,
)
from kumulus.stackfile.plain import count, items, runtime_of
from kumulus.stackfile.rules import container_runtimes
from kumulus.stackfile.section import ClusterSection

if TYPE_CHECKING:
    import pulumi

    from kumulus.stackfile.load import LoadedCluster
    from kumulus.stackfile.model import ClusterSpec

NAME = "prometheusStack"
"""Its name in the file."""


class Measured(ClusterSection):
    """What is measured (docs/observability.md): `{}` for all defaults; by default nothing."""

    after: ClassVar[str] = "podUsage"
    measures: ClassVar[bool] = True

    asked: Observability

    @classmethod
    def field(cls) -> Any:
        """See :meth:`ClusterSection.field`."""
        made = checked(observability_problems, lambda raw: cls(asked=observability_from(raw)), form="observability")
        return Annotated[cls, made]

    @classmethod
    def of(cls, spec: ClusterSpec) -> Observability | None:
        """What a cluster's file asks for."""
        found = spec.sections_of_extras().get("observability")
        return found.asked if isinstance(found, cls) else None

    @classmethod
    def forms(cls) -> Mapping[str, dict[str, Any]]:
        """See :meth:`ClusterSection.forms`."""
        # Imported here, as it knows all sections.
        from kumulus.stackfile.schema import patterns
        from kumulus.stackfile.schema.document import closed

        duration, quantity = {FORM: "duration"}, {FORM: "quantity"}
        kinds: Mapping[str, dict[str, Any]] = {
            "prometheusPort": {"type": "integer", "minimum": LOWEST_PORT, "maximum": HIGHEST_PORT},
            "retention": duration,
            "retentionSize": quantity,
            "memory": quantity,
            "scrapeInterval": duration,
            "nodeScrapeInterval": duration,
            "nodeLabels": {"type": "array", "items": {"type": "string", "pattern": patterns.LABEL_KEY}},
        }
        properties = {}
        for each in fields(Observability):
            default = {"default": each.default} if each.default not in (None, (), MISSING) else {}
            properties[each.name] = {**kinds[each.name], **each.metadata, **default, "$nullable": True}
        about = "What is measured, how often, and with how much memory and disk."
        return {"observability": {**closed(properties), "description": about}}

    @classmethod
    def rules(cls, raw: Mapping[str, object]) -> Iterator[Problem]:
        """See :meth:`ClusterSection.rules`: its port, and memory for the fleet's metrics."""
        where, asked, kwok = ("observability", "prometheusPort"), raw.get("observability"), raw.get("kwok")
        if not isinstance(asked, Mapping):
            return
        port, runtime = asked.get("prometheusPort"), runtime_of(raw)
        if port and runtime and not runtime.local:
            message = f"has no effect with the runtime {runtime.name}, where Prometheus runs in the cluster"
            yield problem(where, message, "leave it out")
        if port is not None and isinstance(kwok, Mapping) and port == kwok.get("apiServerPort"):
            yield problem(where, "is also kwok.apiServerPort", "write another port")
        groups = [group for _, group in items(raw, "nodeGroups")]
        nodes = sum(count(each.get("replicas")) for group in groups for _, each in items(group, "placement"))
        yield from room_problems(("observability",), asked, nodes)

    def options(self) -> dict[str, Any]:
        """See :meth:`Observability.options`."""
        return self.asked.options()

    def runtime_option(self, loaded: LoadedCluster, base: Path) -> tuple[dict[str, Any], list[Problem]]:
        """See :meth:`ClusterSection.runtime_option`: all settings."""
        return self.options(), []

    def ports(self) -> Mapping[str, int]:
        """See :meth:`ClusterSection.ports`: Prometheus', if it is chosen."""
        return {"prometheusPort": port} if (port := self.asked.prometheusPort) else {}

    def parts(self, loaded: LoadedCluster) -> Sequence[str]:
        """See :meth:`ClusterSection.parts`: in other clusters a chart has the programs."""
        return ("observability",) if loaded.spec.runtime_descriptor.local else ()

    def declare(self, resource_name: str, cluster: Any, opts: pulumi.ResourceOptions) -> Sequence[pulumi.Resource]:
        """See :meth:`ClusterSection.declare`: the chart of a Prometheus, unless local processes do it."""
        if cluster.loaded.spec.runtime_descriptor.local:
            return ()
        # Imported here, as the provider's SDK is.
        from kumulus.extras.watch.prometheus_stack import of_stack

        return (of_stack(resource_name, self.asked, cluster),)


class PrometheusStackSpec(ClusterSection):
    """How kube-prometheus-stack is installed in a cluster whose nodes run containers."""

    about: ClassVar[str] = "Settings of the chart that `observability` installs with the runtimes kind and existing."
    example: ClassVar[str] = "{chart: ./charts/kube-prometheus-stack}"
    after: ClassVar[str] = "kwokCharts"

    repoURL: ChartRepository = Field(
        default="https://prometheus-community.github.io/helm-charts", examples=["https://charts.example.com"]
    )
    """The chart repository."""
    chart: ChartName = Field(default="kube-prometheus-stack", examples=["./charts/kube-prometheus-stack"])
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
            yield problem((NAME,), message, f"leave it out, or write runtime: {container_runtimes()}")
        elif raw.get("observability") is None:
            yield problem((NAME,), "has no effect without observability", "write observability: {}")

    def runtime_option(self, loaded: LoadedCluster, base: Path) -> tuple[None, list[Problem]]:
        """See :meth:`ClusterSection.runtime_option`: a chart that is a path has to be there."""
        wrong = missing_chart(base / self.chart) if chart_kind(self.chart) == "path" else None
        return None, [Problem(f"{NAME}.chart", *wrong)] if wrong else []

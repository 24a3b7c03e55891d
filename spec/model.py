"""The stack file's `kumulus:cluster` as a model, and the one way from a plain mapping to it."""

# ruff: noqa: N815 - fields are called what the file calls them, so that a path in an error is a path in the code

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Any, Literal, Self

from pydantic import Field, ModelWrapValidatorHandler, ValidationError, model_validator

from spec.addons import Addon
from spec.checks import mapping_problems, problem
from spec.errors import Problem, Where, shown
from spec.existing import Existing
from spec.faults import Fault
from spec.fields import QuantityText, Section, checked, found, short_label, whole
from spec.groups import NodeGroup
from spec.host_commands import HostCommand, Image
from spec.kind import Kind, KindConfig
from spec.kwok_charts import KwokCharts
from spec.lifecycles import PodLifecycles
from spec.observability import Observability, observability_from, observability_problems
from spec.prometheus_stack import PrometheusStack
from spec.rules import rule_problems
from spec.shapes import with_shapes
from spec.tenants import Tenant
from spec.usage import PodUsages
from spec.validation import in_file_order, problems_of, validated

Runtime = Literal["kwok", "kind", "existing"]
RUNTIMES: tuple[Runtime, ...] = ("kwok", "kind", "existing")
CLUSTER_NAME_LENGTH = 40
_VERSION = re.compile(r"v?([0-9]+\.[0-9]+\.[0-9]+(?:-[0-9A-Za-z.-]+)?(?:\+[0-9A-Za-z.-]+)?)")


def _version_problems(where: Where, raw: object) -> list[Problem]:
    if isinstance(raw, str) and _VERSION.fullmatch(raw):
        return []
    return [problem(where, f"is {shown(raw)}, not a whole Kubernetes version", 'write all of it in quotes: "1.35.4"')]


def _switches_problems(where: Where, raw: object) -> list[Problem]:
    if wrong := mapping_problems(where, raw):
        return wrong
    assert isinstance(raw, Mapping)
    return [
        problem((*where, key), f"is {shown(value)}", 'write true, false or a text in quotes, such as "true"')
        for key, value in raw.items()
        if not isinstance(value, bool | str)
    ]


def _as_texts(raw: Mapping[str, bool | str]) -> dict[str, str]:
    return {key: value if isinstance(value, str) else str(value).lower() for key, value in raw.items()}


Version = Annotated[str, checked(_version_problems, lambda raw: f"v{raw.removeprefix('v')}")]
Measured = Annotated[Observability, checked(observability_problems, observability_from)]
Switches = Annotated[dict[str, str], checked(_switches_problems, _as_texts)]


class Kwok(Section):
    """Settings of the kwok runtime.

    Args:
        apiServerPort: a free port is taken when None.
        featureGates: Kubernetes feature gates.
        runtimeConfig: API groups and versions, as `api/all: true`; kept as texts.
        etcdFsync: whether etcd waits for the disk with every write; without, an end of the machine (not of a process)
            can lose the cluster, and writes are faster.
        etcdQuota: how large etcd's data may grow, a quantity; empty means KWOK's default.
        heartbeatFactor: multiplies the nodes' heartbeat intervals; None means KWOK's default.
    """

    apiServerPort: Annotated[int, whole(1024, 65535)] | None = Field(default=None, examples=["6443"])
    featureGates: dict[str, bool] = Field(default_factory=dict, examples=["{DynamicResourceAllocation: true}"])
    runtimeConfig: Switches = Field(default_factory=dict, examples=["{api/all: true}"])
    etcdFsync: bool | None = Field(default=None, examples=["false"])
    etcdQuota: QuantityText = Field(default="", examples=["8Gi"])
    heartbeatFactor: Annotated[int, whole(1, 1000)] | None = Field(default=None, examples=["5"])

    def options(self) -> dict[str, Any]:
        """What is set, under the names of the file, JSON-able: the options of the resource Cluster."""
        return {key: value for key, value in self.model_dump().items() if value not in (None, "", {})}


class ClusterSpec(Section):
    """An emulated cluster, as its stack file describes it. Empty, it is a control plane without nodes.

    Args:
        name: the cluster's name; empty means one made from the stack's.
        runtime: where the control plane runs.
        kubernetesVersion: with a leading v; None means the runtime's own.
        kindConfig: kind's own configuration, from a mapping or a YAML text; only with the runtime kind.
        clusterAddons: Helm releases.
        hostCommands: commands of the user's own on this machine.
        loadImages: images that are loaded into the nodes; only with the runtime kind.
        nodeGroups: emulated nodes.
        faults: what goes wrong, on which nodes.
        podLifecycles: how pods live; for each pod the first that selects it.
        podUsage: what pods use while they run; likewise.
        observability: what is measured; None means nothing.
        tenants: who shares the cluster, each in a namespace.
        kwok: settings of the kwok runtime.
        kind: settings of the kind runtime.
        existing: which cluster the existing runtime uses.
        kwokCharts: how KWOK is installed where nodes run containers: with the runtimes kind and existing.
        prometheusStack: how the chart that is `observability` there is installed.
    """

    name: Annotated[str, short_label(CLUSTER_NAME_LENGTH)] = Field(default="", examples=["my-cluster"])
    runtime: Runtime = Field(default="kwok", examples=["kwok"])
    kubernetesVersion: Version | None = Field(default=None, examples=['"1.35.4"'])
    kindConfig: KindConfig | None = Field(
        default=None, examples=["{kind: Cluster, apiVersion: kind.x-k8s.io/v1alpha4}"]
    )
    clusterAddons: list[Addon] = Field(default_factory=list, examples=["[{name: prometheus, chart: …, repoURL: …}]"])
    hostCommands: list[HostCommand] = Field(
        default_factory=list, examples=["[{name: build, create: docker build -t my-app:dev .}]"]
    )
    loadImages: list[Image] = Field(default_factory=list, examples=["[my-app:dev]"])
    nodeGroups: list[NodeGroup] = Field(
        default_factory=list, examples=["[{name: a2-ultragpu-8g, placement: …, nodeTemplate: …}]"]
    )
    faults: list[Fault] = Field(
        default_factory=list, examples=["[{name: xid79, kind: gpu-fell-off-bus, target: {count: 1}}]"]
    )
    podLifecycles: PodLifecycles = Field(
        default_factory=list, examples=["[{name: training, selector: {labels: {app: training}}, run: 10m}]"]
    )
    podUsage: PodUsages = Field(
        default_factory=list, examples=["[{name: training, selector: {labels: {app: training}}, cpu: 80%}]"]
    )
    observability: Measured | None = Field(default=None, examples=["{}"])
    tenants: list[Tenant] = Field(
        default_factory=list, examples=['[{name: research, quota: {requests.nvidia.com/gpu: "16"}}]']
    )
    kwok: Kwok = Field(default_factory=Kwok, examples=["{heartbeatFactor: 5}"])
    kind: Kind = Field(default_factory=Kind, examples=["{nodeImage: kindest/node:v1.35.4}"])
    existing: Existing = Field(default_factory=Existing, examples=["{context: my-cluster}"])
    kwokCharts: KwokCharts = Field(default_factory=KwokCharts, examples=["{shards: 4}"])
    prometheusStack: PrometheusStack = Field(
        default_factory=PrometheusStack, examples=["{chart: ./charts/kube-prometheus-stack}"]
    )

    @model_validator(mode="wrap")
    @classmethod
    def _everything_at_once(cls, data: Any, handler: ModelWrapValidatorHandler[Self]) -> Self:
        data = with_shapes(data)
        rules = rule_problems(data)
        try:
            spec = handler(data)
        except ValidationError as error:
            raise found(in_file_order([*problems_of(error, cls), *rules])) from None
        if rules:
            raise found(in_file_order(rules))
        return spec

    @classmethod
    def checked(cls, raw: object, source: str = "") -> ClusterSpec:
        """A cluster from a plain mapping, as JSON or YAML gives it.

        Args:
            raw: the mapping; None is an empty one.
            source: the file or stack it is from, for the error's first line.

        Raises:
            SpecError: with every problem there is.
        """
        return validated(cls, {} if raw is None else raw, source)

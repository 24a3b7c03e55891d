"""The model of the stack file's `kumulus:cluster`, with extras' sections, and the only way to make one of a mapping."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self

from pydantic import Field, ModelWrapValidatorHandler, create_model, model_validator

from kumulus.model.checks import problem
from kumulus.model.errors import Problem, Where, shown
from kumulus.model.fields import Section, checked, short_label
from kumulus.model.fields.validation import validated, with_rules
from kumulus.model.names import CLUSTER_NAME_LENGTH
from kumulus.runtimes import registry
from kumulus.runtimes.descriptor import Descriptor, RuntimeOptions
from kumulus.runtimes.kind.kind_config import config_problems
from kumulus.stackfile.addons import Addon, mapping_of_yaml, yaml_mapping_problems
from kumulus.stackfile.cluster_charts import KwokChartsSpec
from kumulus.stackfile.faults import FaultSpec
from kumulus.stackfile.groups import NodeGroup
from kumulus.stackfile.host_commands import HostCommand, Image
from kumulus.stackfile.lifecycles import PodLifecycles
from kumulus.stackfile.rules import rule_problems
from kumulus.stackfile.section import ClusterSection, of_extras
from kumulus.stackfile.shapes import with_shapes
from kumulus.stackfile.tenants import TenantSpec
from kumulus.stackfile.usage import PodUsages


def _kind_config_problems(where: Where, raw: object) -> list[Problem]:
    return yaml_mapping_problems(where, raw) or config_problems(where, mapping_of_yaml(raw))


KindConfig = Annotated[dict[str, Any], checked(_kind_config_problems, mapping_of_yaml, form="kindConfig")]
"""kind's own configuration, a mapping or a YAML text of one."""


if TYPE_CHECKING:
    from kumulus.runtimes.existing.section import Existing
    from kumulus.runtimes.kind.section import KindSpec
    from kumulus.runtimes.kwok.section import Kwok
    from kumulus.runtimes.section import RuntimeSection

    Runtime = str
else:
    # A type checker would need the literal names here, which only the registry has.
    Runtime = Literal[registry.NAMES]
VERSION = re.compile(r"v?([0-9]+\.[0-9]+\.[0-9]+(?:-[0-9A-Za-z.-]+)?(?:\+[0-9A-Za-z.-]+)?)")


def _version_problems(where: Where, raw: object) -> list[Problem]:
    if isinstance(raw, str) and VERSION.fullmatch(raw):
        return []
    # Imported only for a mistake: whoever starts the plugin does not wait for it.
    from kumulus.toolchain import pins

    known = pins.load()
    offered = (known.default_kubernetes, *known.other_kubernetes)
    minor = str(raw).strip().removeprefix("v")
    near = next((each for each in offered if each.startswith(f"{minor}.")), known.default_kubernetes)
    message = f"is {shown(raw)}, not a whole Kubernetes version"
    return [problem(where, message, f'write all of it in quotes: "{near}"')]


Version = Annotated[str, checked(_version_problems, lambda raw: f"v{raw.removeprefix('v')}", form="kubernetesVersion")]


class _Fleet(Section):
    """The sections that the core has, but for those with a runtime's name, and `kwokCharts`."""

    name: Annotated[str, short_label(CLUSTER_NAME_LENGTH)] = Field(default="", examples=["my-cluster"])
    """The cluster's name; by default derived from the stack's."""
    runtime: Runtime = Field(default=registry.DEFAULT, examples=["kwok"])
    """Where the control plane runs: as processes on this machine, in Docker by kind, or in an existing cluster."""
    kubernetesVersion: Version | None = Field(default=None, examples=['"1.35.4"'])
    """The full version of Kubernetes; by default the runtime's own."""
    kindConfig: KindConfig | None = Field(
        default=None, examples=["{kind: Cluster, apiVersion: kind.x-k8s.io/v1alpha4}"]
    )
    """kind's own configuration, as a mapping or YAML text; only with the runtime kind."""
    clusterAddons: list[Addon] = Field(default_factory=list, examples=["[{name: prometheus, chart: …, repoURL: …}]"])
    """Helm releases to install (docs/stacks.md)."""
    hostCommands: list[HostCommand] = Field(
        default_factory=list, examples=["[{name: build, create: docker build -t my-app:dev .}]"]
    )
    """Commands to run on this machine."""
    loadImages: list[Image] = Field(default_factory=list, examples=["[my-app:dev]"])
    """Images that are loaded into the nodes: names that Docker knows, or paths of archives; only with the runtime
    kind."""
    nodeGroups: list[NodeGroup] = Field(
        default_factory=list, examples=["[{name: a2-ultragpu-8g, placement: …, nodeTemplate: …}]"]
    )
    """The emulated nodes (docs/fleets.md)."""
    faults: list[FaultSpec] = Field(
        default_factory=list, examples=["[{name: xid79, kind: gpu-fell-off-bus, target: {count: 1}}]"]
    )
    """What goes wrong, and on which nodes, while the entry is in the file (docs/faults.md)."""
    podLifecycles: PodLifecycles = Field(
        default_factory=list, examples=["[{name: training, selector: {labels: {app: training}}, run: 10m}]"]
    )
    """How long pods run and how they end; the first entry that selects a pod applies (docs/pods.md)."""
    podUsage: PodUsages = Field(
        default_factory=list, examples=["[{name: training, selector: {labels: {app: training}}, cpu: 80%}]"]
    )
    """What pods use while they run; the first entry that selects a pod applies (docs/pods.md)."""
    tenants: list[TenantSpec] = Field(
        default_factory=list, examples=['[{name: research, quota: {requests.nvidia.com/gpu: "16"}}]']
    )
    """Who shares the cluster, each in a namespace of its own (docs/teams.md)."""


_CORE = (*_Fleet.model_fields, *registry.NAMES, "kwokCharts")
SECTIONS = of_extras(_CORE)
"""The sections that extras bring, by name."""


def _in_order() -> list[str]:
    """The names of all sections: the core's, and each extra's behind the one that it names, or at the end."""
    names = list(_CORE)
    for name, section in SECTIONS.items():
        place = names.index(section.after) + 1 if section.after in names else len(names)
        names.insert(place, name)
    return names


def _of_extra(section: type[ClusterSection]) -> tuple[Any, Any]:
    """The type and the field of an extra's section."""
    about = section.about or section.__doc__
    return section.field() | None, Field(default=None, description=about, examples=[section.example])


def _of_runtime(options: RuntimeOptions) -> tuple[Any, Any]:
    """The type and the field of a runtime's section."""
    model = options.load()
    return model, Field(default_factory=model, description=options.about, examples=[options.example])


if TYPE_CHECKING:

    class _WithSections(_Fleet):
        kwok: Kwok = Kwok()
        kind: KindSpec = KindSpec()
        existing: Existing = Existing()

else:
    # pydantic looks at the last base first: the order of the fields is that of this one, which says nothing else.
    _Ordered = create_model("_Ordered", __base__=Section, **dict.fromkeys(_in_order(), (Any, None)))
    # Each runtime has a section with its name, and extras bring sections; a type checker needs the fields above.
    _WithSections = create_model(
        "_WithSections",
        __base__=(_Fleet, _Ordered),
        __module__=__name__,
        **{name: _of_extra(section) for name, section in SECTIONS.items()},
        **{each.name: _of_runtime(each.options) for each in registry.every()},
    )


class ClusterSpec(_WithSections):
    """An emulated cluster, as its stack file describes it. Empty, it is a control plane without nodes."""

    kwokCharts: KwokChartsSpec = Field(default_factory=KwokChartsSpec, examples=["{shards: 4}"])
    """How KWOK is installed with the runtimes kind and existing, whose nodes run containers."""

    @property
    def runtime_descriptor(self) -> Descriptor:
        """The descriptor of its runtime."""
        return registry.get(self.runtime)

    def sections_of_extras(self) -> dict[str, ClusterSection]:
        """The sections that extras bring and that the file has, by name."""
        return {name: found for name in SECTIONS if (found := getattr(self, name)) is not None}

    @property
    def measured(self) -> bool:
        """Whether a section of an extra reads what nodes and pods use."""
        return any(each.measures for each in self.sections_of_extras().values())

    def runtime_options(self, base: Path) -> dict[str, Any]:
        """The file's settings of its runtime, JSON-able: options of the resource Cluster."""
        runtime = self.runtime_descriptor
        section: RuntimeSection = getattr(self, runtime.name)
        further = {key: getattr(self, key) for key in runtime.option_sections}
        return {**section.options(base), **{key: value for key, value in further.items() if value}}

    @model_validator(mode="wrap")
    @classmethod
    def _everything_at_once(cls, data: Any, handler: ModelWrapValidatorHandler[Self]) -> Self:
        data = with_shapes(data)
        return with_rules(cls, data, handler, rule_problems(data, SECTIONS.values()))

    @classmethod
    def checked(cls, raw: object, source: str = "") -> ClusterSpec:
        """A cluster from a plain mapping, as parsed from JSON or YAML.

        Args:
            raw: the mapping; None is an empty one.
            source: the file or stack it is from, for the error's first line.
        """
        return validated(cls, {} if raw is None else raw, source)

"""A stack's autoscaler: its kind, its machines, and its pools."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

from pydantic import ConfigDict, Field

from kumulus.extras.scaling import OURS, Name
from kumulus.extras.scaling.rules import CLUSTER_AUTOSCALERS, KARPENTERS, rules
from kumulus.model.checks import problem
from kumulus.model.errors import Problem, Where, shown
from kumulus.model.fields import FORM, DurationField, Section, checked, short_label
from kumulus.stackfile.faults import CapacityType
from kumulus.stackfile.section import ClusterSection
from kumulus.stackfile.shapes import instance_type_problems
from kumulus.stackfile.yamltext import json_problem

if TYPE_CHECKING:
    import pulumi

    from kumulus.stackfile.load import LoadedCluster


def _spec_problems(where: Where, raw: object) -> list[Problem]:
    if not isinstance(raw, Mapping):
        return [problem(where, f"is {shown(raw)}", "write the spec of a NodePool of karpenter.sh/v1")]
    if reason := json_problem(dict(raw)):
        return [problem(where, reason, "write texts, numbers, true, false, lists and mappings")]
    return []


Spec = Annotated[dict[str, Any], checked(_spec_problems, dict, form={"type": "object"})]
InstanceTypeName = Annotated[str, checked(instance_type_problems, form="instanceType")]
GoDuration = Annotated[str, Field(pattern=r"^([0-9]+(s|m|h))+$")]


class AutoscalerPool(Section):
    """A NodePool of Karpenter."""

    name: Annotated[str, short_label(63)] = Field(examples=["default"])
    """The NodePool's name."""
    spec: Spec = Field(
        default_factory=dict, examples=["{disruption: {consolidationPolicy: WhenEmpty, consolidateAfter: 30s}}"]
    )
    """Its spec, as in karpenter.sh/v1; `template.spec.nodeClassRef` is filled in. By default it uses every machine that
    the autoscaler has."""


def _options_problems(where: Where, raw: object) -> list[Problem]:
    if not isinstance(raw, Mapping):
        remedy = "write options of cluster-autoscaler without their dashes, such as {expander: least-waste}"
        return [problem(where, f"is {shown(raw)}", remedy)]
    found = []
    for name, value in raw.items():
        here = (*where, str(name))
        if not isinstance(name, str) or not _OPTION.fullmatch(name):
            found.append(problem(here, "is no option's name", "write it without dashes in front, such as expander"))
        elif name in OURS:
            found.append(problem(here, "is what Kumulus sets itself", "leave it out"))
        elif not isinstance(value, str | int | float | bool):
            found.append(problem(here, f"is {shown(value)}", "write a text, a number, true or false"))
    return found


_OPTION = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")
_PLAIN = {"type": "object", "additionalProperties": {"type": ["string", "number", "boolean"]}}
ProgramOptions = Annotated[
    dict[str, str | int | float | bool],
    checked(
        _options_problems,
        dict,
        form={**_PLAIN, "propertyNames": {"pattern": f"^{_OPTION.pattern}$", "not": {"enum": sorted(OURS)}}},
    ),
]


class AutoscalerSpec(ClusterSection):
    """Creates nodes for pods that find none, and removes them again (docs/autoscalers.md)."""

    model_config = ConfigDict(json_schema_extra={FORM: "autoscalerRules"})
    example: ClassVar[str] = "{name: karpenter, zones: [us-central1-a]}"
    after: ClassVar[str] = "podUsage"
    before_faults: ClassVar[bool] = True

    name: Name = Field(examples=["karpenter"])
    """Which autoscaler."""
    binary: str = Field(default="", examples=["bin/cluster-autoscaler"])
    """For cluster-autoscaler: the program's path, relative to the project's directory."""
    options: ProgramOptions = Field(
        default_factory=dict, examples=["{expander: least-waste, scale-down-unneeded-time: 1m}"]
    )
    """For cluster-autoscaler: its command-line options, without dashes."""
    image: Annotated[str, Field(pattern=r"^\S*$")] = Field(default="", examples=["kumulus/karpenter-kwok:1.15.0"])
    """For Karpenter on a cluster whose nodes run containers (the runtimes kind and existing): its image; `kumulus image
    karpenter` makes an archive of one."""
    zones: list[str] = Field(default_factory=list, examples=["[us-central1-a, us-central1-b]"])
    """The zones that Karpenter may create nodes in; their names determine the region and the prices."""
    instanceTypes: list[InstanceTypeName] = Field(default_factory=list, examples=["[e2-standard-4, e2-standard-16]"])
    """The instance types that Karpenter may choose from; by default all with a price in that region."""
    capacityTypes: Annotated[list[CapacityType], Field(min_length=1)] = Field(
        default=["on-demand"], examples=["[on-demand, spot]"]
    )
    """Capacity types that Karpenter may use; an instance type without a spot price has no spot machines."""
    nodePools: list[AutoscalerPool] = Field(
        default_factory=lambda: [AutoscalerPool(name="default")],
        examples=["[{name: default, spec: {limits: {cpu: 1000}}}]"],
    )
    """Karpenter's NodePools; by default one named `default`."""
    registrationDelay: DurationField | None = Field(default=None, examples=["{lognormal: {median: 40s, sigma: 0.3}}"])
    """How long a machine takes until its node exists, fixed or drawn for each machine; by default no time."""
    batchIdleDuration: GoDuration | None = Field(default=None, examples=["1s"])
    """How long Karpenter waits for a further pod before it decides; by default 1s."""
    batchMaxDuration: GoDuration | None = Field(default=None, examples=["10s"])
    """How long Karpenter waits for further pods at most; by default 10s."""
    preferencePolicy: Literal["Respect", "Ignore"] | None = Field(default=None, examples=["Ignore"])
    """Whether Karpenter respects pods' preferences; by default Respect."""
    featureGates: dict[str, bool] = Field(default_factory=dict, examples=["{SpotToSpotConsolidation: true}"])
    """Karpenter's feature gates."""

    @classmethod
    def forms(cls) -> Mapping[str, dict[str, Any]]:
        """See :meth:`ClusterSection.forms`: which fields each autoscaler needs, and which it does not use."""
        # Imported here, as it knows all sections.
        from kumulus.stackfile.schema.forms import none_of, required

        of_karpenter = {"properties": {"zones": {"minItems": 1}}}
        of_the_other = {"properties": {"binary": {"minLength": 1}}}
        return {
            "autoscalerRules": {
                "if": {"properties": {"name": {"const": "karpenter"}}},
                "then": {"allOf": [required("zones"), of_karpenter, none_of(CLUSTER_AUTOSCALERS)]},
                "else": {"allOf": [required("binary"), of_the_other, none_of(KARPENTERS)]},
            }
        }

    @classmethod
    def rules(cls, raw: Mapping[str, object]) -> Iterable[Problem]:
        """See :meth:`ClusterSection.rules`."""
        return rules(raw)

    def parts(self, loaded: LoadedCluster) -> Sequence[str]:
        """See :meth:`ClusterSection.parts`."""
        return (f"autoscaler: {{name: {self.name}}}",)

    def runtime_option(self, loaded: LoadedCluster, base: Path) -> tuple[dict[str, Any], list[Problem]]:
        """See :meth:`ClusterSection.runtime_option`: its machines or node groups, with their prices."""
        # Imported here, so that other stacks do not have to load the catalog and its prices.
        from kumulus.extras.scaling import machines
        from kumulus.stackfile.expand import kubelet_version

        prices, cluster = loaded.known_prices(), loaded.cluster_name
        if self.binary:
            return machines.of_groups(self, prices, cluster, loaded.pools, base)
        return machines.options(self, prices, cluster, kubelet_version(loaded.spec))

    def declare(self, resource_name: str, cluster: Any, opts: pulumi.ResourceOptions) -> Sequence[pulumi.Resource]:
        """See :meth:`ClusterSection.declare`: a Deployment, unless the runtime runs it as a local process."""
        from pulumi import ResourceOptions

        from kumulus.components.resources import InCluster

        if cluster.loaded.spec.runtime_descriptor.local:
            return ()
        # A KWOK that others installed may not read its stages from the cluster.
        asked = {**cluster.loaded.section_options["autoscaler"], "stages": cluster.plan.stages}
        opts = ResourceOptions.merge(opts, ResourceOptions(deleted_with=cluster.deleted_with))
        return (InCluster("kumulus:index:Autoscaler", resource_name, cluster.cluster, {"autoscaler": asked}, opts),)

"""A stack's autoscaler: its kind, its machines, and its pools."""

import re
from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field

from kumulus.model.bounds import BUILT, NAMES, OURS, Name, bounds_problems
from kumulus.model.checks import problem
from kumulus.model.errors import Problem, Where, shown
from kumulus.model.fields import FORM, DurationField, Section, checked, short_label
from kumulus.stackfile.shapes import instance_type_problems
from kumulus.stackfile.yamltext import json_problem


def _spec_problems(where: Where, raw: object) -> list[Problem]:
    if not isinstance(raw, Mapping):
        return [problem(where, f"is {shown(raw)}", "write the spec of a NodePool of karpenter.sh/v1")]
    if reason := json_problem(dict(raw)):
        return [problem(where, reason, "write texts, numbers, true, false, lists and mappings")]
    return []


Spec = Annotated[dict[str, Any], checked(_spec_problems, dict, form={"type": "object"})]
InstanceTypeName = Annotated[str, checked(instance_type_problems, form="instanceType")]
CapacityType = Literal["on-demand", "spot"]
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


class Autoscaler(Section):
    """Creates nodes for pods that find none, and removes them again (docs/autoscalers.md)."""

    model_config = ConfigDict(json_schema_extra={FORM: "autoscalerRules"})

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


KARPENTERS = (
    "image",
    "zones",
    "instanceTypes",
    "capacityTypes",
    "nodePools",
    "batchIdleDuration",
    "batchMaxDuration",
    "preferencePolicy",
    "featureGates",
)
"""The fields that only Karpenter uses."""
CLUSTER_AUTOSCALERS = ("binary", "options")
"""The fields that only cluster-autoscaler uses."""


Found = Iterator[Problem]
_BOUNDS = ("minReplicas", "maxReplicas")
# What depends on a number of nodes that is fixed in the stack file.
_COUNTED = ("resourceSlices", "topology")


def autoscaler_problems(asked: Mapping[str, object]) -> Found:
    """Fields of the section that the chosen autoscaler needs, or does not use."""
    name = asked.get("name")
    if name == "karpenter":
        if not asked.get("zones"):
            remedy = "write zones such as us-central1-a; their names tell the region"
            yield problem(("autoscaler", "zones"), "is missing: where Karpenter may make nodes", remedy)
        unused: tuple[str, ...] = CLUSTER_AUTOSCALERS
    elif name == "cluster-autoscaler":
        if not asked.get("binary"):
            remedy = "write the path of the program, such as bin/cluster-autoscaler"
            yield problem(("autoscaler", "binary"), "is missing: Kumulus does not build cluster-autoscaler", remedy)
        unused = KARPENTERS
    else:
        return
    for key in unused:
        if asked.get(key) is not None:
            yield problem(("autoscaler", key), f"has no effect with {name}", "leave it out")


def autoscaler_place_problems(asked: object, runtime: str, local: bool) -> Found:
    """What conflicts with where the autoscaler runs: next to the cluster, or in it as a deployment.

    Args:
        asked: the section; may be malformed.
        local: whether the cluster's components run next to it on this machine.
    """
    if not isinstance(asked, Mapping):
        return
    name = asked.get("name")
    if local:
        if asked.get("image"):
            message = f"has no effect with the runtime {runtime}, where it runs alongside the cluster"
            yield problem(("autoscaler", "image"), message, "leave it out")
    elif name in NAMES and name not in BUILT:
        message = f"{name} is not supported with the runtime {runtime}: it resizes groups from outside the cluster"
        yield problem(("autoscaler", "name"), message, "write runtime: kwok, or name: karpenter")
    elif not asked.get("image"):
        remedy = (
            "write image: REF; `kumulus image karpenter` makes an archive of one, which loadImages: gets into a kind "
            "cluster's nodes and docker push into a registry"
        )
        yield problem(("autoscaler", "image"), f"is missing: with the runtime {runtime} it is a deployment", remedy)


def bounds_rules(raw: Mapping[str, object]) -> Found:
    """Rules of groups with `maxReplicas`, so that the stack and an autoscaler never want different things."""
    asked = raw.get("autoscaler")
    scaler = asked.get("name") if isinstance(asked, Mapping) else None
    bounded = False
    for index, group in enumerate(_list(raw.get("nodeGroups"))):
        if not isinstance(group, Mapping) or all(group.get(key) is None for key in _BOUNDS):
            continue
        bounded = True
        where: Where = ("nodeGroups", index)
        if scaler != "cluster-autoscaler":
            has = f"is for cluster-autoscaler, and the stack has {scaler}" if scaler else "has no effect: nobody scales"
            key = "maxReplicas" if group.get("maxReplicas") is not None else "minReplicas"
            remedy = "write autoscaler: {name: cluster-autoscaler, binary: PATH}, or leave it out"
            yield problem((*where, key), has, remedy)
        yield from _group(where, group)
    if scaler == "cluster-autoscaler" and not bounded:
        message = "has nothing to do: no node group has maxReplicas"
        yield problem(("autoscaler", "name"), message, "write maxReplicas on the groups that it is to resize")


def _group(where: Where, group: Mapping[str, object]) -> Found:
    for key in _COUNTED:
        if group.get(key) is not None:
            message = "is not supported with maxReplicas: it assumes a fixed number of nodes"
            yield problem((*where, key), message, "leave one of the two out")
    placement = [each for each in _list(group.get("placement")) if isinstance(each, Mapping)]
    # The bounds themselves are checked once, then each zone's number of nodes is checked against them.
    yield from bounds_problems(where, group, None)
    for number, each in enumerate(placement):
        here: Where = (*where, "placement", number)
        if each.get("nodes"):
            message = "names nodes, which an autoscaler would make and take away by number"
            yield problem((*here, "nodes"), message, "leave it out, or maxReplicas")
        if not list(bounds_problems(where, group, None)):
            yield from bounds_problems(here, group, each.get("replicas"))


def _list(raw: object) -> list[object]:
    return list(raw) if isinstance(raw, list | tuple) else []

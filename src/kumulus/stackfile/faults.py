"""Faults in the stack file: which nodes they affect, and what they do to nodes, pods and an autoscaler's offerings."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from fnmatch import fnmatchcase
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field

from kumulus.model.checks import is_counted_whole, of_mapping, problem, quantity_problems, resource_name_problems
from kumulus.model.durations import duration_problems, of
from kumulus.model.errors import Problem, Where, shown
from kumulus.model.fault_effects import DEFAULT_NOTICE_S, Interruption, OfferEffects
from kumulus.model.fields import (
    FORM,
    Annotations,
    GroupName,
    Labels,
    LabelValue,
    Section,
    Taints,
    checked,
    short_label,
    whole,
)
from kumulus.model.fields.validation import validated
from kumulus.model.quantity import canonical
from kumulus.nodes.catalog.faults import fault_kinds
from kumulus.nodes.catalog.instances import instance_types
from kumulus.stackfile.fault_checks import (
    change_problems,
    changes,
    entry_of,
    kind_problems,
    kubelet_problems,
    node_condition_problems,
    node_names_problems,
    percent,
    percent_problems,
)
from kumulus.stackfile.pod_selection import PodSelector
from kumulus.stackfile.shapes import instance_type_problems

MACHINES = "nodes"
"""The name of a quota's limit of machines, as in the limits of a NodePool."""


def _types_problems(where: Where, raw: object) -> list[Problem]:
    """Whether a text is an instance type of the catalog, or matches several, like `e2-*`."""
    if not isinstance(raw, str) or "*" not in raw:
        return instance_type_problems(where, raw)
    if any(fnmatchcase(name, raw) for name in instance_types()):
        return []
    return [problem(where, f"{shown(raw)} fits no instance type of the catalog", "write more of it as *, such as e2-*")]


@of_mapping
def _limits_problems(where: Where, raw: Mapping[str, Any]) -> list[Problem]:
    """Problems of a mapping from resources, or `nodes`, to their limits."""
    found = list(resource_name_problems(where, {name: each for name, each in raw.items() if name != MACHINES}))
    for name, written in raw.items():
        in_pieces = name == MACHINES or is_counted_whole(str(name))
        found += quantity_problems((*where, name), written, whole=in_pieces, example='"64"')
    return found if raw else [problem(where, "is empty", 'write how much there may be, such as {cpu: "64"}')]


def _limits(raw: Mapping[str, str | int | float]) -> dict[str, str]:
    return {name: canonical(written) for name, written in sorted(raw.items())}


_TYPES = {"anyOf": [{FORM: "instanceType"}, {"type": "string", "pattern": r"[*]"}]}
TypeNames = Annotated[str, checked(_types_problems, form=_TYPES)]
Limits = Annotated[dict[str, str], checked(_limits_problems, _limits, form="resources")]
CapacityType = Literal["on-demand", "spot"]


class OffersSpec(Section):
    """Which of an autoscaler's offerings a fault affects: those that match every field that is given."""

    zones: list[str] = Field(default_factory=list, examples=["[us-central1-a]"])
    """Offerings in these zones; `*` stands for any characters, so `us-central1-*` is a region."""
    instanceTypes: list[TypeNames] = Field(default_factory=list, examples=["[e2-standard-16]"])
    """Offerings of these instance types; `e2-*` is a family."""
    capacityTypes: list[CapacityType] = Field(default_factory=list, examples=["[spot]"])
    """On demand, or as spot machines."""


FAULT_NAME_LENGTH = 40
NodeNames = Annotated[tuple[str, ...], checked(node_names_problems, tuple, form="nodeNames")]
KindName = Annotated[str, checked(kind_problems, entry_of, form="faultKind")]
KubeletState = Annotated[str, checked(kubelet_problems, form="kubelet")]
Duration = Annotated[float, checked(duration_problems, of, form="duration")]
Share = Annotated[float, checked(percent_problems, percent, form="percent")]
Changes = Annotated[dict[str, str], checked(change_problems, changes, form="changes")]
Conditions = Annotated[dict[str, dict[str, str]], checked(node_condition_problems, dict, form="conditions")]


class Target(Section):
    """Which nodes a fault affects: those that match every field that is given; all nodes if none is."""

    nodeGroup: GroupName | None = Field(default=None, examples=["a100"])
    """The nodes of this node group."""
    zone: LabelValue | None = Field(default=None, examples=["use1"])
    """The nodes of this availability zone."""
    region: LabelValue | None = Field(default=None, examples=["us-east1"])
    """The nodes of this region."""
    nvlinkDomain: LabelValue | None = Field(default=None, examples=["nvl0"])
    """The nodes of this NVLink domain of their group's topology: `nvl0`, or with the pool as in the node's label."""
    rack: LabelValue | None = Field(default=None, examples=["r3"])
    """The nodes of this rack of their group's topology: `r3`, or with the pool as in the node's label,
    `a100-use1-r3`."""
    leaf: LabelValue | None = Field(default=None, examples=["leaf0"])
    """The nodes behind this leaf switch of their group's topology: `leaf0`, or with the pool as in the node's label."""
    block: LabelValue | None = Field(default=None, examples=["b0"])
    """The nodes of this block of their group's topology: `b0`, or with the pool as in the node's label."""
    spine: LabelValue | None = Field(default=None, examples=["spine0"])
    """The nodes behind this spine switch of their group's topology: `spine0`, or with the pool as in the node's
    label."""
    labels: Labels = Field(default_factory=dict, examples=["{example.com/power: a}"])
    """Labels that a node must have, with these values; those of the topology count, too."""
    names: NodeNames = Field(default=(), examples=["[a100-use1-0, 'a100-use1-[4-7]']"])
    """Names of nodes, with ranges such as `a100-use1-[0-99,105]`."""
    count: Annotated[int, whole(1, 100_000)] | None = Field(default=None, examples=["3"])
    """Only this many of the nodes."""
    percent: Share | None = Field(default=None, examples=["10"])
    """Only this share of the nodes, in per cent."""
    seed: str = Field(default="", examples=['"another"'])
    """Another seed chooses other nodes for `count` and `percent`; by default the fault's name."""

    def places(self) -> dict[str, str]:
        """The given places in the topology, by level."""
        levels = ("nvlinkDomain", "rack", "leaf", "block", "spine")
        return {level: place for level in levels if (place := getattr(self, level)) is not None}


class FaultedPods(PodSelector):
    """Pods that match every field; all pods if there is none."""

    images: list[Annotated[str, Field(pattern=r"^[!-~]+$")]] = Field(
        default_factory=list, examples=["[webserver:404, 'registry.example.com/*']"]
    )
    """A container of the pod has one of these images, as its spec has it; `*` stands for any characters. It is such
    containers that fail, unless `container` says another."""


class FaultSpec(Section):
    """A fault: which nodes, pods or offerings it affects, and how."""

    INSTEAD: ClassVar[Mapping[str, str]] = dict.fromkeys(("node", "nodes", "names"), "target: {names: [a100-use1-0]}")

    name: Annotated[str, short_label(FAULT_NAME_LENGTH)] = Field(examples=["xid79-rack3"])
    """The fault's name, unique in the stack."""
    target: Target = Field(default_factory=Target, examples=["{nodeGroup: a100, zone: use1}"])
    """The nodes it affects; for a fault of pods, the nodes they run on. By default all nodes."""
    kind: KindName | None = Field(default=None, examples=["gpu-fell-off-bus"])
    """An entry of the catalog of faults (docs/faults.md); other fields add to it or override it."""
    conditions: Conditions = Field(default_factory=dict, examples=["{GpuHWSlowDown: {reason: Active}}"])
    """Conditions of each node, by type; the status defaults to True."""
    taints: Taints = Field(default=(), examples=["[{key: example.com/broken, effect: NoSchedule}]"])
    """Taints set on each node."""
    labels: Labels = Field(default_factory=dict, examples=["{example.com/state: broken}"])
    """Labels set on each node."""
    annotations: Annotations = Field(default_factory=dict, examples=["{example.com/note: text}"])
    """Annotations set on each node."""
    capacity: Changes = Field(default_factory=dict, examples=['{nvidia.com/gpu: "-1"}'])
    """How much of a resource is left, "7", or lost, "-1"; in capacity and allocatable."""
    kubelet: KubeletState | None = Field(default=None, examples=["notReady"])
    """What happens to each node's kubelet."""
    devices: Literal["remove", "taint"] | None = Field(default=None, examples=["taint"])
    """What becomes of the devices in ResourceSlices that `capacity` takes: no longer published, by default, or tainted
    as NVIDIA's driver does. Taints of devices are of Kubernetes 1.36."""
    downFor: Duration | None = Field(default=None, examples=["2m"])
    """How long a reboot takes; by default as the kind sets it, or two minutes."""
    pods: FaultedPods | None = Field(default=None, examples=["{labels: {app: training}}"])
    """For a fault of pods, which pods it affects; by default all on the target's nodes."""
    container: str = Field(default="", examples=["main"])
    """The container that fails; by default the pod's first."""
    exitCode: Annotated[int, whole(0, 255)] | None = Field(default=None, examples=["1"])
    """The exit code of the container that fails."""
    reason: str = Field(default="", examples=["Error"])
    """The reason in the container's or pod's status; by default the kind's."""
    message: str = Field(default="", examples=['"NCCL timeout"'])
    """The message in the container's or pod's status."""
    delay: Duration | None = Field(default=None, examples=["30s"])
    """From the pod's start to its fault."""
    jitter: Duration | None = Field(default=None, examples=["10s"])
    """Up to this much more delay, evenly spread."""
    repeat: bool | None = Field(default=None, examples=["false"])
    """If false, the fault hits only pods that exist when it begins, each once."""
    share: Share | None = Field(default=None, examples=["10"])
    """How many of the pods are hit, in per cent."""
    offers: OffersSpec | None = Field(
        default=None, examples=["{zones: [us-central1-a], instanceTypes: [e2-standard-16]}"]
    )
    """For a fault of an autoscaler's offerings, which of them it affects; by default all."""
    priceFactor: Annotated[float, Field(gt=0)] | None = Field(default=None, examples=["2.5"])
    """For a price change, what the price is multiplied by."""
    limits: Limits = Field(default_factory=dict, examples=['{cpu: "64", nodes: "10"}'])
    """For a quota, the most of each resource in all that `offers` selects; `nodes` counts machines."""
    notice: Duration | None = Field(default=None, examples=["30s"])
    """For a spot interruption, from the notice to the machines' end; by default two minutes."""


NODE_KEYS = ("conditions", "taints", "labels", "annotations", "capacity", "kubelet", "devices", "downFor")
"""The keys for faults of nodes."""
OFFER_KEYS = {
    "offers": "stock-out, quota, price-change or spot-interruption",
    "priceFactor": "price-change",
    "limits": "quota",
    "notice": "spot-interruption",
}
"""The keys for faults of offerings, and the kinds that have them."""
POD_KEYS = ("pods", "container", "exitCode", "reason", "message", "delay", "jitter", "repeat", "share")
"""The keys for faults of pods."""


def fault_from(raw: Mapping[str, object], source: str) -> FaultSpec:
    """A fault from a plain mapping, as an item of the stack file's `faults`; errors name the source."""
    return validated(FaultSpec, raw, source)


# The part of a target by which an autoscaler's machines are chosen.
_DRAWN_BY = ("labels", "count", "percent", "seed")
# What kinds of faults of offerings may have in addition to `offers`.
_OWN = {"price-change": ("priceFactor",), "quota": ("limits",), "spot-interruption": ("target", "notice")}
# Which of it some need: the key, what is wrong without it, and what to write.
_NEEDED = {
    "price-change": ("priceFactor", "says no price", "write priceFactor: 2 for twice the price"),
    "quota": ("limits", "says no limit", 'write limits: {cpu: "64"}'),
}


def offer_effects(fault: FaultSpec) -> OfferEffects | None:
    """What a fault does to the offerings that it selects; None for a fault of nodes or pods."""
    kind = fault_kinds()[fault.kind] if fault.kind else None
    if kind is None or kind.offers is None:
        return None
    which = fault.offers or OffersSpec()
    found = replace(
        kind.offers,
        price_factor=fault.priceFactor if fault.priceFactor is not None else 1.0,
        zones=tuple(which.zones),
        instance_types=tuple(which.instanceTypes),
        capacity_types=tuple(which.capacityTypes),
        limits=fault.limits,
    )
    if kind.offers.interruption is None:
        return found
    target = fault.target
    how = Interruption(
        notice=DEFAULT_NOTICE_S if fault.notice is None else fault.notice,
        labels=target.labels,
        count=target.count or 0,
        percent=100.0 if target.percent is None else target.percent,
        seed=target.seed or fault.name,
    )
    return replace(found, capacity_types=("spot",), interruption=how)


def offer_problems(here: Where, fault: FaultSpec) -> Iterator[Problem]:
    """Keys of a fault of offerings that belong to other faults, and missing ones."""
    kind = str(fault.kind)
    own = ("offers", *_OWN.get(kind, ()))
    for key in ("target", *NODE_KEYS, *POD_KEYS):
        if key in fault.model_fields_set and key not in own:
            message = f"is for nodes or pods, and {kind} is about what an autoscaler is offered"
            yield problem((*here, key), message, "leave it out, or declare a second fault")
    for key in OFFER_KEYS:
        if key in fault.model_fields_set and key not in own:
            yield problem((*here, key), f"has no effect on a fault of kind {kind}", "leave it out")
    if kind in _NEEDED:
        key, message, remedy = _NEEDED[kind]
        if key not in fault.model_fields_set:
            yield problem(here, message, remedy)
    if kind == "spot-interruption":
        yield from _interruption_problems(here, fault)


def _interruption_problems(here: Where, fault: FaultSpec) -> Iterator[Problem]:
    for key in fault.target.model_fields_set - set(_DRAWN_BY):
        instead = "offers.zones" if key in ("zone", "region") else "labels, count or percent"
        message = "selects nodes of node groups, and an autoscaler's machines are taken back here"
        yield problem((*here, "target", key), message, f"write {instead}; for node groups there is kind: spot-reclaim")
    if fault.offers and "on-demand" in fault.offers.capacityTypes:
        message = "has machines on demand, which no cloud takes back"
        yield problem((*here, "offers", "capacityTypes"), message, "leave it out: it is about spot machines")

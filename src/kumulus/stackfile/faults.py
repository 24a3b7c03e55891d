"""Faults as the stack file has them: where they hold, and what they do to nodes and pods there."""

# ruff: noqa: N815 - fields are called what the file calls them, so that a path in an error is a path in the code

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

from pydantic import Field

from kumulus.catalog.faults import kinds
from kumulus.fields import (
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
from kumulus.fields.validation import validated
from kumulus.model.checks import mapping_problems, problem, quantity_problems, resource_name_problems
from kumulus.model.durations import duration_problems, of
from kumulus.model.errors import Problem, Where, shown
from kumulus.model.names import is_dns_subdomain, label_key_fault, nearest
from kumulus.model.node_effects import KUBELETS
from kumulus.model.node_sets import ordinals
from kumulus.model.quantity import canonical
from kumulus.stackfile.offers import Limits, Offers
from kumulus.stackfile.pod_selection import PodSelector

FAULT_NAME_LENGTH = 40


def kind_problems(where: Where, raw: object) -> list[Problem]:
    """Whether a value is an entry of the catalog; others are reported with the entries it may mean."""
    if isinstance(raw, str) and raw in kinds():
        return []
    near = nearest(raw, kinds(), likeness=0.5) if isinstance(raw, str) else []
    other = "write a kind of docs/faults.md, or leave it out and say what it does"
    remedy = f"write {' or '.join(near)}" if near else other
    return [problem(where, f"{shown(raw)} is not in the catalog", remedy)]


def percent_problems(where: Where, raw: object) -> list[Problem]:
    """Whether a value is a share: more than 0, at most 100; a text may end in a per cent sign."""
    remedy = "write a number from 0.01 to 100"
    number = _percent(raw)
    if number is None:
        return [problem(where, f"is {shown(raw)}", remedy)]
    if number > 100:
        return [problem(where, f"is {shown(raw)}, more than 100", "write 100 for all of them")]
    return [] if number > 0 else [problem(where, f"is {shown(raw)}, which is nothing", remedy)]


def _percent(raw: object) -> float | None:
    if isinstance(raw, str):
        try:
            return float(raw.strip().removesuffix("%"))
        except ValueError:
            return None
    return float(raw) if isinstance(raw, int | float) and not isinstance(raw, bool) else None


def node_names_problems(where: Where, raw: object) -> list[Problem]:
    """Whether a value is a list of node names, which may end in ranges: `a100-use1-[0-99,105]`."""
    if not isinstance(raw, list | tuple):
        return [problem(where, f"is {shown(raw)}", "write a list, such as [a100-use1-0, 'a100-use1-[4-7]']")]
    found = []
    for index, name in enumerate(raw):
        # A node that its pool names may be called anything.
        if isinstance(name, str) and is_dns_subdomain(name):
            continue
        try:
            split_node_name(name if isinstance(name, str) else "")
        except ValueError:
            remedy = "write a node's name, a100-use1-3, or several as 'a100-use1-[0-99,105]'"
            found.append(problem((*where, index), f"is {shown(name)}", remedy))
    return found


def split_node_name(name: str) -> tuple[str, frozenset[int]]:
    """The pool and the ordinals of a node's name, or of several as `a100-use1-[0-99,105]`.

    Raises:
        ValueError: it is neither.
    """
    pool, dash, last = name.rpartition("-") if not name.endswith("]") else _bracketed(name)
    if not pool or not dash:
        raise ValueError(f"{name!r} is no node of a pool")
    return pool, ordinals(last)


def _bracketed(name: str) -> tuple[str, str, str]:
    pool, bracket, rest = name.partition("-[")
    return pool, bracket, rest.removesuffix("]")


def change_problems(where: Where, raw: object) -> list[Problem]:
    """Problems of a mapping from resources to what is left of them, "7", or what is lost of them, "-1"."""
    if wrong := mapping_problems(where, raw):
        return wrong
    assert isinstance(raw, Mapping)
    found = list(resource_name_problems(where, raw))
    for name, written in raw.items():
        amount = written.removeprefix("-") if isinstance(written, str) else written
        amount = -amount if isinstance(amount, int | float) and not isinstance(amount, bool) and amount < 0 else amount
        found += quantity_problems((*where, name), amount, whole="/" in name, example='"-1", or "7" for what is left')
    return found


def _changes(raw: Mapping[str, str | int | float]) -> dict[str, str]:
    return {name: canonical(written) for name, written in raw.items()}


def condition_problems(where: Where, raw: object) -> list[Problem]:
    """Problems of a mapping from condition types to `{status, reason, message}`, each of which may be left out."""
    if wrong := mapping_problems(where, raw):
        return wrong
    assert isinstance(raw, Mapping)
    found: list[Problem] = []
    for kind, each in raw.items():
        here = (*where, kind)
        if fault := label_key_fault(kind):
            found.append(problem(here, f"the type {fault.message}", fault.remedy))
        if wrong := mapping_problems(here, each):
            found += wrong
            continue
        for key, value in each.items():
            if key not in ("status", "reason", "message"):
                found.append(problem((*here, key), "is not a known key", "write status, reason or message"))
            elif not isinstance(value, str):
                text = '"True"' if key == "status" else '"a text"'
                found.append(problem((*here, key), f"is {shown(value)}, not a text", f"write it in quotes: {text}"))
            elif key == "status" and value not in ("True", "False", "Unknown"):
                found.append(problem((*here, key), f"is {shown(value)}", 'write "True", "False" or "Unknown"'))
    return found


def kubelet_problems(where: Where, raw: object) -> list[Problem]:
    """Whether a value is something that may have become of a kubelet."""
    if isinstance(raw, str) and raw and raw in KUBELETS:
        return []
    near = nearest(raw, KUBELETS[1:]) if isinstance(raw, str) else []
    remedy = f"write {' or '.join(near)}" if near else f"write one of {', '.join(KUBELETS[1:])}"
    return [problem(where, f"is {shown(raw)}", remedy)]


Duration = Annotated[float, checked(duration_problems, of, form="duration")]
Share = Annotated[float, checked(percent_problems, _percent, form="percent")]
Changes = Annotated[dict[str, str], checked(change_problems, _changes, form="changes")]
Conditions = Annotated[dict[str, dict[str, str]], checked(condition_problems, dict, form="conditions")]


class Target(Section):
    """Which nodes a fault holds on: those that fulfil everything that is given; all nodes when nothing is."""

    nodeGroup: GroupName | None = Field(default=None, description="The nodes of this node group.", examples=["a100"])
    zone: LabelValue | None = Field(default=None, description="The nodes of this availability zone.", examples=["use1"])
    region: LabelValue | None = Field(default=None, description="The nodes of this region.", examples=["us-east1"])
    nvlinkDomain: LabelValue | None = Field(
        default=None,
        description=(
            "The nodes of this NVLink domain of their group's topology: `nvl0`, or with the pool as "
            "in the node's label."
        ),
        examples=["nvl0"],
    )
    rack: LabelValue | None = Field(
        default=None,
        description=(
            "The nodes of this rack of their group's topology: `r3`, or with the pool as in the node's "
            "label, `a100-use1-r3`."
        ),
        examples=["r3"],
    )
    leaf: LabelValue | None = Field(
        default=None,
        description=(
            "The nodes behind this leaf switch of their group's topology: `leaf0`, or with the pool as "
            "in the node's label."
        ),
        examples=["leaf0"],
    )
    block: LabelValue | None = Field(
        default=None,
        description="The nodes of this block of their group's topology: `b0`, or with the pool as in the node's label.",
        examples=["b0"],
    )
    spine: LabelValue | None = Field(
        default=None,
        description=(
            "The nodes behind this spine switch of their group's topology: `spine0`, or with the pool as "
            "in the node's label."
        ),
        examples=["spine0"],
    )
    labels: Labels = Field(
        default_factory=dict,
        description="Labels that a node has to have, with these values; those of the topology count.",
        examples=["{example.com/power: a}"],
    )
    names: Annotated[tuple[str, ...], checked(node_names_problems, tuple, form="nodeNames")] = Field(
        default=(),
        description="Names of nodes, with ranges as `a100-use1-[0-99,105]`.",
        examples=["[a100-use1-0, 'a100-use1-[4-7]']"],
    )
    count: Annotated[int, whole(1, 100_000)] | None = Field(
        default=None, description="Only so many of the nodes.", examples=["3"]
    )
    percent: Share | None = Field(default=None, description="Only so much of the nodes, in per cent.", examples=["10"])
    seed: str = Field(
        default="",
        description="Another seed chooses other nodes for `count` and `percent`; by default the fault's name.",
        examples=['"another"'],
    )

    def places(self) -> dict[str, str]:
        """The places in the topology that are given, by level."""
        levels = ("nvlinkDomain", "rack", "leaf", "block", "spine")
        return {level: place for level in levels if (place := getattr(self, level)) is not None}


class Fault(Section):
    """A fault that is active while the stack file declares it."""

    name: Annotated[str, short_label(FAULT_NAME_LENGTH)] = Field(
        description="The fault's name, unique in the stack.", examples=["xid79-rack3"]
    )
    target: Target = Field(
        default_factory=Target,
        description="The nodes it affects; for a fault of pods, the nodes they run on. By default all nodes.",
        examples=["{nodeGroup: a100, zone: use1}"],
    )
    kind: Annotated[str, checked(kind_problems, str, form="faultKind")] | None = Field(
        default=None,
        description=("An entry of the catalog of faults (docs/faults.md); other fields add to it or override it."),
        examples=["gpu-fell-off-bus"],
    )
    conditions: Conditions = Field(
        default_factory=dict,
        description="Conditions of each node, by type; the status defaults to True.",
        examples=["{GpuHWSlowDown: {reason: Active}}"],
    )
    taints: Taints = Field(
        default=(), description="Taints set on each node.", examples=["[{key: example.com/broken, effect: NoSchedule}]"]
    )
    labels: Labels = Field(
        default_factory=dict, description="Labels set on each node.", examples=["{example.com/state: broken}"]
    )
    annotations: Annotations = Field(
        default_factory=dict, description="Annotations set on each node.", examples=["{example.com/note: text}"]
    )
    capacity: Changes = Field(
        default_factory=dict,
        description='How much of a resource is left, "7", or lost, "-1"; in capacity and allocatable.',
        examples=['{nvidia.com/gpu: "-1"}'],
    )
    kubelet: Annotated[str, checked(kubelet_problems, form="kubelet")] | None = Field(
        default=None, description="What happens to each node's kubelet.", examples=["notReady"]
    )
    downFor: Duration | None = Field(
        default=None,
        description="How long a reboot takes; by default as the kind sets it, or two minutes.",
        examples=["2m"],
    )
    pods: PodSelector | None = Field(
        default=None,
        description="For a fault of pods, which pods it affects; by default all on the target's nodes.",
        examples=["{labels: {app: training}}"],
    )
    container: str = Field(
        default="", description="The container that fails; by default the pod's first.", examples=["main"]
    )
    exitCode: Annotated[int, whole(0, 255)] | None = Field(
        default=None, description="The exit code of the container that fails.", examples=["1"]
    )
    reason: str = Field(
        default="",
        description="The reason in the container's or pod's status; by default the kind's.",
        examples=["Error"],
    )
    message: str = Field(
        default="", description="The message in the container's or pod's status.", examples=['"NCCL timeout"']
    )
    delay: Duration | None = Field(default=None, description="From the pod's start to its fault.", examples=["30s"])
    jitter: Duration | None = Field(default=None, description="Up to this much later, evenly spread.", examples=["10s"])
    repeat: bool | None = Field(
        default=None,
        description="Off, it hits the pods that are there when the fault begins, each once.",
        examples=["false"],
    )
    share: Share | None = Field(default=None, description="How many of the pods are hit, in per cent.", examples=["10"])
    offers: Offers | None = Field(
        default=None,
        description="For a fault of what an autoscaler is offered, which of its offerings; by default all.",
        examples=["{zones: [us-central1-a], instanceTypes: [e2-standard-16]}"],
    )
    priceFactor: Annotated[float, Field(gt=0)] | None = Field(
        default=None, description="For a price change, what the price is multiplied by.", examples=["2.5"]
    )
    limits: Limits = Field(
        default_factory=dict,
        description=("For a quota, how much there may be of what `offers` selects, by resource; `nodes` for machines."),
        examples=['{cpu: "64", nodes: "10"}'],
    )
    notice: Duration | None = Field(
        default=None,
        description="For a spot interruption, from the notice to the machines' end; by default two minutes.",
        examples=["30s"],
    )


NODE_KEYS = ("conditions", "taints", "labels", "annotations", "capacity", "kubelet", "downFor")
OFFER_KEYS = {
    "offers": "stock-out, quota, price-change or spot-interruption",
    "priceFactor": "price-change",
    "limits": "quota",
    "notice": "spot-interruption",
}
"""What is for an autoscaler's offerings, and the kinds that have it."""
POD_KEYS = ("pods", "container", "exitCode", "reason", "message", "delay", "jitter", "repeat", "share")


def fault_from(raw: Mapping[str, object], source: str) -> Fault:
    """A fault from a plain mapping.

    Args:
        raw: as an item of the stack file's `faults`.
        source: where it is from, for the error's first line.

    Raises:
        SpecError: with every problem there is.
    """
    return validated(Fault, raw, source)

"""Faults as the stack file has them: where they hold, and what they do to nodes and pods there."""

# ruff: noqa: N815 - fields are called what the file calls them, so that a path in an error is a path in the code

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

from pydantic import Field

from spec.checks import mapping_problems, problem, quantity_problems, resource_name_problems
from spec.durations import duration_problems, of
from spec.errors import Problem, Where, shown
from spec.fault_catalog import kinds
from spec.fields import Annotations, GroupName, Labels, LabelValue, Section, Taints, checked, short_label, whole
from spec.names import label_key_fault, nearest
from spec.node_effects import KUBELETS
from spec.node_sets import ordinals
from spec.pod_selection import PodSelector
from spec.quantity import canonical
from spec.validation import validated

FAULT_NAME_LENGTH = 40


def kind_problems(where: Where, raw: object) -> list[Problem]:
    """Whether a value is an entry of the catalog; others are told with the entries it may mean."""
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


Duration = Annotated[float, checked(duration_problems, of)]
Share = Annotated[float, checked(percent_problems, _percent)]
Changes = Annotated[dict[str, str], checked(change_problems, _changes)]
Conditions = Annotated[dict[str, dict[str, str]], checked(condition_problems, dict)]


class Target(Section):
    """Which nodes a fault holds on: those that fulfil everything that is given; all nodes when nothing is.

    Args:
        nodeGroup, zone, region: of the nodes.
        nvlinkDomain, rack, leaf, block, spine: where they stand in their group's topology, as `r3`, or with the pool
            as in the node's label, `a100-use1-r3`.
        labels: those that a node has to have, with these values; topology labels count.
        names: names of nodes, with ranges as `a100-use1-[0-99,105]`.
        count: only so many of them.
        percent: only so much of them.
        seed: chooses others for count and percent; the fault's name when empty.
    """

    nodeGroup: GroupName | None = Field(default=None, examples=["a100"])
    zone: LabelValue | None = Field(default=None, examples=["use1"])
    region: LabelValue | None = Field(default=None, examples=["us-east1"])
    nvlinkDomain: LabelValue | None = Field(default=None, examples=["nvl0"])
    rack: LabelValue | None = Field(default=None, examples=["r3"])
    leaf: LabelValue | None = Field(default=None, examples=["leaf0"])
    block: LabelValue | None = Field(default=None, examples=["b0"])
    spine: LabelValue | None = Field(default=None, examples=["spine0"])
    labels: Labels = Field(default_factory=dict, examples=["{example.com/power: a}"])
    names: Annotated[tuple[str, ...], checked(node_names_problems, tuple)] = Field(
        default=(), examples=["[a100-use1-0, 'a100-use1-[4-7]']"]
    )
    count: Annotated[int, whole(1, 100_000)] | None = Field(default=None, examples=["3"])
    percent: Share | None = Field(default=None, examples=["10"])
    seed: str = Field(default="", examples=['"another"'])

    def places(self) -> dict[str, str]:
        """The places in the topology that are given, by level."""
        levels = ("nvlinkDomain", "rack", "leaf", "block", "spine")
        return {level: place for level in levels if (place := getattr(self, level)) is not None}


class Fault(Section):
    """A fault that holds while the stack file declares it.

    Args:
        name: its name.
        target: the nodes; of a fault of pods, the nodes they run on.
        kind: an entry of the catalog; what is given beside it comes on top, or in its place.
        conditions: of each node, by type; the status is True where it is not given.
        taints, labels, annotations: set on each node.
        capacity: what is left of a resource, "7", or what is lost of it, "-1"; in capacity and allocatable.
        kubelet: silent, notReady, reboot or gone.
        downFor: how long a reboot takes.
        pods: which pods are hit, of a fault of pods.
        container: the container that fails; the first when empty.
        exitCode, reason, message: how it fails.
        delay: from the pod's start to its fault.
        jitter: up to this much later, evenly spread.
        repeat: false hits the pods that are there when the fault begins, each once.
        share: how many of the pods are hit, in per cent.
    """

    name: Annotated[str, short_label(FAULT_NAME_LENGTH)] = Field(examples=["xid79-rack3"])
    target: Target = Field(default_factory=Target, examples=["{nodeGroup: a100, zone: use1}"])
    kind: Annotated[str, checked(kind_problems, str)] | None = Field(default=None, examples=["gpu-fell-off-bus"])
    conditions: Conditions = Field(default_factory=dict, examples=["{GpuHWSlowDown: {reason: Active}}"])
    taints: Taints = Field(default=(), examples=["[{key: example.com/broken, effect: NoSchedule}]"])
    labels: Labels = Field(default_factory=dict, examples=["{example.com/state: broken}"])
    annotations: Annotations = Field(default_factory=dict, examples=["{example.com/note: text}"])
    capacity: Changes = Field(default_factory=dict, examples=['{nvidia.com/gpu: "-1"}'])
    kubelet: Annotated[str, checked(kubelet_problems)] | None = Field(default=None, examples=["notReady"])
    downFor: Duration | None = Field(default=None, examples=["2m"])
    pods: PodSelector | None = Field(default=None, examples=["{labels: {app: training}}"])
    container: str = Field(default="", examples=["main"])
    exitCode: Annotated[int, whole(0, 255)] | None = Field(default=None, examples=["1"])
    reason: str = Field(default="", examples=["Error"])
    message: str = Field(default="", examples=['"NCCL timeout"'])
    delay: Duration | None = Field(default=None, examples=["30s"])
    jitter: Duration | None = Field(default=None, examples=["10s"])
    repeat: bool | None = Field(default=None, examples=["false"])
    share: Share | None = Field(default=None, examples=["10"])


NODE_KEYS = ("conditions", "taints", "labels", "annotations", "capacity", "kubelet", "downFor")
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

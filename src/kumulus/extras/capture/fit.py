"""Whether a workload fits: how many pods, where, what limits them, and the smallest change that would make all fit.

The clone's scheduler answers, with pods that are created for this and deleted again; its decisions are not computed
here.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kumulus.extras.capture import mark
from kumulus.extras.capture.dry import Dry, dry_run
from kumulus.extras.capture.probe import Probe, ProbeVerdict, taint_text
from kumulus.extras.capture.raising import raised_quotas
from kumulus.kube.objects import NODES
from kumulus.model.pools import GROUP_LABEL, INSTANCE_TYPE_LABEL
from kumulus.model.words import counted
from kumulus.nodes.catalog.prices import Prices, catalog

if TYPE_CHECKING:
    from kumulus.kube import Client

_SHAPES = 4
"""How many kinds of nodes are tried as additions: the most frequent ones."""
_MOST_NODES = 1000
_CONDITIONS = "node.kubernetes.io/"
"""The prefix of the taints of nodes that are not well, or cordoned."""
# kube-scheduler's text. Checked against Kubernetes 1.35 to 1.37.
_UNTOLERATED = "untolerated taint"


@dataclass
class FitChange:
    """A change that makes all pods fit, as was tried."""

    what: str
    """The change, as the end of a sentence."""
    cost: int
    """For sorting, the smallest first: nodes added, 1 for a quota, or 0 for a dropped constraint."""


@dataclass
class FitAnswer:
    """The answer about a workload."""

    verdict: ProbeVerdict
    groups: Counter[str] = field(default_factory=Counter)
    changes: list[FitChange] = field(default_factory=list)
    """The changes that would make all fit, the smallest first."""
    tried: list[str] = field(default_factory=list)
    """The changes that were tried and do not suffice."""
    untolerated: Counter[str] = field(default_factory=Counter)
    """If the scheduler refuses nodes for their taints: those that the pods do not tolerate, with how many have each."""
    prices: Prices = field(default_factory=catalog, repr=False)


async def fit(
    client: Client,
    probe: Probe,
    capture: Path | None = None,
    *,
    clone: bool = True,
    changes: bool = True,
    prices: Prices | None = None,
    say: Callable[[str], None] = lambda _: None,
) -> FitAnswer:
    """Ask the scheduler of a clone.

    Args:
        capture: the directory of the capture that it has to be the clone of; None for any.
        clone: whether it has to be one; a cluster that the caller has made for itself need not.
        changes: whether to look for changes that would make all fit.
        prices: what further nodes cost; None for the catalog's.
        say: takes what was put back of earlier runs, a line for each.

    Raises:
        NotTheClone: the cluster is not marked as the clone.
        JournalError: another run is under way on the clone, or something of a run cannot be put back.
    """
    async with dry_run(client, probe.name, say) as dry:
        if clone:
            await mark.require(client, *([capture] if capture else []))
        nodes = [node async for page in client.pages(NODES) for node in page]
        groups = {str(node["metadata"]["name"]): _group(node) for node in nodes}
        await dry.namespace(probe.namespace)
        priority = await dry.priority_class(probe)
        verdict = await dry.pods(probe, probe.count, priority, keep=True)
        answer = FitAnswer(verdict, prices=prices or catalog())
        # Waiting pods would take the room on which the next ones are tried.
        await dry.drop_waiting()
        for node, number in answer.verdict.on.items():
            answer.groups[groups.get(node, node)] += number
        if _UNTOLERATED in answer.verdict.reason:
            answer.untolerated.update(taint_text(taint) for node in nodes for taint in probe.untolerated(node))
        if changes and not answer.verdict.all_fit:
            await _changes(client, dry, probe, priority, nodes, answer)
            answer.changes.sort(key=lambda change: change.cost)
    return answer


async def _changes(
    client: Client, dry: Dry, probe: Probe, priority: str, nodes: list[dict[str, Any]], answer: FitAnswer
) -> None:
    fitted, first = answer.verdict.fitted, ""
    if answer.verdict.refused:
        raised = await raised_quotas(client, dry, probe, priority, answer.verdict)
        if raised is None:
            return
        if raised.fitted == probe.count:
            answer.changes.append(FitChange(raised.what, 1))
            return
        answer.tried.append(f"with {raised.what} {raised.fitted:,} of {probe.count:,} fit")
        fitted, first = raised.fitted, f"{raised.what} and "
    await _nodes(dry, probe, priority, fitted, nodes, answer, first)
    # With anti-affinity, each of two pods repels the other: a constraint is dropped for all pods or for none.
    await dry.drop_kept()
    await _constraints(dry, probe, priority, answer, first)
    if answer.untolerated:
        await _tolerations(dry, probe, priority, nodes, answer)


async def _constraints(dry: Dry, probe: Probe, priority: str, answer: FitAnswer, first: str) -> None:
    for constraint in probe.constraints():
        verdict = await dry.pods(probe.without(constraint), probe.count, priority)
        if verdict.all_fit:
            answer.changes.append(FitChange(f"{first}dropping {constraint}", 0))
        else:
            answer.tried.append(f"{first}without {constraint} {verdict.fitted:,} of {probe.count:,} fit")


async def _tolerations(dry: Dry, probe: Probe, priority: str, nodes: list[dict[str, Any]], answer: FitAnswer) -> None:
    sets = Counter(probe.untolerated(node) for node in nodes)
    for taints, _ in sets.most_common(_SHAPES):
        if not taints or any(each.key.startswith(_CONDITIONS) for each in taints):
            continue
        verdict = await dry.pods(probe.tolerating(taints), probe.count, priority)
        what = f"a toleration for {' and for '.join(map(taint_text, taints))}"
        if verdict.all_fit:
            answer.changes.append(FitChange(f"adding {what}", 0))
        else:
            answer.tried.append(f"with {what} {verdict.fitted:,} of {probe.count:,} fit")


async def _nodes(
    dry: Dry, probe: Probe, priority: str, before: int, nodes: list[dict[str, Any]], answer: FitAnswer, first: str
) -> None:
    if probe.group:
        # A gang is tried whole each time: what is left of it would be no gang.
        before = 0
        await dry.drop_kept()
    left, there = probe.count - before, len(nodes)
    for name, like in _shapes(nodes, _topology(probe)).items():
        one = await dry.nodes(like, 1)
        # Of a gang, one node would take none.
        verdict = await dry.pods(probe.alone_on(one[0]) if probe.group else probe, left, priority, among=there + 1)
        await dry.drop(one)
        each = verdict.on[one[0]]
        if not each:
            taints = ", ".join(map(taint_text, probe.untolerated(like)))
            why = f", as the pods do not tolerate {taints}" if taints else ""
            answer.tried.append(f"one more node like those of {name} takes none{why}")
            continue
        needed = math.ceil(left / each)
        if probe.group and needed <= _MOST_NODES:
            needed = await _fewest(dry, probe, priority, like, needed, there)
        if needed > _MOST_NODES:
            answer.tried.append(f"a node more like those of {name} takes {each:,}: {needed:,} would be needed")
            continue
        added = await dry.nodes(like, needed)
        verdict = await dry.pods(probe, left, priority, among=there + needed)
        await dry.drop(added)
        what = f"{first}{counted(needed, 'more node')} like those of {name}{cost(like, needed, answer.prices)}"
        if verdict.all_fit:
            answer.changes.append(FitChange(what, needed))
        else:
            answer.tried.append(f"with {what} {before + verdict.fitted:,} of {probe.count:,} fit")


async def _fewest(dry: Dry, probe: Probe, priority: str, like: dict[str, Any], most: int, there: int) -> int:
    """How few more nodes a gang needs, in addition to what is free on the others; `most` if fewer do not suffice."""
    low, high = 1, most
    while low < high:
        middle = (low + high) // 2
        added = await dry.nodes(like, middle)
        verdict = await dry.pods(probe, probe.count, priority, among=there + middle)
        await dry.drop(added)
        low, high = (low, middle) if verdict.all_fit else (middle + 1, high)
    return low


def cost(node: Mapping[str, Any], count: int, prices: Prices) -> str:
    """What so many nodes like one cost; empty for a node of no instance type."""
    labels = node["metadata"].get("labels") or {}
    if INSTANCE_TYPE_LABEL not in labels:
        return ""
    price = prices.of_node(labels)
    return f" (+${count * price.hourly:,.2f}/h)" if price else " (price not known)"


def _group(node: Mapping[str, Any]) -> str:
    labels = node["metadata"].get("labels") or {}
    return str(labels.get(GROUP_LABEL) or labels.get(INSTANCE_TYPE_LABEL) or node["metadata"]["name"])


def _topology(probe: Probe) -> list[str]:
    """The labels whose value the pods of a gang have to share."""
    constraints = (probe.group or {}).get("schedulingConstraints") or {}
    return [str(each["key"]) for each in constraints.get("topology") or ()]


def _shapes(nodes: list[dict[str, Any]], keys: list[str]) -> dict[str, dict[str, Any]]:
    """A healthy node of each of the largest groups; groups with the same capacity and taints count as one.

    Unless they differ in labels of ``keys``: then a group has a name for each of their values.
    """
    seen: dict[str, tuple[str, dict[str, Any]]] = {}
    counts: Counter[str] = Counter()
    for node in nodes:
        ready = {each["type"]: each["status"] for each in node["status"].get("conditions") or ()}.get("Ready")
        if ready != "True" or node["spec"].get("unschedulable"):
            continue
        place = [str((node["metadata"].get("labels") or {}).get(key)) for key in keys]
        shape = json.dumps([node["status"].get("allocatable"), node["spec"].get("taints"), place], sort_keys=True)
        counts[shape] += 1
        seen.setdefault(shape, (" in ".join([_group(node), *place]), node))
    return dict(seen[shape] for shape, _ in counts.most_common(_SHAPES))

"""What a preview says in addition to Pulumi's differences: what is lost with a fault, a pool, or some of its nodes.

For a fault or a pool that leaves the stack, Pulumi calls no method of the provider. The cluster, which records both, is
asked when its own resource is compared. See docs/decisions/previewed-removals.md.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING

from kumulus.kube.codecs import METADATA_ONLY
from kumulus.kube.namespaces import NAMESPACES
from kumulus.kube.pods import PODS
from kumulus.model.consequences import Hourly, consequences
from kumulus.model.contents import FAULTS, POOLS, PREVIEW, removed, renamed
from kumulus.model.fault_consequences import described_end
from kumulus.model.pools import Pool
from kumulus.model.words import counted
from kumulus.nodes.faults import records
from kumulus.nodes.faults.pods import count_affected
from kumulus.nodes.pools import scaled
from kumulus.nodes.pools.removal import bound_to
from kumulus.nodes.reporter import Reporter
from kumulus.provider.connections import GONE, SILENT, UNASKED, Connections
from kumulus.provider.resources.base import Properties
from kumulus.provider.resources.in_cluster import LOOK_PATIENCE
from kumulus.provider.values import contains_unknown

if TYPE_CHECKING:
    from kumulus.kube import Client

Reporters = Callable[[str], Reporter]
"""Gives the reporter of the resource with a URN."""


async def report_removals(
    connections: Connections,
    reporters: Reporters,
    urn: str,
    old_inputs: Properties,
    old_outputs: Properties,
    inputs: Properties,
    hourly: Hourly,
) -> None:
    """Report, under each fault or pool that leaves the stack, what its removal does; only in a preview.

    Args:
        urn: the cluster's, as are the properties.
    """
    before, after = old_inputs.get("contents"), inputs.get("contents")
    faults, pools = removed(before, after, FAULTS), removed(before, after, POOLS)
    added = removed(after, before, POOLS)
    if not (faults or pools) or not isinstance(after, dict) or not after.get(PREVIEW):
        return
    kubeconfig, identity = old_outputs.get("kubeconfig"), old_outputs.get("identity")
    if not kubeconfig or not identity or contains_unknown([kubeconfig, identity]):
        return
    try:
        client = await connections.client(str(kubeconfig), str(identity), LOOK_PATIENCE)
        meanings = await _meanings(client, faults, pools, added, hourly)
    except GONE:
        return
    except SILENT as error:
        names = ", ".join([*faults, *pools][:5])
        reporters(urn).warn(f"what the removal of {names} means could not be looked up: {error}")
        return
    for path, meaning in meanings.items():
        reporters(_sibling(urn, path)).info(meaning)


_BUILT_IN = {"default", "kube-node-lease", "kube-public", "kube-system"}


async def what_is_in(connections: Connections, kubeconfig: str, identity: str) -> str:
    """How much there is in a cluster, as the end of a sentence; empty if it is empty or does not say."""
    try:
        counts = await _counts(await connections.client(kubeconfig, identity, LOOK_PATIENCE))
    except UNASKED:
        return ""
    held = [counted(number, what) for what, number in counts.items() if number]
    if not held:
        return ""
    *others, last = held
    return f"; it has {', '.join(others)} and {last}" if others else f"; it has {last}"


async def _counts(client: Client) -> dict[str, int]:
    """How many pods, Jobs and namespaces there are, of the last without those of every cluster."""
    found = {}
    for what, path in (("pod", PODS), ("Job", "/apis/batch/v1/jobs"), ("namespace", NAMESPACES)):
        found[what] = 0
        async for page in client.pages(path, patience=LOOK_PATIENCE, accept=METADATA_ONLY):
            found[what] += sum(what != "namespace" or each["metadata"]["name"] not in _BUILT_IN for each in page)
    return found


async def _meanings(
    client: Client, faults: list[str], pools: list[str], added: list[str], hourly: Hourly
) -> dict[str, str]:
    """What the removal of each resource does, by the end of its URN; `added` are the new pools."""
    known = await records.read(client, LOOK_PATIENCE)
    found: dict[str, str] = {}
    for name in faults:
        record = known.faults.get(name)
        if record is not None and record.declared and not record.ending:
            running = await count_affected(client, record.nodes, record.pods, known.pools)
            found[f"kumulus:index:Fault::{name}"] = described_end(
                record.kind, record.node, record.pods, record.nodes, known.pools.values(), running, record.offers
            )
    for name in pools:
        if (pool := known.pools.get(name)) is not None:
            bound = len(await bound_to(client, set(pool.node_names()), running=True))
            path = f"kumulus:index:KwokNodeGroup$kumulus:index:NodePool::{name}"
            meaning = consequences(pool, None, bound, hourly).describe()
            found[path] = meaning + _renamed(pool.group, known.pools, pools, added)
    return found


def _renamed(group: str, known: Mapping[str, Pool], gone: list[str], added: list[str]) -> str:
    """A remark on a removal if the group seems to have been renamed; empty otherwise."""
    pools = [known[name] for name in gone if name in known]
    if {pool.group for pool in pools} != {group}:
        return ""
    other = renamed([pool.zone for pool in pools], added)
    if other is None:
        return ""
    return f"; {group} and {other} are two groups: a node is called after its group, so {other}'s are new"


def _sibling(urn: str, path: str) -> str:
    """The URN of another resource of the component that a cluster is part of.

    Args:
        urn: the cluster's, ``…::<type of the component>$<KwokCluster>$<Cluster>::<name>``.
        path: the other's types below that component, and its name.
    """
    head, types, _ = urn.rsplit("::", 2)
    parents = types.split("$")[:-2]
    return f"{head}::{'$'.join([*parents, path])}"


async def report_update(
    ask: Callable[[], Awaitable[Client]], old: Pool | None, new: Pool, hourly: Hourly, report: Reporter
) -> None:
    """Report nodes, GPUs, CPUs and memory gained or lost, and running pods that would be deleted.

    Args:
        ask: gives a client of the cluster; it may raise one of :data:`UNASKED`.
        old: the recorded pool; None if it is not known.
    """
    resized = old is not None and old.replicas != new.replicas
    old, new = await _as_left(ask, old, new)
    bound = 0
    going = _names(old) - _names(new) if old else set()
    if going:
        try:
            bound = len(await bound_to(await ask(), going, running=True))
        except UNASKED as error:
            report.warn(f"pods on the nodes that would go could not be counted: {error}")
    if meaning := consequences(old, new, bound, hourly):
        report.info(meaning.describe())
    elif new.bounds and resized:
        between = f"between {new.bounds.least:,} and {new.bounds.most:,}"
        report.info(f"pool {new.name}: stays at {new.count:,} nodes; {between}, the autoscaler has the number")


async def _as_left(ask: Callable[[], Awaitable[Client]], old: Pool | None, new: Pool) -> tuple[Pool | None, Pool]:
    """The old and the new pool with the nodes that exist, if an autoscaler has the number, or had it."""
    if old is None or (old.bounds is None and new.bounds is None):
        return old, new
    with suppress(*UNASKED):
        there = (await scaled.numbered(await ask(), old, LOOK_PATIENCE)).keys()
        if new.bounds:
            new = scaled.with_ordinals(new, scaled.within_bounds(new, there))
        return scaled.with_ordinals(old, there), new
    return old, new


def _names(pool: Pool) -> set[str]:
    """The names of a pool's nodes, without those that an autoscaler has left out."""
    return {pool.node_name(ordinal) for ordinal in range(pool.replicas) if ordinal not in pool.absent}

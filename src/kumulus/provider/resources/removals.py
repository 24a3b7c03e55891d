"""Previews the removal of a fault or a pool from the stack, for which Pulumi calls no provider method.

The cluster is asked, which records its faults and pools. See docs/decisions/previewed-removals.md.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from kumulus.kube.codecs import METADATA_ONLY
from kumulus.model.contents import FAULTS, POOLS, PREVIEW, removed, renamed
from kumulus.model.words import counted
from kumulus.nodes.reporter import Reporter
from kumulus.provider.connections import GONE, SILENT, UNASKED, Connections
from kumulus.provider.resources.base import Properties
from kumulus.provider.resources.in_cluster import LOOK_PATIENCE
from kumulus.provider.values import contains_unknown

if TYPE_CHECKING:
    from kumulus.kube import Client
    from kumulus.model.consequences import Hourly
    from kumulus.model.pools import Pool

Reporters = Callable[[str], Reporter]
"""Gives the reporter of the resource with a URN."""


async def preview(
    connections: Connections,
    reporters: Reporters,
    urn: str,
    old: tuple[Properties, Properties],
    inputs: Properties,
    hourly: Hourly,
) -> None:
    """Report, under each resource that is removed, what its removal does."""
    before, after = old[0].get("contents"), inputs.get("contents")
    faults, pools = removed(before, after, FAULTS), removed(before, after, POOLS)
    added = removed(after, before, POOLS)
    if not (faults or pools) or not isinstance(after, dict) or not after.get(PREVIEW):
        return
    kubeconfig, identity = old[1].get("kubeconfig"), old[1].get("identity")
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
    return f"; it has {' and '.join(filter(None, [', '.join(held[:-1]), held[-1]]))}" if held else ""


async def _counts(client: Client) -> dict[str, int]:
    """How many pods, Jobs and namespaces there are, of the last without those of every cluster."""
    from kumulus.kube.namespaces import NAMESPACES
    from kumulus.kube.pods import PODS

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
    # Imported here: most previews remove nothing.
    from kumulus.model.consequences import consequences
    from kumulus.model.fault_consequences import described_end
    from kumulus.nodes.faults import pods, records
    from kumulus.nodes.pools.removal import bound_to

    known = await records.read(client, LOOK_PATIENCE)
    found: dict[str, str] = {}
    for name in faults:
        record = known.faults.get(name)
        if record is not None and record.declared and not record.ending:
            running = await pods.count_affected(client, record.nodes, record.pods, known.pools)
            found[f"kumulus:index:Fault::{name}"] = described_end(
                record.kind, record.node, record.pods, record.nodes, known.pools.values(), running, record.offers
            )
    for name in pools:
        if (pool := known.pools.get(name)) is not None:
            bound = len(await bound_to(client, set(pool.node_names()), running=True))
            path = f"kumulus:index:KwokNodeGroup$kumulus:index:NodePool::{name}"
            found[path] = consequences(pool, None, bound, hourly).describe() + _renamed(
                pool.group, known.pools, pools, added
            )
    return found


def _renamed(group: str, known: Mapping[str, Pool], gone: list[str], added: list[str]) -> str:
    """A remark on a removal if the group seems to have been renamed; empty otherwise."""
    pools = [known[name] for name in gone if name in known]
    if {pool.group for pool in pools} != {group}:
        return ""
    other = renamed([pool.zone for pool in pools], added)
    return (
        f"; {group} and {other} are two groups: a node is called after its group, so {other}'s are new" if other else ""
    )


def _sibling(urn: str, path: str) -> str:
    """The URN of another resource of the component that a cluster is part of.

    Args:
        urn: the cluster's, ``…::<type of the component>$<KwokCluster>$<Cluster>::<name>``.
        path: the other's types below that component, and its name.
    """
    head, types, _ = urn.rsplit("::", 2)
    parents = types.split("$")[:-2]
    return f"{head}::{'$'.join([*parents, path])}"

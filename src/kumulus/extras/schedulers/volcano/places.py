"""The places of a topology, as Volcano knows them: HyperNodes, whose tiers have the levels' names."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from kumulus.extras.schedulers.errors import SchedulerError
from kumulus.extras.schedulers.fabrics import Fabric, hyper_nodes, tier_name, zone_nodes
from kumulus.extras.schedulers.hypernodes import HYPERNODES, manifest
from kumulus.extras.schedulers.templates import Manifest
from kumulus.kube.errors import tolerating
from kumulus.model.pools import Pool

if TYPE_CHECKING:
    from kumulus.kube import Client


async def places(client: Client, pools: Sequence[Pool], levels: Iterable[str]) -> list[Manifest]:
    """See :attr:`kumulus.extras.schedulers.descriptor.Scheduler.places`.

    The HyperNodes that the cluster has are used as they are, whoever made them.
    """
    there: list[tuple[str, int]] = []
    # Volcano's kinds are defined when it starts, unless the cluster has them.
    with tolerating(404):
        async for page in client.pages(HYPERNODES):
            there += [(str(each["spec"].get("tierName") or ""), int(each["spec"]["tier"])) for each in page]
    if there:
        check(there, levels)
        return []
    with_levels = [Fabric.of(pool) for pool in pools if pool.topology]
    made = (hyper_nodes(with_levels) if with_levels else zone_nodes(pool.zone for pool in pools)).values()
    check([(each.tier_name, each.tier) for each in made], levels)
    return [manifest(each, {}) for each in made]


def check(tiers: Iterable[tuple[str, int]], levels: Iterable[str]) -> None:
    """Check that each level is a tier: Volcano places a gang anywhere if it knows no tier of the name.

    Args:
        tiers: the name and the number of each HyperNode's tier.
        levels: that gangs have to be in one place of.
    """
    known: dict[str, set[int]] = {}
    for name, number in tiers:
        known.setdefault(name, set()).add(number)
    for level in levels:
        numbers = sorted(known.get(tier_name(level), ()))
        if not numbers:
            names = ", ".join(sorted(known.keys() - {""}, key=lambda name: min(known[name])))
            there = f"the tiers of its HyperNodes are {names}" if names else "it has no HyperNodes"
            raise SchedulerError(
                f"volcano knows no {level} in this cluster: {there}\n"
                "  Name one of them, or give the node groups a topology that has that level"
            )
        if len(numbers) > 1:
            tiers_of = " and ".join(map(str, numbers))
            raise SchedulerError(
                f"the HyperNodes of {tier_name(level)} are of the tiers {tiers_of}, and volcano takes one\n"
                "  Give the node groups topologies of the same order, or name another level"
            )

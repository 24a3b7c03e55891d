"""What the machines of a stack cost, in the form passed to its cluster's Prometheus."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kumulus.model.pools import INSTANCE_TYPE_LABEL, REGION_LABEL
from kumulus.nodes.catalog.prices import is_spot

if TYPE_CHECKING:
    from kumulus.stackfile.load import Loaded


def machine_prices(loaded: Loaded) -> list[dict[str, Any]]:
    """The known prices of each kind of machine that the stack has, or that its autoscaler may create.

    Raises:
        SpecError: the stack's file of prices has been changed since it was checked, and now has mistakes.
    """
    prices = loaded.known_prices()
    found = {
        (
            pool.labels.get(INSTANCE_TYPE_LABEL, ""),
            pool.labels.get(REGION_LABEL, ""),
            is_spot(pool.labels),
        ): price.hourly
        for pool in loaded.pools
        if (price := prices.of_node(pool.labels))
    }
    for machine in (loaded.autoscaler or {}).get("machines", ()):
        for each in machine["offerings"]:
            found[machine["type"], each["region"], each["spot"]] = each["hourly"]
    return [
        {"instanceType": kind, "region": region, "capacityType": "spot" if spot else "on-demand", "hourly": hourly}
        for (kind, region, spot), hourly in sorted(found.items())
    ]

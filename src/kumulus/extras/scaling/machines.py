"""The machines that an autoscaler may create, whose nodes are like those of node groups of the same instance types."""

import os
import random
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from kumulus.extras.scaling.section import AutoscalerSpec
from kumulus.model.distributions import Distribution, drawn
from kumulus.model.errors import Problem
from kumulus.model.plain import plain
from kumulus.model.pools import CLUSTER_LABEL, GROUP_LABEL, POOL_LABEL, REGION_LABEL, ZONE_LABEL, Pool
from kumulus.nodes.catalog.instances import instance_types
from kumulus.nodes.catalog.prices import Prices
from kumulus.stackfile.expand import pools
from kumulus.stackfile.groups import region_of
from kumulus.stackfile.model import ClusterSpec

# Number of delays that are drawn; further machines start again with the first delay.
_DRAWN = 499
# Labels that a placement sets, and the one that names a node's group.
_OF_PLACEMENT = (GROUP_LABEL, POOL_LABEL, ZONE_LABEL, REGION_LABEL)


def options(asked: AutoscalerSpec, prices: Prices, cluster: str, kubelet: str) -> tuple[dict[str, Any], list[Problem]]:
    """The plugin's inputs for an autoscaler, JSON-able, and the problems that leave it without machines.

    Args:
        prices: what machines cost; those without a price are not offered.
        cluster: the cluster's name, for the nodes' label.
        kubelet: the version that the nodes say, as in :func:`pools`.
    """
    plain = {key: value for key, value in asked.model_dump().items() if value not in (None, {}, [], "")}
    for key in ("zones", "instanceTypes", "capacityTypes", "registrationDelay"):
        plain.pop(key, None)
    if asked.registrationDelay is not None:
        plain |= delays(asked.registrationDelay, cluster)
    regions = {zone: region_of(zone) for zone in asked.zones}
    if problems := _zone_problems(asked, regions, prices):
        return {}, problems
    names = list(dict.fromkeys(asked.instanceTypes)) or sorted(
        {kind for region in regions.values() for spot in (False, True) for kind in prices.types(region, spot=spot)}
        & set(instance_types())
    )
    machines = []
    for name in names:
        offerings = _offerings(name, regions, asked.capacityTypes, prices)
        if offerings:
            machines.append({"type": name, **_node(name, cluster, kubelet), "offerings": offerings})
        elif name in asked.instanceTypes:
            at = asked.instanceTypes.index(name)
            remedy = "leave it out, or write a file of your own as kumulus:prices (docs/prices.md)"
            problems.append(Problem(f"autoscaler.instanceTypes[{at}]", f"{name} has no price in these zones", remedy))
    if not machines and not problems:
        problems.append(Problem("autoscaler", "no instance type of the catalog has a price in its zones"))
    return {**plain, "machines": machines}, problems


def _zone_problems(asked: AutoscalerSpec, regions: Mapping[str, str], prices: Prices) -> list[Problem]:
    """Zones of no known region or, if there are none, zones of regions without prices."""
    problems = [
        Problem(f"autoscaler.zones[{at}]", f"{zone} tells no region", "write a zone such as us-central1-a")
        for at, (zone, region) in enumerate(regions.items())
        if not region
    ]
    if problems:
        return problems
    known = prices.regions()
    for at, (zone, region) in enumerate(regions.items()):
        if not any(prices.types(region, spot=kind == "spot") for kind in asked.capacityTypes):
            message = f"no price of {' or '.join(asked.capacityTypes)} machines is known in {region}"
            remedy = f"write zones of {', '.join(known)}, or a file of your own as kumulus:prices (docs/prices.md)"
            problems.append(Problem(f"autoscaler.zones[{at}]", f"{zone}: {message}", remedy))
    return problems


def of_groups(
    asked: AutoscalerSpec, prices: Prices, cluster: str, pools: Iterable[Pool], base: Path
) -> tuple[dict[str, Any], list[Problem]]:
    """The plugin's inputs for an autoscaler of node groups, JSON-able, and the problems that keep it from running.

    Args:
        prices: what machines cost; groups without a price are resized too.
        base: the directory that the program's path is relative to.
    """
    binary = Path(base, asked.binary).absolute()
    if not os.path.isfile(binary) or not os.access(binary, os.X_OK):
        there = "cannot be run" if os.path.exists(binary) else "is not there"
        remedy = "write the path of cluster-autoscaler's program, which Kumulus does not build"
        return {}, [Problem("autoscaler.binary", f"{binary} {there}", remedy)]
    hourly = {}
    for pool in pools:
        if pool.bounds and (price := prices.of_node(pool.labels)):
            hourly[pool.name] = price.hourly
    found: dict[str, Any] = {"name": asked.name, "binary": str(binary), "options": dict(asked.options)}
    if asked.registrationDelay is not None:
        drawn_ones = delays(asked.registrationDelay, cluster)
        fixed = [asked.registrationDelay.first] if "registrationDelay" in drawn_ones else []
        found["registrationDelays"] = drawn_ones.get("registrationDelays", fixed)
    return {**found, "hourly": hourly}, []


def delays(delay: Distribution, seed: str) -> dict[str, Any]:
    """How long machines take: one duration for all, or a list of random ones that is used cyclically."""
    if delay.kind == "fixed":
        return {"registrationDelay": f"{delay.first:g}s"}
    source = random.Random(f"{seed}/registrationDelay")
    return {"registrationDelays": [round(drawn(delay, source), 3) for _ in range(_DRAWN)]}


def _offerings(name: str, regions: dict[str, str], kinds: Iterable[str], prices: Prices) -> list[dict[str, Any]]:
    found = []
    for zone, region in regions.items():
        for kind in kinds:
            price = prices.of(name, region, spot=kind == "spot")
            if price is not None:
                found.append({"zone": zone, "region": region, "spot": kind == "spot", "hourly": price.hourly})
    return found


def _node(name: str, cluster: str, kubelet: str) -> dict[str, Any]:
    """The part of a type's nodes that is the same in every zone."""
    pool = _pool(name, cluster, kubelet)
    labels = {key: value for key, value in pool.labels.items() if key not in _OF_PLACEMENT}
    return {
        "labels": {**labels, CLUSTER_LABEL: cluster},
        "capacity": dict(pool.capacity),
        "nodeInfo": plain(pool.node_info),
    }


def _pool(name: str, cluster: str, kubelet: str) -> Pool:
    group = {"name": "x", "instanceType": name, "placement": [{"availabilityZone": "x", "replicas": 1}]}
    [found] = pools(ClusterSpec.checked({"nodeGroups": [group]}), cluster, kubelet=kubelet)
    return found

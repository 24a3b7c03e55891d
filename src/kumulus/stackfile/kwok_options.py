"""Options of the kwok runtime that the rest of a stack file requires, in addition to its section ``kwok``."""

from typing import Any

from kumulus.model.pools import INSTANCE_TYPE_LABEL, REGION_LABEL
from kumulus.model.quantity import parse
from kumulus.nodes.catalog.prices import is_spot
from kumulus.stackfile.load import LoadedCluster
from kumulus.stackfile.model import ClusterSpec


def local_options(loaded: LoadedCluster) -> dict[str, Any]:
    """All options that a cluster's pods, its faults and the sections of extras require."""
    # A fault of pods is a stage, which KWOK has to read from the cluster.
    stages = {"stageObjects": True} if any(fault.pods for fault in loaded.faults) else {}
    measured = {"prices": machine_prices(loaded)} if loaded.spec.measured else {}
    return {**stages, **cluster_options(loaded.spec), **measured, **loaded.section_options}


def cluster_options(spec: ClusterSpec) -> dict[str, Any]:
    """Those that pod lifecycles and usage require."""
    options: dict[str, Any] = {"stageObjects": True} if spec.podLifecycles else {}
    # Prometheus and metrics-server read the usage of nodes and pods even where it is zero.
    if spec.podUsage or spec.measured:
        gpus = [group.nodeTemplate.capacity.get("nvidia.com/gpu", 0) for group in spec.nodeGroups]
        has_gpus = any(parse(each).nanos for each in gpus)
        options["podUsage"] = "gpus" if has_gpus else "pods"
    usages = [each.usage() for each in spec.podUsage]
    if shared := [index for index, each in enumerate(usages) if each.shared]:
        # A pod has the first usage that selects it: those behind the last load take no pods from any.
        up_to_last = usages[: shared[-1] + 1]
        options["podLoads"] = [{**each.selection.to_plain(), "shared": each.shared} for each in up_to_last]
    return options


def machine_prices(loaded: LoadedCluster) -> list[dict[str, Any]]:
    """The known prices of each kind of machine that the stack has, or that its autoscaler may create."""
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
    for machine in loaded.section_options.get("autoscaler", {}).get("machines", ()):
        for each in machine["offerings"]:
            found[machine["type"], each["region"], each["spot"]] = each["hourly"]
    return [
        {"instanceType": kind, "region": region, "capacityType": "spot" if spot else "on-demand", "hourly": hourly}
        for (kind, region, spot), hourly in sorted(found.items())
    ]

"""What is shown of a fleet: Grafana dashboards, and the recording and alert rules that they stand on.

The dashboards are described once, in dashboards.yaml, and made when
they are asked for; `python -m kumulus.extras.watch.dashboards DIRECTORY` writes their JSON files. This package imports
nothing else of the project.
"""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from kumulus.extras.watch.dashboards.grafana import text
from kumulus.extras.watch.dashboards.model import load

NODE_LABELS = (
    "kumulus.io/group",
    "kumulus.io/pool",
    "topology.kubernetes.io/zone",
    "topology.kubernetes.io/region",
    "node.kubernetes.io/instance-type",
    "nvidia.com/gpu.product",
    # What marks a spot machine, as kumulus.nodes.catalog.prices has them.
    "karpenter.sh/capacity-type",
    "eks.amazonaws.com/capacityType",
    "cloud.google.com/gke-spot",
    "kubernetes.azure.com/scalesetpriority",
    # KEMU's, whose own dashboard then works as well.
    "datastrophic.io/gpu-type",
)
"""The node labels that kube-state-metrics has to show."""

NODE_ANNOTATIONS = ("kumulus.io/faults",)
"""The node annotations that it has to show."""


HERE = Path(__file__).resolve().parent
_PRICES = """  - name: kumulus-prices
    rules:
"""
_PRICE = """      - record: kumulus:price:hourly
        expr: vector({hourly})
        labels: {{instance_type: {instanceType}, region: {region}, capacity_type: {capacityType}}}
"""
DASHBOARDS = load(HERE / "dashboards.yaml")


def allowed(keys: Sequence[str]) -> str:
    """Labels or annotations of nodes, as kube-state-metrics is set to show them."""
    return f"nodes=[{','.join(dict.fromkeys(keys))}]"


def rules(prices: Sequence[Mapping[str, Any]] = ()) -> str:
    """Recording and alert rules, as Prometheus reads them.

    Args:
        prices: what machines cost, `instanceType`, `region`, `capacityType` and `hourly`, in US dollars; each becomes a
            series of `kumulus:price:hourly`, on which those of costs stand.
    """
    found = (HERE / "rules" / "fleet.yaml").read_text(encoding="utf-8")
    if not prices:
        return found
    each = "".join(_PRICE.format(**{key: json.dumps(value) for key, value in price.items()}) for price in prices)
    return f"{found.rstrip()}\n{_PRICES}{each}"


def provisioned() -> dict[str, str]:
    """The dashboards as Grafana reads them, by file name."""
    return {f"{each.uid}.json": text(each) for each in sorted(DASHBOARDS, key=lambda each: each.uid)}

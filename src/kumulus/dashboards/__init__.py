"""What is shown of a fleet: Grafana dashboards, and the recording and alert rules that they stand on.

The dashboards are described once, in Python (`overview`, `scheduler`, `control_plane`, `faults`); `python -m
kumulus.dashboards` writes the JSON files beside them. This package imports nothing else of the project.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

NODE_LABELS = (
    "kumulus.io/group",
    "kumulus.io/pool",
    "topology.kubernetes.io/zone",
    "topology.kubernetes.io/region",
    "node.kubernetes.io/instance-type",
    "nvidia.com/gpu.product",
    # KEMU's, whose own dashboard then works as well.
    "datastrophic.io/gpu-type",
)
"""The node labels that kube-state-metrics has to show."""

NODE_ANNOTATIONS = ("kumulus.io/faults",)
"""The node annotations that it has to show."""


HERE = Path(__file__).resolve().parent


def allowed(keys: Sequence[str]) -> str:
    """Labels or annotations of nodes, as kube-state-metrics is set to show them."""
    return f"nodes=[{','.join(dict.fromkeys(keys))}]"


def rules() -> str:
    """Recording and alert rules, as Prometheus reads them."""
    return (HERE / "rules" / "fleet.yaml").read_text(encoding="utf-8")


def provisioned() -> dict[str, str]:
    """The dashboards as Grafana reads them, by file name."""
    return {file.name: file.read_text(encoding="utf-8") for file in sorted(HERE.glob("*.json"))}

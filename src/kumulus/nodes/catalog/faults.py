"""The catalog of faults: what a kind does to nodes, pods or offerings, read from `faults.yaml` next to this file.

A test checks every entry, so nothing here reports malformed ones.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from kumulus.kube.safe_yaml import FAST_LOADER
from kumulus.model.durations import seconds
from kumulus.model.fault_effects import Interruption, NodeEffects, OfferEffects, PodEffects, node_effects_from
from kumulus.model.plain import made_from

FILE = Path(__file__).with_name("faults.yaml")


@dataclass(frozen=True)
class FaultKind:
    """An entry of the catalog."""

    name: str
    """What a stack file writes as `kind`."""
    summary: str
    """What happens, in a sentence."""
    sources: Mapping[str, str]
    """Names and URLs of the sources."""
    node: NodeEffects
    pods: PodEffects | None
    """What it does to pods; None for a fault of nodes."""
    offers: OfferEffects | None = None
    """What it does to an autoscaler's offerings; None for other faults."""
    also: tuple[str, ...] = ()
    """Other names that a stack file may write."""

    @property
    def of_nodes(self) -> bool:
        """Whether it is a fault of nodes."""
        return self.pods is None and self.offers is None


@cache
def fault_kinds() -> Mapping[str, FaultKind]:
    """Every entry of the catalog, by name: faults of nodes first, then those of pods and of offerings."""
    document = yaml.load(FILE.read_text(), FAST_LOADER)  # noqa: S506 - a safe loader, chosen above
    cited: dict[str, str] = document["sources"]
    found = {}
    for name, raw in document["nodes"].items():
        also = tuple(raw.get("also", ()))
        found[name] = FaultKind(name, raw["summary"], _cited(raw, cited), _node_effects(raw), None, also=also)
    for name, raw in document["pods"].items():
        pods = made_from(PodEffects, raw)
        found[name] = FaultKind(name, raw["summary"], _cited(raw, cited), NodeEffects(), pods)
    for name, raw in document["offers"].items():
        taken = Interruption() if raw.get("takenBack") else None
        offers = OfferEffects(sold_out=raw.get("soldOut", False), interruption=taken)
        found[name] = FaultKind(name, raw["summary"], _cited(raw, cited), NodeEffects(), None, offers)
    return found


@cache
def names() -> Mapping[str, str]:
    """Every name that a stack file may write as `kind`, with the name of its entry."""
    return {name: kind.name for kind in fault_kinds().values() for name in (kind.name, *kind.also)}


def _cited(raw: Mapping[str, Any], cited: Mapping[str, str]) -> dict[str, str]:
    return {name: cited[name] for name in raw["sources"]}


def _node_effects(raw: Mapping[str, Any]) -> NodeEffects:
    conditions = {kind: {"status": "True", **each} for kind, each in (raw.get("conditions") or {}).items()}
    return node_effects_from({**raw, "conditions": conditions, "down": seconds(raw.get("down", "0s"))})

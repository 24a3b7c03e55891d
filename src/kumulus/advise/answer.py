"""An advice for people, and as the node groups of a stack file."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

import yaml

from kumulus.advise.advice import Advice
from kumulus.model.names import dns_safe

_NAMED = 4
_FIRST = {"share": "the largest pods", "cpu": "pods of the most CPU", "memory": "pods of the most memory"}


def lines(advice: Advice, zones: Sequence[str]) -> Iterator[str]:
    """The advice for a terminal; everything else than YAML is a comment, so that all of it can be pasted.

    Args:
        advice: the advice.
        zones: the zones asked for, over which nodes are spread if no pod is restricted to a zone.
    """
    nodes = sum(number for _, number in advice.nodes)
    yield f"# {advice.pods:,} pods on {nodes:,} nodes of {len({offer.kind for offer, _ in advice.nodes})} types"
    yield f"# price        ${advice.hourly:,.2f}/h"
    yield f"# lower bound  ${advice.bound:,.2f}/h: no fleet of these types costs less"
    yield f"# gap          {advice.gap:.1%}".replace("%", " %")
    yield f"# packed as tightly as the solver knows: ${advice.packed:,.2f}/h"
    if advice.in_file_order:
        first = _FIRST[advice.order]
        yield f"# {first} are placed first; in the files' order {advice.in_file_order:,} would find no node"
    if advice.unmodelled:
        yield f"# left to the scheduler: {', '.join(advice.unmodelled)}"
    if advice.unpriced:
        more = f" and {len(advice.unpriced) - _NAMED} more" if len(advice.unpriced) > _NAMED else ""
        yield f"# not looked at, no price is known: {', '.join(advice.unpriced[:_NAMED])}{more}"
    yield yaml.safe_dump(json.loads(json.dumps({"nodeGroups": groups(advice, zones)})), sort_keys=False).rstrip()


def groups(advice: Advice, zones: Sequence[str]) -> list[dict[str, Any]]:
    """The node groups of a stack file."""
    found: dict[str, dict[str, Any]] = {}
    for offer, number in advice.nodes:
        name = dns_safe(offer.kind, 40)
        group = found.setdefault(name, {"name": name, **offer.group, "placement": []})
        for zone, replicas in _spread(number, list(zones) if advice.any_zone and zones else [offer.zone]):
            group["placement"].append({"availabilityZone": zone, "replicas": replicas})
    return list(found.values())


def _spread(number: int, zones: Sequence[str]) -> Iterator[tuple[str, int]]:
    for at, zone in enumerate(zones):
        if replicas := number // len(zones) + (at < number % len(zones)):
            yield zone, replicas

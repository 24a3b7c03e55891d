"""An advice for people, and as the node groups of a stack file."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

from kumulus.extras.advise.advice import Advice
from kumulus.kube import yaml_writing
from kumulus.model.names import dns_safe
from kumulus.model.pools import REGION_LABEL
from kumulus.model.words import counted, listed
from kumulus.stackfile.groups import region_of

_NAMED = 4
_FIRST = {"share": "the largest pods", "cpu": "pods of the most CPU", "memory": "pods of the most memory"}


def lines(advice: Advice) -> Iterator[str]:
    """The advice for a terminal; everything else than YAML is a comment, so that all of it can be pasted."""
    nodes = sum(number for _, number in advice.nodes)
    kinds = counted(len({offer.kind for offer, _ in advice.nodes}), "type")
    yield f"# {counted(advice.pods, 'pod')} on {counted(nodes, 'node')} of {kinds}"
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
        yield f"# not looked at, no price is known: {listed(advice.unpriced, _NAMED)}"
    if advice.uncounted:
        yield f"# not counted, as it is not known how many pods they have: {listed(advice.uncounted, _NAMED)}"
    yield yaml_writing.written(json.loads(json.dumps({"nodeGroups": groups(advice)}))).rstrip()


def plain(advice: Advice) -> dict[str, Any]:
    """The advice for programs."""
    return {
        "pods": advice.pods,
        "nodes": sum(number for _, number in advice.nodes),
        "hourly": advice.hourly,
        "lowerBound": advice.bound,
        "gap": advice.gap,
        "packed": advice.packed,
        "unmodelled": advice.unmodelled,
        "unpriced": advice.unpriced,
        "uncounted": advice.uncounted,
        "nodeGroups": groups(advice),
    }


def groups(advice: Advice) -> list[dict[str, Any]]:
    """The node groups of a stack file; nodes are spread over the zones of their offer."""
    found: dict[str, dict[str, Any]] = {}
    for offer, number in advice.nodes:
        group = found.setdefault(offer.kind, {"name": dns_safe(offer.kind, 40), **offer.group, "placement": []})
        region = offer.labels.get(REGION_LABEL, "")
        for zone, replicas in _spread(number, offer.zones):
            # Without its region, a node would have no price, and not be where the pods are to be.
            there = {"region": region} if region and region != region_of(zone) else {}
            group["placement"].append({"availabilityZone": zone, "replicas": replicas, **there})
    return list(found.values())


def _spread(number: int, zones: Sequence[str]) -> Iterator[tuple[str, int]]:
    for at, zone in enumerate(zones):
        if replicas := number // len(zones) + (at < number % len(zones)):
            yield zone, replicas

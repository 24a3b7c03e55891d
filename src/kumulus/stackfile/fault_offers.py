"""The effects of a fault of an autoscaler's offerings, and the problems of how it is written."""

from collections.abc import Iterator
from dataclasses import replace

from kumulus.model.checks import problem
from kumulus.model.errors import Problem, Where
from kumulus.model.offer_effects import NOTICE, Interruption, OfferEffects
from kumulus.nodes.catalog.faults import kinds
from kumulus.stackfile.faults import NODE_KEYS, OFFER_KEYS, POD_KEYS, Fault, Offers

_DRAWN_BY = ("labels", "count", "percent", "seed")
# What each kind needs, and may have, in addition to `offers`.
_NEEDED = {"price-change": "priceFactor", "quota": "limits"}
_REMEDIES = {"priceFactor": "write priceFactor: 2 for twice the price", "limits": 'write limits: {cpu: "64"}'}
_OWN = {**{kind: (key,) for kind, key in _NEEDED.items()}, "spot-interruption": ("target", "notice")}


def offer_effects(fault: Fault) -> OfferEffects | None:
    """What a fault does to the offerings that it selects; None for a fault of nodes or pods."""
    kind = kinds()[fault.kind] if fault.kind else None
    if kind is None or kind.offers is None:
        return None
    which = fault.offers or Offers()
    found = replace(
        kind.offers,
        price_factor=fault.priceFactor if fault.priceFactor is not None else 1.0,
        zones=tuple(which.zones),
        instance_types=tuple(which.instanceTypes),
        capacity_types=tuple(which.capacityTypes),
        limits=fault.limits,
    )
    if kind.offers.interruption is None:
        return found
    target = fault.target
    how = Interruption(
        NOTICE if fault.notice is None else fault.notice,
        target.labels,
        target.count or 0,
        100.0 if target.percent is None else target.percent,
        target.seed or fault.name,
    )
    return replace(found, capacity_types=("spot",), interruption=how)


def offer_problems(here: Where, fault: Fault) -> Iterator[Problem]:
    """Keys of such a fault that belong to other faults, and missing ones."""
    kind = str(fault.kind)
    own = ("offers", *_OWN.get(kind, ()))
    for key in ("target", *NODE_KEYS, *POD_KEYS):
        if key in fault.model_fields_set and key not in own:
            message = f"is for nodes or pods, and {kind} is about what an autoscaler is offered"
            yield problem((*here, key), message, "leave it out, or declare a second fault")
    for key in OFFER_KEYS:
        if key in fault.model_fields_set and key not in own:
            yield problem((*here, key), f"has no effect on a fault of kind {kind}", "leave it out")
    needed = _NEEDED.get(kind)
    if needed and needed not in fault.model_fields_set:
        says = "says no price" if needed == "priceFactor" else "says no limit"
        yield problem(here, says, _REMEDIES[needed])
    if kind == "spot-interruption":
        yield from _interruption_problems(here, fault)


def _interruption_problems(here: Where, fault: Fault) -> Iterator[Problem]:
    for key in fault.target.model_fields_set - set(_DRAWN_BY):
        instead = "offers.zones" if key in ("zone", "region") else "labels, count or percent"
        message = "selects nodes of node groups, and an autoscaler's machines are taken back here"
        yield problem((*here, "target", key), message, f"write {instead}; for node groups there is kind: spot-reclaim")
    if fault.offers and "on-demand" in fault.offers.capacityTypes:
        message = "has machines on demand, which no cloud takes back"
        yield problem((*here, "offers", "capacityTypes"), message, "leave it out: it is about spot machines")

"""What a fault does to the machines that a cloud offers an autoscaler; the provider plugin imports this file."""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase

from kumulus.model.durations import written
from kumulus.model.plain import made_from, plain

NOTICE = 120.0
"""Default notice in seconds; AWS gives two minutes before it interrupts a spot instance."""

RECLAIM_ANNOTATION = "kumulus.io/reclaimed-at"
"""When a node's machine is taken back, RFC 3339 in UTC; KWOK deletes the node then."""


@dataclass(frozen=True)
class Interruption:
    """How machines of an autoscaler are taken back.

    Args:
        notice: seconds from the notice until they are gone.
        labels: what their nodes have to have.
        count: at most this many of them; 0 for all.
        percent: only this share of them, in per cent.
        seed: what they are drawn with.
    """

    notice: float = NOTICE
    labels: Mapping[str, str] = field(default_factory=dict)
    count: int = 0
    percent: float = 100.0
    seed: str = ""

    def to_plain(self) -> dict[str, object]:
        """The plain form, JSON-able."""
        return dict(plain(self))

    def drawn(self, among: Sequence[str]) -> tuple[str, ...]:
        """The machines that are taken back, drawn by the seed; at least one if there are any.

        Args:
            among: names of all candidates, in an order that is the same in every run: an autoscaler chooses random
                names, so positions in that order are drawn here.
        """
        order = sorted(range(len(among)), key=lambda at: hashlib.blake2b(f"{self.seed}/{at}".encode()).digest())
        wanted = max(1, round(len(order) * self.percent / 100))
        return tuple(among[at] for at in sorted(order[: min(wanted, self.count) if self.count else wanted]))

    def described(self, which: str) -> str:
        """A description: `20% of the spot machines go after a notice of 2m: e2-standard-4 in us-central1-a`.

        Args:
            which: types and zones; empty for all.
        """
        much = f"{self.count} of the" if self.count else f"{self.percent:g}% of the" if self.percent < 100 else "all"
        owner = ", ".join(filter(None, (which, *(f"{key}={value}" for key, value in sorted(self.labels.items())))))
        text = f"{much} spot machines go after a notice of {written(self.notice)}"
        return f"{text}: {owner}" if owner else text


def interruption_from(raw: Mapping[str, object]) -> Interruption:
    """An interruption from the plain form that `Interruption.to_plain` writes; numbers may be floats."""
    return made_from(Interruption, raw)


ANNOTATION = "kumulus.io/offerings"
"""On an autoscaler's node class: the active effects on its offerings, a JSON list of :meth:`OfferEffects.to_plain`."""


@dataclass(frozen=True)
class OfferEffects:
    """What a fault does to the offerings that it selects.

    Args:
        sold_out: whether none can be had.
        price_factor: what their price is multiplied by.
        zones: they are in one of them, `*` standing for any characters; empty for any.
        instance_types: they are of one of them, likewise; empty for any.
        capacity_types: they are on-demand or spot; empty for both.
        limits: how much there may be of all of them together, quantities by resource, `nodes` for machines.
        interruption: how machines of them are taken back; None for not.
    """

    sold_out: bool = False
    price_factor: float = 1.0
    zones: tuple[str, ...] = ()
    instance_types: tuple[str, ...] = ()
    capacity_types: tuple[str, ...] = ()
    limits: Mapping[str, str] = field(default_factory=dict)
    interruption: Interruption | None = None

    def selects(self, instance_type: str, zone: str, capacity_type: str) -> bool:
        """Whether it affects an offering."""
        pairs = ((self.instance_types, instance_type), (self.zones, zone), (self.capacity_types, capacity_type))
        return all(not among or any(fnmatchcase(value, each) for each in among) for among, value in pairs)

    def to_plain(self) -> dict[str, object]:
        """The plain form, JSON-able, which Karpenter's provider reads too."""
        return dict(plain(self, optional=("limits", "interruption")))

    def described(self) -> str:
        """What it does to which offerings: `none available: e2-standard-16 in us-central1-a, on-demand`."""
        where = f" in {', '.join(self.zones)}" if self.zones else ""
        if self.interruption is not None:
            return self.interruption.described(f"{', '.join(self.instance_types)}{where}".strip())
        how = f", {' and '.join(self.capacity_types)}" if self.capacity_types else ""
        return f"{self._what()}: {', '.join(self.instance_types) or 'every instance type'}{where}{how}"

    def _what(self) -> str:
        if self.limits:
            return "at most " + ", ".join(f"{amount} {name}" for name, amount in self.limits.items())
        return "none available" if self.sold_out else f"{self.price_factor:g} times the price"


def offer_effects_from(raw: Mapping[str, object]) -> OfferEffects:
    """Effects from the plain form that `OfferEffects.to_plain` writes."""
    found = made_from(OfferEffects, {**raw, "interruption": raw.get("interruption") or None})
    # Sorted, because Pulumi passes mappings in a different order each time.
    return replace(found, limits=dict(sorted(found.limits.items())))

"""The machines to choose from: instance types, their capacity, price and zone."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from kumulus.extras.advise.demand import PodShape, Unadvisable, WorkloadDemand, amount
from kumulus.extras.watch.live.admission import Requirement
from kumulus.model.names import nearest
from kumulus.model.pools import (
    CLUSTER_LABEL,
    GROUP_LABEL,
    INSTANCE_TYPE_LABEL,
    POOL_LABEL,
    REGION_LABEL,
    ZONE_LABEL,
    Pool,
)
from kumulus.model.quantity import parse
from kumulus.nodes.catalog.instances import InstanceType, clouds, instance_types
from kumulus.nodes.catalog.prices import Prices, is_spot, spot_labels
from kumulus.stackfile.expand import pools
from kumulus.stackfile.groups import region_of
from kumulus.stackfile.model import ClusterSpec

OWN_LABELS = (CLUSTER_LABEL, GROUP_LABEL, POOL_LABEL, ZONE_LABEL, REGION_LABEL)
"""Labels that come from a node group's placement, not from its template."""


@dataclass(frozen=True)
class Offer:
    """A machine that can be used in any number."""

    kind: str
    """Its instance type, or the group of a stack that it is of."""
    zones: tuple[str, ...]
    """Where it is: one zone, or several in which it is the same, price included."""
    hourly: float
    """US dollars per hour."""
    has: Mapping[str, int]
    """Its allocatable amounts, in the units of :class:`kumulus.extras.advise.demand.PodShape`."""
    labels: Mapping[str, str]
    group: Mapping[str, Any] = field(default_factory=dict)
    """A stack file's node group for it, without name and placement."""

    def takes(self, shape: PodShape) -> bool:
        """Whether a pod may run on such a node, and fits on an empty one."""
        fits = all(self.has.get(resource, 0) >= much for resource, much in shape.wants.items())
        return fits and allowed(shape.spec, self.labels)


@dataclass(frozen=True)
class MachineOffers:
    """The machines to choose from."""

    found: tuple[Offer, ...]
    unpriced: tuple[str, ...]
    """Types that were asked for or considered, but have no price there."""


def of_catalog(types: Sequence[str], zones: Sequence[str], prices: Prices, *, spot: bool = False) -> MachineOffers:
    """Instance types of the catalog.

    Args:
        types: their names; none for all types with a price in the zones' regions.
        zones: their zones; none for a zone of the first type's cloud, or of Google's.
    """
    known = instance_types()
    for kind in types:
        if kind not in known:
            near = nearest(kind, known)
            raise Unadvisable(
                f"{kind} is no instance type of the catalog\n  "
                + (f"Write {' or '.join(near)}" if near else "docs/fleets.md lists them")
            )
    chosen = [known[kind] for kind in dict.fromkeys(types)]
    zones = list(dict.fromkeys(zones)) or [clouds()[chosen[0].cloud if chosen else "gcp"].zone]
    found, unpriced = [], []
    for zone in zones:
        region = region_of(zone) or zone
        kinds = chosen or [known[kind] for kind in prices.types(region, spot=spot) if kind in known]
        for machine in kinds:
            price = prices.of(machine.name, region, spot=spot)
            if price is None:
                unpriced.append(f"{machine.name} in {region}")
                continue
            group = _group(machine, spot)
            found.append(_offer(_pool(group, zone), machine.name, price.hourly, group))
    if not found:
        raise _none_priced(zones, unpriced, prices, spot)
    return MachineOffers(tuple(found), tuple(dict.fromkeys(unpriced)))


def of_pools(
    clusters: Mapping[str, Iterable[Pool]], prices: Prices, region: str = "", *, spot: bool = False
) -> MachineOffers:
    """The node groups of a stack, each with any number of nodes.

    Args:
        clusters: the stack's clusters' pools, by name; the only cluster of a stack has none.
        region: the region for the prices of nodes without one.
        spot: whether to use spot machines, instead of what the groups say.
    """
    found, unpriced = [], []
    for member, pool in ((member, pool) for member, some in clusters.items() for pool in some):
        kind, where = pool.labels.get(INSTANCE_TYPE_LABEL, pool.group), pool.region or region
        known = instance_types().get(kind)
        marked = spot_labels(known.cloud if known else "") if spot and not is_spot(pool.labels) else {}
        machine = replace(pool, labels={**pool.labels, **marked})
        price = prices.of(kind, where, spot=is_spot(machine.labels))
        if price is None:
            unpriced.append(f"{kind} in {where or 'no region'}")
            continue
        labels = {key: value for key, value in machine.labels.items() if key not in OWN_LABELS}
        less = {key: much for key, much in pool.allocatable.items() if much != pool.capacity.get(key)}
        template = {
            "metadata": {"labels": labels},
            "capacity": dict(pool.capacity),
            **({"allocatable": less} if less else {}),
            "taints": [],
        }
        # Groups of several clusters may have the same name, and be of other machines.
        name = f"{member}/{pool.group}" if member else pool.group
        group = {"nodeTemplate": template}
        found.append(_offer(machine, name, price.hourly, _by_type(kind, group, pool.zone) if known else group))
    if not found:
        raise Unadvisable(
            f"no node group of the stack has a price: {', '.join(dict.fromkeys(unpriced)) or 'it has none'}\n"
            "  Write --region, or a file of your own with --prices (docs/prices.md)"
        )
    return MachineOffers(tuple(found), tuple(dict.fromkeys(unpriced)))


def without(offers: Iterable[Offer], everywhere: Mapping[str, int]) -> list[Offer]:
    """The offers minus what each node needs for itself; those that do not have that much are left out."""
    found = []
    for offer in offers:
        left = {resource: much - everywhere.get(resource, 0) for resource, much in offer.has.items()}
        if all(much >= 0 for much in left.values()) and set(everywhere) <= set(offer.has):
            found.append(replace(offer, has=left))
    return found


def useful(offers: Sequence[Offer], demand: WorkloadDemand, unpriced: Sequence[str] = ()) -> list[Offer]:
    """The offers that some pod can use; one for all zones of a region in which it costs the same and takes the same.

    The types in ``unpriced`` are for the error message.
    """
    for shape in demand.shapes:
        if not any(offer.takes(shape) for offer in offers):
            asked = ", ".join(_shown(name, much) for name, much in shape.wants.items() if name != "pods")
            where = "" if not shape.spec else " where its node selector or affinity lets it"
            raise Unadvisable(
                f"{shape.name}: no type fits a pod of {asked or 'no requests'}{where}\n"
                f"  Tried {', '.join(sorted({offer.kind for offer in offers}))}; name others with --types"
                + (f"\n  No price is known of {', '.join(unpriced)} (docs/prices.md)" if unpriced else "")
            )
    alike: dict[tuple[str, float, str, tuple[bool, ...]], list[Offer]] = {}
    for offer in offers:
        takes = tuple(offer.takes(shape) for shape in demand.shapes)
        if any(takes):
            region = offer.labels.get(REGION_LABEL, "")
            alike.setdefault((offer.kind, offer.hourly, region, takes), []).append(offer)
    return [
        replace(same[0], zones=tuple(dict.fromkeys(zone for offer in same for zone in offer.zones)))
        for same in alike.values()
    ]


def _group(kind: InstanceType, spot: bool) -> dict[str, Any]:
    """A stack file's node group of a type, without name and placement."""
    marked = {"metadata": {"labels": spot_labels(kind.cloud)}} if spot else {}
    # Pods of manifests do not tolerate KWOK's taint.
    return {"instanceType": kind.name, "nodeTemplate": {**marked, "taints": []}}


def _by_type(kind: str, group: Mapping[str, Any], zone: str) -> Mapping[str, Any]:
    """A group in short, by its instance type and what that does not bring, where that says as much; else the group."""
    brought, template = _pool({"instanceType": kind}, zone), group["nodeTemplate"]
    labels = _beyond(template["metadata"]["labels"], brought.labels)
    own = {
        "metadata": {"labels": labels} if labels else {},
        "capacity": _beyond(template["capacity"], brought.capacity),
        "allocatable": template.get("allocatable", {}),
    }
    short = {"instanceType": kind, "nodeTemplate": {**{key: much for key, much in own.items() if much}, "taints": []}}
    one, other = (_pool(each, zone) for each in (short, group))
    return (
        short
        if (one.labels, one.capacity, one.allocatable) == (other.labels, other.capacity, other.allocatable)
        else group
    )


def _beyond(said: Mapping[str, str], brought: Mapping[str, str]) -> dict[str, str]:
    return {key: value for key, value in said.items() if brought.get(key) != value}


def _pool(group: Mapping[str, Any], zone: str) -> Pool:
    """A pool with one node of a group, as a stack file with the group defines it."""
    one = {"name": "x", **group, "placement": [{"availabilityZone": zone, "replicas": 1}]}
    return pools(ClusterSpec.checked({"nodeGroups": [one]}), "x")[0]


def _offer(pool: Pool, kind: str, hourly: float, group: Mapping[str, Any]) -> Offer:
    has = {resource: amount(resource, parse(written), up=False) for resource, written in pool.allocatable.items()}
    return Offer(kind, (pool.zone,), hourly, has, pool.labels, group)


def _none_priced(zones: Sequence[str], unpriced: Sequence[str], prices: Prices, spot: bool) -> Unadvisable:
    what = "spot price" if spot else "price"
    if unpriced:
        head = f"no {what} is known of {', '.join(dict.fromkeys(unpriced))}"
    else:
        head = f"no instance type of the catalog has a {what} in {', '.join(zones)}"
    return Unadvisable(
        f"{head}\n  There are prices for {', '.join(prices.regions())}; name zones of those with --zones, or write a "
        "file of your own with --prices (docs/prices.md)"
    )


def _shown(resource: str, much: int) -> str:
    if resource == "cpu":
        return f"{much / 1000:g} CPUs"
    return f"{much / 2**30:g} GiB {resource}" if resource in ("memory", "ephemeral-storage") else f"{much:,} {resource}"


def allowed(spec: Mapping[str, Any], labels: Mapping[str, str]) -> bool:
    """Whether a pod may run on a node with these labels, as kube-scheduler matches them.

    Source: k8s.io/component-helpers/scheduling/corev1/nodeaffinity. Of the terms one has to hold, with all expressions.

    Args:
        spec: its `nodeSelector`, and its required node affinity as `nodeAffinity`.
    """
    if any(labels.get(key) != str(value) for key, value in (spec.get("nodeSelector") or {}).items()):
        return False
    required = spec.get("nodeAffinity")
    if not required:
        return True
    return any(_term(term, labels) for term in required.get("nodeSelectorTerms") or [])


def _term(term: Mapping[str, Any], labels: Mapping[str, str]) -> bool:
    expressions = term.get("matchExpressions") or []
    # A node that does not exist yet has no name to match, and a term without expressions matches nothing.
    if term.get("matchFields") or not expressions:
        return False
    return all(_requirement(each).holds(labels) for each in expressions)


def _requirement(expression: Mapping[str, Any]) -> Requirement:
    values = tuple(str(each) for each in expression.get("values") or ())
    return Requirement(str(expression.get("key")), str(expression.get("operator")), values)

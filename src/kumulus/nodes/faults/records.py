"""The active faults of a cluster, recorded there: a ConfigMap for each fault and for each pool.

Every change of a node reads these records first: a pool that is updated keeps its faults, and a fault that ends leaves
each node as its pool wants it at that time. See docs/decisions/faults.md.
"""

from __future__ import annotations

import base64
import json
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from kumulus.kube import objects
from kumulus.kube.codecs import MERGE_PATCH
from kumulus.kube.errors import tolerating
from kumulus.model.active_faults import FAULT_LABEL, ActiveFault, faults_of
from kumulus.model.errors import SpecError
from kumulus.model.fault_effects import (
    NodeEffects,
    OfferEffects,
    PodEffects,
    node_effects_from,
    offer_effects_from,
)
from kumulus.model.identity import NOBODY, STACK_ID, Owner
from kumulus.model.node_sets import from_plain, size, to_plain
from kumulus.model.plain import made_from
from kumulus.model.pool_form import pool_from_properties, pool_to_properties
from kumulus.model.pools import Pool
from kumulus.nodes.ownership import is_ours

if TYPE_CHECKING:
    from kumulus.kube import Client

_MAPS = "/api/v1/namespaces/kube-system/configmaps"
RECORD_LABEL = "kumulus.io/record"
_FAULT, _POOL = "fault", "pool"
_FAULT_MAP, _POOL_MAP = "kumulus-fault-", "kumulus-pool-"
_KEY = "record"
# A longer record is compressed: a ConfigMap takes 1 MiB, which the record of 7,000 nodes by name would exceed.
_LONG_BYTES = 100_000


@dataclass(frozen=True)
class Record:
    """A fault as recorded in its cluster."""

    name: str
    kind: str = ""
    """Its catalog entry, or empty for a fault that is described in full."""
    nodes: Mapping[str, frozenset[int]] = field(default_factory=dict)
    """The ordinals of its nodes, by pool."""
    node: NodeEffects = field(default_factory=NodeEffects)
    pods: PodEffects | None = None
    """What it does to pods; None for nothing."""
    since: str = ""
    """When it began, RFC 3339 in UTC."""
    until: str = ""
    """When it ends by itself; empty for never."""
    declared: bool = False
    """Whether a stack file declares it."""
    ending: bool = False
    """Whether it is being removed: its nodes should be as if it did not exist."""
    run: str = ""
    """The experiment run that began it; empty for none."""
    owner: Owner = NOBODY
    """Its owner; with an empty identity if that is not known."""
    offers: OfferEffects | None = None
    """What it does to an autoscaler's offerings; None for nothing."""
    machines: tuple[str, ...] = ()
    """The autoscaler's nodes that it reclaims."""
    former: tuple[ActiveFault, ...] = ()
    """Its earlier forms, which nodes may still show while it has not begun on all of them; empty when it has.

    A form without nodes stands for the time before there was such a fault.
    """

    @property
    def count(self) -> int:
        """How many nodes it affects."""
        return size(self.nodes)

    def is_of(self, mine: Owner) -> bool:
        """Whether it is a stack's own, or of an unknown owner."""
        return self.owner.identity in ("", mine.identity)

    def over(self, now: str) -> bool:
        """Whether its time is up, or it is being removed."""
        return self.ending or (bool(self.until) and self.until <= now)

    def active(self) -> ActiveFault:
        """The fault in the form that is applied to nodes."""
        return ActiveFault(self.name, self.node, self.nodes, self.since)

    def to_plain(self) -> dict[str, object]:
        """The plain form, JSON-able."""
        return {
            "name": self.name,
            "kind": self.kind,
            "nodes": to_plain(self.nodes),
            "node": self.node.to_plain(),
            "pods": self.pods.to_plain() if self.pods else None,
            **({"offers": self.offers.to_plain()} if self.offers else {}),
            **({"machines": list(self.machines)} if self.machines else {}),
            **({"former": [_form_to_plain(each) for each in self.former]} if self.former else {}),
            "since": self.since,
            "until": self.until,
            "declared": self.declared,
            "ending": self.ending,
            "run": self.run,
        }


def record_from(raw: Mapping[str, Any], owner: Owner = NOBODY) -> Record:
    """A record from its plain form, which does not include the owner.

    Raises:
        KeyError, TypeError, ValueError, AttributeError: it is not one, as after a change by hand.
    """
    name = str(raw["name"])
    return Record(
        name=name,
        kind=str(raw.get("kind") or ""),
        nodes=from_plain(raw.get("nodes") or {}),
        node=node_effects_from(raw.get("node") or {}),
        pods=made_from(PodEffects, raw["pods"]) if raw.get("pods") else None,
        since=str(raw.get("since") or ""),
        until=str(raw.get("until") or ""),
        declared=bool(raw.get("declared")),
        ending=bool(raw.get("ending")),
        run=str(raw.get("run") or ""),
        owner=owner,
        offers=offer_effects_from(raw["offers"]) if raw.get("offers") else None,
        machines=tuple(map(str, raw.get("machines") or ())),
        former=tuple(_form_from(name, each) for each in raw.get("former") or ()),
    )


def _form_to_plain(form: ActiveFault) -> dict[str, object]:
    return {"nodes": to_plain(form.nodes), "node": form.effects.to_plain(), "since": form.since}


def _form_from(name: str, raw: Mapping[str, Any]) -> ActiveFault:
    return ActiveFault(name, node_effects_from(raw["node"]), from_plain(raw["nodes"]), str(raw["since"]))


@dataclass(frozen=True)
class ClusterRecords:
    """Everything that is recorded in a cluster."""

    faults: Mapping[str, Record]
    """By name."""
    pools: Mapping[str, Pool]
    """By name, without their faults."""
    damaged: tuple[str, ...] = ()
    """The ConfigMaps that cannot be read, as somebody has edited them: they are ignored."""

    def of(self, mine: Owner) -> ClusterRecords:
        """The records that a stack may touch: its own and those without an identity; all for a stack without one."""
        if not mine.identity:
            return self
        known = ("", mine.identity)
        pools = {name: pool for name, pool in self.pools.items() if pool.labels.get(STACK_ID, "") in known}
        return ClusterRecords(
            {name: each for name, each in self.faults.items() if each.is_of(mine)}, pools, self.damaged
        )

    def active(self, now: str) -> list[ActiveFault]:
        """The faults that are not over."""
        return [each.active() for each in self.faults.values() if not each.over(now)]

    def with_faults(self, pool: Pool, now: str) -> Pool:
        """A pool with the active faults of its nodes."""
        return replace(pool, faults=faults_of(pool.name, self.active(now)))


def damage(name: str) -> str:
    """The message that a record cannot be read, and how to go on; `name`: its ConfigMap's."""
    remedy = "`pulumi up --refresh` writes it again"
    if name.startswith(_FAULT_MAP):
        delete = f"kubectl delete configmap -n kube-system {name}"
        remedy += f" if a stack declares the fault; if not, remove it: {delete}"
    return f"the record {name} is damaged and ignored\n  {remedy}"


async def read(client: Client, patience: float | None = None, only_pool: str | None = None) -> ClusterRecords:
    """Read what is recorded: all faults, and pools.

    Args:
        patience: how long to try, in seconds; None for the client's own time.
        only_pool: the only pool to read; None for all, empty for none.
    """
    faults: dict[str, Record] = {}
    pools: dict[str, Pool] = {}
    damaged: list[str] = []
    selector = f"{RECORD_LABEL}={_FAULT}" if only_pool == "" else RECORD_LABEL
    async for page in client.pages(_MAPS, {"labelSelector": selector}, patience=patience):
        for item in page:
            kind, name = item["metadata"]["labels"][RECORD_LABEL], item["metadata"]["name"]
            if kind == _POOL and only_pool is not None and name != f"{_POOL_MAP}{only_pool}":
                continue
            try:
                if kind == _POOL:
                    pool = pool_from_properties(_decoded(item))
                    pools[pool.name] = pool
                else:
                    fault = record_from(_decoded(item), Owner.of(item["metadata"]) or NOBODY)
                    faults[fault.name] = fault
            except (AttributeError, KeyError, TypeError, ValueError, SpecError):
                damaged.append(name)
    return ClusterRecords(faults, pools, tuple(damaged))


def map_of(fault: str) -> str:
    """The name of the ConfigMap with a fault's record."""
    return f"{_FAULT_MAP}{fault}"


def path_of_pool(pool: str) -> str:
    """The path in the API of the ConfigMap with a pool's record."""
    return f"{_MAPS}/{_POOL_MAP}{pool}"


async def write_fault(client: Client, record: Record) -> None:
    """Record a fault, replacing its earlier record."""
    labels = {RECORD_LABEL: _FAULT, FAULT_LABEL: record.name}
    await _write(client, map_of(record.name), labels, record.to_plain(), record.owner)


async def begun(client: Client, record: Record) -> Record:
    """Record that every node shows a fault, unless another process has changed or ended it; returns it as it is now."""
    path = f"{_MAPS}/{map_of(record.name)}"
    there = await objects.find(client, path)
    if there is None:
        return record
    for place, content in _stored(record.to_plain()).items():
        if (there.get(place) or {}).get(_KEY) != content[_KEY]:
            return record
    complete = replace(record, former=())
    body = {"metadata": {"resourceVersion": there["metadata"]["resourceVersion"]}, **_stored(complete.to_plain())}
    with tolerating(404, 409):
        await client.write("PATCH", path, body, content_type=MERGE_PATCH)
        return complete
    return record


async def write_pool(client: Client, pool: Pool, owner: Owner = NOBODY) -> None:
    """Record a stack's pool as it is wanted."""
    await _write(client, f"{_POOL_MAP}{pool.name}", {RECORD_LABEL: _POOL}, pool_to_properties(pool), owner)


async def forget_fault(client: Client, name: str) -> None:
    """Remove a fault's record."""
    await objects.remove(client, f"{_MAPS}/{map_of(name)}")


async def forget_pool(client: Client, name: str, owner: Owner = NOBODY) -> None:
    """Remove the record of a stack's pool; another stack's stays."""
    path = path_of_pool(name)
    there = await objects.find(client, path)
    if there is not None and is_ours(there["metadata"], owner, proven=True):
        await objects.remove(client, path)


async def _write(
    client: Client, name: str, labels: Mapping[str, str], plain: Mapping[str, object], owner: Owner
) -> None:
    metadata = {"name": name, "labels": {**labels, **owner.labels}, "annotations": owner.annotations}
    stored = _stored(plain)
    fresh = {place: content for place, content in stored.items() if content[_KEY] is not None}
    await objects.merge_or_create(
        client, f"{_MAPS}/{name}", {"metadata": metadata, **stored}, {"metadata": metadata, **fresh}
    )


def _stored(plain: Mapping[str, object]) -> dict[str, dict[str, str | None]]:
    """A record as a merge patch of its ConfigMap: under `data`, or if it is long under `binaryData`; None elsewhere."""
    text = json.dumps(plain, separators=(",", ":"), sort_keys=True)
    packed = base64.b64encode(zlib.compress(text.encode())).decode() if len(text) > _LONG_BYTES else None
    return {"data": {_KEY: None if packed else text}, "binaryData": {_KEY: packed}}


def _decoded(item: Mapping[str, Any]) -> Any:
    """A record from its ConfigMap; KeyError, TypeError or ValueError if there is none in it."""
    if packed := (item.get("binaryData") or {}).get(_KEY):
        try:
            return json.loads(zlib.decompress(base64.b64decode(packed)))
        except zlib.error as error:
            raise ValueError(str(error)) from None
    return json.loads(item["data"][_KEY])

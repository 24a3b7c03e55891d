"""``kumulus:index:Fault``: something that goes wrong on nodes or with pods, for as long as the stack declares it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar

from kumulus.kube import objects
from kumulus.kube.objects import NODES
from kumulus.model.fault_consequences import described_fault, reclaimed
from kumulus.model.node_sets import from_plain, size
from kumulus.model.pools import Pool, names_of
from kumulus.nodes.errors import PartialFailure, ProviderError
from kumulus.nodes.faults import leases, offerings, operations, pods, records, stages
from kumulus.nodes.faults.records import Record, record_from
from kumulus.provider.connections import UNASKED
from kumulus.provider.object_types import NODE_EFFECTS, OFFER_EFFECTS, POD_EFFECTS
from kumulus.provider.properties import STRING, STRINGS, Property
from kumulus.provider.resources.base import CheckResult, InputFailure, Operation, Properties, known
from kumulus.provider.resources.in_cluster import (
    DRIFT,
    LOOK_PATIENCE,
    PLACE,
    PLACE_KEYS,
    WORK_PATIENCE,
    InClusterResource,
    drifted,
    recorded_owner,
    with_remedy,
)
from kumulus.provider.values import contains_unknown

if TYPE_CHECKING:
    from kumulus.kube import Client

_OWN = (
    Property("name", STRING, "The fault's name.", required=True, replaces=True),
    Property("kind", STRING, "The catalog's entry it is made from, for people to read."),
    Property("nodes", STRINGS, "Its nodes: by pool, ordinals as ranges, such as `0-99,105`.", required=True),
    Property("node", NODE_EFFECTS, "What it does to each node.", required=True),
    Property("pods", POD_EFFECTS, "What it does to pods, and to which."),
    Property("offers", OFFER_EFFECTS, "What it does to what an autoscaler is offered, and to which of it."),
    Property("lost", STRINGS, "What the fleet loses by it, quantities by resource."),
)
_FAULT_KEYS = tuple(each.name for each in _OWN)


class FaultResource(InClusterResource):
    """Something that goes wrong on nodes or with pods, for as long as it is declared."""

    token: ClassVar[str] = "kumulus:index:Fault"
    inputs: ClassVar = (*PLACE, *_OWN)
    outputs: ClassVar = (Property("drift", STRING, DRIFT.description),)

    def check(self, old_inputs: Properties, inputs: Properties, program: str) -> CheckResult:
        checked = super().check(old_inputs, inputs, program)
        if not checked.failures and _is_known(checked.inputs):
            try:
                _record(checked.inputs)
            except (KeyError, TypeError, ValueError, AttributeError) as error:
                checked.failures.append(InputFailure("", f"is not a fault as Kumulus writes it: {error}"))
        return checked

    def title(self, properties: Properties) -> str:
        return f"fault {properties.get('name')}"

    def failed(self, properties: Properties, error: Exception) -> ProviderError:
        return with_remedy(super().failed(properties, error), properties)

    async def look(self, op: Operation, outputs: Properties, inputs: Properties) -> Properties | None:
        """See :meth:`InClusterResource.look`: checks only what pools do not own; the pools check their nodes."""
        if not inputs.get("kubeconfig"):
            raise ProviderError("a Fault cannot be imported: declare it in the stack file")
        record = _record(inputs)
        client = await self.client(inputs, LOOK_PATIENCE)
        there = await records.read(client, LOOK_PATIENCE)
        recorded = there.faults.get(record.name)
        if recorded is None or recorded.ending or not recorded.is_of(self.owner(op, outputs)):
            return None
        if _wanted(recorded) != _wanted(record):
            return drifted(inputs, "its record in the cluster was changed")
        if recorded.former:
            return drifted(inputs, "its beginning was cut off: some nodes may not show it")
        return drifted(inputs, await _drift(client, record, there.pools))

    async def remove(self, op: Operation, outputs: Properties) -> None:
        name = str(known(outputs, "name"))
        client = await self.client(outputs, WORK_PATIENCE)
        with self.cleared_way(outputs, _recorded_size(outputs)):
            owner = self.owner(op, outputs)
            _, applied = await operations.end(client, name, stop=op.stop, progress=_meter(op), owner=owner)
        if left := applied.left():
            raise ProviderError(f"fault {name}: {left}")

    def _declared_on(self, cluster: object) -> dict[str, Record] | None:
        """The faults that the stack declares on a cluster, by name; None if that is not known."""
        there = [each for each in self._declared.values() if each["clusterIdentity"] == cluster]
        found = [_record(each) for each in there if _is_known(each)]
        return {each.name: each for each in found} or None

    async def make(self, op: Operation, resource_id: str, inputs: Properties, old: Properties | None) -> Properties:
        record = replace(_record(inputs), owner=self.owner(op, inputs))
        try:
            with self.needing_cluster(inputs):
                client = await self.client(inputs, WORK_PATIENCE)
                with self.cleared_way(inputs, size(record.nodes)):
                    _, applied = await operations.begin(
                        client,
                        record,
                        stop=op.stop,
                        progress=_meter(op, moved=old is not None and old.get("nodes") != inputs["nodes"]),
                        recorded=recorded_owner(old),
                        declared=self._declared_on(inputs["clusterIdentity"]),
                    )
        except (operations.FaultRefused, stages.NoStages) as error:
            raise ProviderError(f"fault {record.name}: {error}") from None
        if left := applied.left():
            outputs = {**inputs, "drift": left}
            raise PartialFailure(f"fault {record.name}: {left}", resource_id, outputs, applied.problems[1:])
        return inputs

    async def previewed(self, op: Operation, inputs: Properties, old: Properties | None) -> Properties:
        """See :meth:`InClusterResource.previewed`: which nodes and running pods the fault hits."""
        if not _is_known(inputs):
            return inputs
        record = _record(inputs)
        before = from_plain((old or {}).get("nodes") or {})
        running: int | None = None
        drawn: tuple[str, ...] = ()
        if not contains_unknown({key: inputs.get(key) for key in PLACE_KEYS}):
            try:
                client = await self.client(inputs, LOOK_PATIENCE)
                there = await records.read(client, LOOK_PATIENCE)
                mine = replace(record, owner=self.owner(op, inputs))
                await operations.refuse_anothers(client, mine, there, recorded_owner(old))
                running = await pods.count_affected(client, record.nodes, record.pods, there.pools)
                drawn = (await offerings.drawn(client, record, there.faults.get(record.name))).machines
            except operations.FaultRefused as error:
                raise ProviderError(f"fault {record.name}: {error}") from None
            except UNASKED:
                running = None
        op.report.info(
            described_fault(record.kind, record.node, record.pods, before, record.nodes, inputs, running, record.offers)
            + reclaimed(drawn)
        )
        return inputs


async def _drift(client: Client, record: Record, pools: Mapping[str, Pool]) -> str:
    """The drift from the fault that no pool checks: leases, and nodes that should be gone."""
    names = names_of(record.nodes, pools)
    if record.node.kubelet == "silent":
        # The fault holds the leases of silent nodes, which a kubelet would renew.
        awake = names - await leases.taken(client)
        return f"{len(awake):,} nodes are not silent" if awake else ""
    if record.node.kubelet == "gone":
        back = names & set(await objects.names(client, NODES))
        return f"{len(back):,} nodes are back, {min(back)} among them" if back else ""
    return ""


def _is_known(inputs: Properties) -> bool:
    """Whether all of a fault is known; its cluster need not be."""
    return not contains_unknown({key: inputs.get(key) for key in _FAULT_KEYS})


def _record(properties: Properties) -> Record:
    return record_from({**{key: properties.get(key) for key in _FAULT_KEYS}, "declared": True})


def _recorded_size(outputs: Properties) -> int:
    """How many nodes a fault affects; 0 if unknown, as a state that was edited by hand may contain anything."""
    try:
        return size(from_plain(outputs["nodes"]))
    except (KeyError, TypeError, ValueError, AttributeError):
        return 0


def _wanted(record: Record) -> tuple[Any, ...]:
    """What a declaration says of a fault, for comparison."""
    return record.nodes, record.node, record.pods, record.offers


def _meter(op: Operation, *, moved: bool = False) -> operations.Progress:
    """Shows how many nodes are done; of a fault that has moved, those that it has left are among them."""
    what = "old and new nodes" if moved else "nodes"

    def show(done: int, total: int) -> None:
        if done % 20 == 0 or done == total:
            op.report.status(f"{what} {done:,}/{total:,}", last=done == total)

    return show

"""``kumulus:index:HyperNodes``: Volcano's HyperNodes for the pools of a cluster, as a single resource.

Without Volcano's CRD nothing is made, which is reported once; a refresh detects when the CRD has been installed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from kumulus.extras.schedulers import hypernodes
from kumulus.extras.schedulers.fabrics import (
    HyperNode,
    describe,
    fabrics_from,
    fabrics_problems,
    fabrics_to_plain,
    hyper_nodes,
)
from kumulus.extras.schedulers.hypernodes import CRD, HyperNodesState
from kumulus.model.words import listed
from kumulus.nodes.errors import PartialFailure, ProviderError
from kumulus.provider.connections import SILENT, UNASKED
from kumulus.provider.object_types import TOPOLOGY
from kumulus.provider.properties import INTEGER, STRING, Property, mapping, object_type
from kumulus.provider.resources.base import CheckResult, InputFailure, Operation, Properties, known
from kumulus.provider.resources.in_cluster import (
    DRIFT,
    LOOK_PATIENCE,
    PLACE,
    WORK_PATIENCE,
    InClusterResource,
    drifted,
    recorded_owner,
)
from kumulus.provider.values import contains_unknown

if TYPE_CHECKING:
    from kumulus.kube import Client

_FABRIC = object_type(
    "Fabric",
    "A pool, as far as HyperNodes follow from it.",
    (
        Property("zone", STRING, "Its availability zone; empty for none."),
        Property("replicas", INTEGER, "How many nodes it has.", required=True),
        Property("topology", TOPOLOGY, "How they stand.", required=True),
    ),
)


class HyperNodes(InClusterResource):
    """Volcano's HyperNodes for the topology of a cluster's pools, as one resource."""

    token: ClassVar[str] = "kumulus:index:HyperNodes"
    inputs: ClassVar = (*PLACE, Property("pools", mapping(_FABRIC), "The pools, by name.", required=True))
    outputs: ClassVar = (
        Property("made", INTEGER, "How many HyperNodes there are; 0 without Volcano's CRD."),
        DRIFT,
    )

    def check(self, old_inputs: Properties, inputs: Properties, program: str) -> CheckResult:
        failures = self.input_failures(inputs)
        pools = inputs.get("pools")
        if pools is not None and not contains_unknown(pools):
            problems = fabrics_problems(("pools",), pools)
            failures += [InputFailure(p.path, f"{p.message}; {p.remedy}") for p in problems]
            if not problems:
                inputs = {**inputs, "pools": fabrics_to_plain(fabrics_from(pools))}
        return CheckResult({key: inputs[key] for key in self.keys() if key in inputs}, failures)

    def title(self, properties: Properties) -> str:
        return "HyperNodes"

    def unlooked(self, properties: Properties) -> str:
        return "HyperNodes were"

    def id_of(self, inputs: Properties) -> str:
        return f"{known(inputs, 'clusterName')}/hypernodes"

    async def previewed(self, op: Operation, inputs: Properties, old: Properties | None) -> Properties:
        await self._refuse_others(op, inputs, recorded_owner(old))
        if old is None:
            op.report.info(f"{describe({}, _wanted(inputs)) or 'no HyperNodes'}; made if Volcano's CRD {CRD} is there")
        elif not contains_unknown(inputs):
            before = {} if fabrics_problems((), old.get("pools")) else _wanted(old)
            if meaning := describe(before, _wanted(inputs)):
                op.report.info(meaning)
            if drift := old.get("drift"):
                op.report.info("drift to repair: " + "; ".join(f"{key} {what}" for key, what in drift.items()))
        return inputs

    async def look(self, op: Operation, outputs: Properties, inputs: Properties) -> Properties:
        client = await self.client(inputs, LOOK_PATIENCE)
        return _outputs(inputs, await self._seen(op, client, inputs, recorded_owner(outputs), LOOK_PATIENCE))

    async def remove(self, op: Operation, outputs: Properties) -> None:
        client = await self.client(outputs, WORK_PATIENCE)
        seen = await self._seen(op, client, {**outputs, "pools": {}}, recorded_owner(outputs))
        if problems := await hypernodes.remove(client, seen.extra, op.stop):
            raise ProviderError(f"HyperNodes: {'; '.join(problems)}")

    async def _seen(
        self, op: Operation, client: Client, inputs: Properties, recorded: str | None, patience: float | None = None
    ) -> HyperNodesState:
        """The cluster's HyperNodes; arguments as of :func:`kumulus.extras.schedulers.hypernodes.look`."""
        cluster, owner = str(known(inputs, "clusterName")), self.owner(op, inputs)
        return await hypernodes.look(client, _wanted(inputs), cluster, patience, owner=owner, recorded=recorded)

    async def _refuse_others(self, op: Operation, inputs: Properties, recorded: str | None) -> None:
        """Refuse, before anything is done, names of others' HyperNodes; skipped when the cluster is down."""
        if contains_unknown(inputs):
            return
        try:
            client = await self.client(inputs, LOOK_PATIENCE)
            seen = await self._seen(op, client, inputs, recorded, LOOK_PATIENCE)
        except UNASKED:
            return
        if problem := hypernodes.taken(seen):
            raise ProviderError(f"HyperNodes: {problem}")

    async def make(self, op: Operation, resource_id: str, inputs: Properties, old: Properties | None) -> Properties:
        wanted, cluster = _wanted(inputs), str(known(inputs, "clusterName"))
        with self.needing_cluster(inputs):
            client = await self.client(inputs, WORK_PATIENCE)
            seen = await self._seen(op, client, inputs, recorded_owner(old))
        if not seen.installed:
            op.report.warn(
                f"no HyperNode was made: the cluster has no {CRD}; nodes carry their topology labels all the same. "
                "Install Volcano, then `pulumi up --refresh`"
            )
            return _outputs(inputs, seen)
        if problem := hypernodes.taken(seen):
            raise ProviderError(f"HyperNodes: {problem}")
        problems = await hypernodes.converge(client, wanted, cluster, seen, op.stop, self.owner(op, inputs))
        if problems:
            raise await self._partial(op, client, resource_id, inputs, problems)
        return {**inputs, "made": len(wanted)}

    async def _partial(
        self, op: Operation, client: Client, resource_id: str, inputs: Properties, problems: list[str]
    ) -> PartialFailure:
        """A partial failure with what really exists, as far as that can still be found out."""
        try:
            outputs = _outputs(inputs, await self._seen(op, client, inputs, "", 2.0))
        except SILENT:
            outputs = {**inputs, "made": 0, "drift": {"missing": "not known: the cluster does not answer"}}
        return PartialFailure(f"HyperNodes: {problems[0]}", resource_id, outputs, problems[1:])


def _wanted(properties: Properties) -> dict[str, HyperNode]:
    return hyper_nodes(fabrics_from(properties.get("pools")))


def _outputs(inputs: Properties, seen: HyperNodesState) -> Properties:
    drift: dict[str, Any] = {}
    if seen.missing:
        drift["missing"] = _names(seen.missing)
    if seen.extra:
        drift["extra"] = _names(sorted(seen.extra))
    if seen.altered:
        drift["altered"] = _names([f"{name} ({what})" for name, what in seen.altered.items()])
    return drifted({**inputs, "made": seen.present}, drift)


def _names(names: list[str]) -> str:
    return f"{len(names):,}: {listed(names)}"

"""``kumulus:index:ChartCrds``: fetches a chart, checks its values, and creates and updates its CRDs.

Helm itself creates the CRDs of a chart's `crds` directories when they are missing, and never touches them again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection
from contextlib import suppress
from typing import TYPE_CHECKING, ClassVar

from kumulus.helm import charts, crds, history
from kumulus.helm.charts import Chart, ChartError, ChartSource
from kumulus.model.plain import UNKNOWN
from kumulus.model.words import listed
from kumulus.nodes.errors import PartialFailure, ProviderError
from kumulus.provider.connections import UNASKED, Connections
from kumulus.provider.properties import OBJECT, STRING, STRINGS, Property
from kumulus.provider.resources.base import CheckResult, InputFailure, Operation, Properties, known
from kumulus.provider.resources.diffing import PropertyDifference, differences
from kumulus.provider.resources.in_cluster import (
    DRIFT,
    LOOK_PATIENCE,
    PLACE,
    STACK_ID,
    WORK_PATIENCE,
    InClusterResource,
    drifted,
)
from kumulus.provider.values import contains_unknown

if TYPE_CHECKING:
    from kumulus.kube import Client


class ChartCrds(InClusterResource):
    """The CRDs of a Helm chart, made and kept up to date."""

    token: ClassVar[str] = "kumulus:index:ChartCrds"
    inputs: ClassVar = (
        *PLACE,
        Property("name", STRING, "The add-on's name.", required=True, replaces=True),
        Property("chart", STRING, "A name in a repository, an `oci://` reference or a path.", required=True),
        Property("repository", STRING, "The repository's URL."),
        Property("version", STRING, "The chart's version; the newest when it is not given."),
        Property("access", STRINGS, "What a private source asks for; not kept.", secret=True, fleeting=True),
        Property(
            "values",
            OBJECT,
            "The release's values, for the chart's schema; not kept.",
            secret=True,
            fleeting=True,
        ),
    )
    outputs: ClassVar = (Property("crds", STRINGS, "A digest of each CRD's manifest, by name."), DRIFT)
    _fleeting: ClassVar[tuple[str, ...]] = tuple(each.name for each in inputs if each.fleeting)

    def __init__(self, connections: Connections) -> None:
        super().__init__(connections)
        # For the lifetime of this plugin process: the update applies the chart that its check fetched.
        self._charts: dict[tuple[str, str, str], Chart] = {}

    def check(self, old_inputs: Properties, inputs: Properties, program: str) -> CheckResult:
        checked = super().check(old_inputs, inputs, program)
        kept = {key: value for key, value in checked.inputs.items() if key not in self._fleeting}
        return CheckResult(kept, checked.failures)

    def diff(self, old_outputs: Properties, inputs: Properties) -> list[PropertyDifference]:
        found, wanted = super().diff(old_outputs, inputs), inputs.get("crds")
        if wanted is UNKNOWN:
            # Nothing is known of the CRDs of a chart that is not known yet: it does not drop the recorded ones.
            return found
        return found + differences("crds", old_outputs.get("crds") or {}, wanted or {})

    async def examine(self, old_inputs: Properties, inputs: Properties, program: str) -> CheckResult:
        """See :meth:`Resource.examine`: fetches the chart, as the release's own check will do."""
        checked = self.check(old_inputs, inputs, program)
        if checked.failures:
            return checked
        about = {key: inputs.get(key) for key in ("chart", "repository", "version", "access")}
        if contains_unknown(about):
            return CheckResult({**checked.inputs, "version": UNKNOWN, "crds": UNKNOWN})
        try:
            chart = await charts.read(ChartSource.of(about))
            values = inputs.get("values")
            if not contains_unknown(values):
                await charts.check_values(chart, values or {})
        except ChartError as error:
            return CheckResult(checked.inputs, [InputFailure(error.path, str(error))])
        wanted = {**checked.inputs, "version": chart.version, "crds": chart.digests()}
        self._charts[_key(wanted)] = chart
        return CheckResult(wanted)

    def title(self, properties: Properties) -> str:
        return f"CRDs of {properties.get('name')}"

    def unlooked(self, properties: Properties) -> str:
        return "CRDs were"

    async def previewed(self, op: Operation, inputs: Properties, old: Properties | None) -> Properties:
        _warn_of_dropped(op, inputs, old or {})
        await self._refuse_others(inputs, _maker(inputs, old))
        if old is None and inputs.get("crds"):
            op.report.info(f"CRDs to make or bring up to date: {_names(inputs['crds'])}")
        return inputs

    async def look(self, op: Operation, outputs: Properties, inputs: Properties) -> Properties:
        wanted: dict[str, str] = inputs.get("crds") or {}
        client = await self.client(inputs, LOOK_PATIENCE)
        seen = await crds.look(client, sorted(wanted))
        missing = [name for name in wanted if name not in seen]
        # A CRD that no add-on has marked was accepted because it was the same; only who made it may change it.
        marked = {name: found for name, found in seen.items() if found.digest or found.made_by}
        altered = [name for name, found in marked.items() if found.digest != wanted[name]]
        drift = {"missing": missing, "altered": altered}
        return drifted(inputs, {what: _names(names) for what, names in drift.items() if names})

    async def remove(self, op: Operation, outputs: Properties) -> None:
        """See :meth:`InClusterResource.remove`: removes only CRDs made here, without objects, that nobody else applies.

        An add-on's release goes before them. If it is there, only its `crds` has changed, and it works with them.
        """
        maker, owner = _maker(outputs), self.owner(op, outputs)
        client = await self.client(outputs, WORK_PATIENCE)
        if owner.identity and await history.is_there(client, maker.addon, owner):
            op.report.info(f"the CRDs of {maker.addon} are kept: it is installed and works with them")
            return
        for name in sorted(outputs.get("crds") or {}):
            if kept := await crds.take_away(client, name, maker):
                op.report.warn(f"the CRD {kept}")

    async def _refuse_others(self, inputs: Properties, maker: crds.Maker) -> None:
        """Refuse, in a preview, CRDs of others that differ from the chart's; skipped when the cluster is down."""
        chart = None if contains_unknown(inputs) else self._charts.get(_key(inputs))
        if chart is not None:
            with suppress(*UNASKED):
                await _require_free(await self.client(inputs, LOOK_PATIENCE), maker, inputs, chart)

    async def make(self, op: Operation, resource_id: str, inputs: Properties, old: Properties | None) -> Properties:
        """See :meth:`InClusterResource.make`: keeps a CRD that the chart no longer has, to keep its objects."""
        wanted: dict[str, str] = inputs.get("crds") or {}
        _warn_of_dropped(op, inputs, old or {})
        if not wanted:
            return inputs
        chart = self._charts.get(_key(inputs))
        if chart is None:
            raise ProviderError(f"the chart of {inputs['name']} was not looked at; run it again")
        maker = _maker(inputs, old)
        with self.needing_cluster(inputs):
            client = await self.client(inputs, WORK_PATIENCE)
            await _require_free(client, maker, inputs, chart)
        results = await asyncio.gather(
            *(crds.apply(client, name, chart.crds[name], digest, maker) for name, digest in wanted.items()),
            return_exceptions=True,
        )
        problems = {name: error for name, error in zip(wanted, results, strict=True) if isinstance(error, Exception)}
        if not problems:
            op.report.info(f"CRDs up to date: {_names(wanted)}")
            return inputs
        reasons = [f"the CRD {name}: {_reason(error)}" for name, error in problems.items()]
        # A CRD that was not finished may be there. Without its digest, the next update does it again, and a removal
        # looks for it.
        done = {**wanted, **dict.fromkeys(problems, "")}
        raise PartialFailure(reasons[0], resource_id, {**inputs, "crds": done}, reasons[1:])


async def _require_free(client: Client, maker: crds.Maker, inputs: Properties, chart: Chart) -> None:
    """Refuse to go on where CRDs of others differ from the chart's."""
    wanted: dict[str, str] = inputs.get("crds") or {}
    asked = (crds.obstacle(client, name, chart.crds[name], wanted[name], maker) for name in sorted(wanted))
    if obstacles := [f"the CRD {each}" for each in await asyncio.gather(*asked) if each]:
        raise ProviderError("\n  ".join(obstacles))


def _warn_of_dropped(op: Operation, inputs: Properties, old: Properties) -> None:
    if inputs.get("crds") is UNKNOWN:
        return
    if dropped := set(old.get("crds") or {}) - set(inputs.get("crds") or {}):
        op.report.warn(f"CRDs that the chart no longer has are kept: {_names(dropped)}")


def _maker(properties: Properties, old: Properties | None = None) -> crds.Maker:
    """The add-on, with the stack's current identity and the recorded one."""
    found = (str(each.get(STACK_ID.name) or "") for each in (properties, old or {}))
    identities = tuple(dict.fromkeys(each for each in found if each))
    return crds.Maker(str(known(properties, "clusterName")), str(known(properties, "name")), identities)


def _key(properties: Properties) -> tuple[str, str, str]:
    """A chart of a version."""
    return str(properties["chart"]), str(properties.get("repository") or ""), str(properties.get("version") or "")


def _reason(error: Exception) -> str:
    if isinstance(error, TimeoutError):
        return f"it was not established within {crds.ESTABLISHED_S:g} s"
    return str(error)


def _names(names: Collection[str]) -> str:
    """How many there are, and the first of them."""
    return f"{len(names):,}: {listed(sorted(names))}"

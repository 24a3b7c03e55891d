"""``kumulus:index:ChartCrds``: a chart, found and its values accepted, and its CRDs made and kept up to date.

Helm itself makes the CRDs of a chart's `crds` directories when they are missing, and never touches them again.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, ClassVar

from kumulus.cluster.errors import PartialFailure, ProviderError
from kumulus.helm import charts, crds
from kumulus.helm.charts import Chart, ChartError, Source
from kumulus.kube import ApiError, KubeconfigError, Unreachable
from kumulus.provider.connections import Connections, WrongCluster
from kumulus.provider.properties import OBJECT, STRING, STRINGS, Property
from kumulus.provider.resources.base import Checked, Difference, Failure, Found, Operation, Properties, known
from kumulus.provider.resources.diffing import differences
from kumulus.provider.resources.in_cluster import DRIFT, LOOK_PATIENCE, PLACE, WORK_PATIENCE, InCluster
from kumulus.provider.values import contains_unknown

if TYPE_CHECKING:
    from kumulus.kube import Client

_NAMED = 5


class ChartCrds(InCluster):
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
    _passing: ClassVar[tuple[str, ...]] = tuple(each.name for each in inputs if each.fleeting)

    def __init__(self, connections: Connections) -> None:
        super().__init__(connections)
        # Of this plugin's life: what a check has fetched, the update that follows applies.
        self._charts: dict[tuple[str, str, str], Chart] = {}

    def check(self, old_inputs: Properties, inputs: Properties, program: str) -> Checked:
        """See :meth:`Resource.check`."""
        kept = [key for key in self.keys() if key in inputs and key not in self._passing]
        return Checked({key: inputs[key] for key in kept}, self.input_failures(inputs))

    def diff(self, old_outputs: Properties, inputs: Properties) -> list[Difference]:
        """See :meth:`Resource.diff`."""
        changed = differences("crds", old_outputs.get("crds") or {}, inputs.get("crds") or {})
        return super().diff(old_outputs, inputs) + changed

    async def examine(self, old_inputs: Properties, inputs: Properties, program: str) -> Checked:
        """See :meth:`Resource.examine`: the chart is fetched, as the release's own check will do."""
        checked = self.check(old_inputs, inputs, program)
        about = {key: inputs.get(key) for key in ("chart", "repository", "version", *self._passing)}
        if checked.failures or contains_unknown(about):
            return checked
        source = Source(str(about["chart"]), about["repository"] or "", about["version"] or "", about["access"] or {})
        try:
            chart = await charts.fetch(source)
            await charts.check_values(chart, about["values"] or {})
        except ChartError as error:
            return Checked(checked.inputs, [Failure(error.path, str(error))])
        wanted = {**checked.inputs, "version": chart.version, "crds": chart.digests()}
        self._charts[_key(wanted)] = chart
        return Checked(wanted)

    async def create(self, op: Operation, inputs: Properties) -> tuple[str, Properties]:
        """See :meth:`Resource.create`."""
        resource_id = f"{known(inputs, 'clusterName')}/{known(inputs, 'name')}"
        if op.preview:
            await self._refuse_others(inputs)
            if inputs.get("crds"):
                op.report.info(f"CRDs to make or bring up to date: {_names(inputs['crds'])}")
            return resource_id, inputs
        return resource_id, await self._converge(op, resource_id, inputs, inputs.get("crds") or {})

    async def read(self, op: Operation, resource_id: str, outputs: Properties, inputs: Properties) -> Found | None:
        """See :meth:`Resource.read`."""
        wanted: dict[str, str] = inputs.get("crds") or {}
        try:
            client = await self.client(inputs, LOOK_PATIENCE)
            seen = await crds.look(client, sorted(wanted))
        except (KubeconfigError, WrongCluster):
            return None
        except (ApiError, Unreachable) as error:
            op.report.warn(f"CRDs were not looked at: {error}")
            return Found(resource_id, outputs, inputs)
        missing = {name: wanted[name] for name in wanted if name not in seen}
        # One of others' was found to be the same, and is theirs to change.
        ours = {name: found for name, found in seen.items() if found.digest or found.made_by}
        altered = {name: wanted[name] for name, found in ours.items() if found.digest != wanted[name]}
        drift = {key: _names(names) for key, names in (("missing", missing), ("altered", altered)) if names}
        return Found(resource_id, {**inputs, **({"drift": drift} if drift else {})}, inputs)

    async def update(self, op: Operation, resource_id: str, old_outputs: Properties, inputs: Properties) -> Properties:
        """See :meth:`Resource.update`: a CRD that the chart no longer has stays, as its objects would go with it."""
        before: dict[str, str] = old_outputs.get("crds") or {}
        wanted: dict[str, str] = inputs.get("crds") or {}
        dropped = sorted(set(before) - set(wanted))
        if dropped:
            op.report.warn(f"CRDs that the chart no longer has are kept: {_names(dropped)}")
        if op.preview:
            await self._refuse_others(inputs)
            return inputs
        return await self._converge(op, resource_id, inputs, wanted)

    async def delete(self, op: Operation, resource_id: str, outputs: Properties) -> None:
        """See :meth:`Resource.delete`: only what was made here, nobody else applies and has no objects is removed."""
        owner = crds.manager(str(known(outputs, "clusterName")), str(known(outputs, "name")))
        try:
            client = await self.client(outputs, WORK_PATIENCE)
            kept = [await crds.take_away(client, name, owner) for name in sorted(outputs.get("crds") or {})]
        except (KubeconfigError, WrongCluster):
            return
        except (ApiError, Unreachable) as error:
            raise ProviderError(f"CRDs of {outputs.get('name')}: {error}") from None
        for reason in filter(None, kept):
            op.report.warn(f"the CRD {reason}")

    async def _refuse_others(self, inputs: Properties) -> None:
        """Refuse, in a preview, CRDs that others made and that are not the chart's; a cluster that is down has none."""
        chart = None if contains_unknown(inputs) else self._charts.get(_key(inputs))
        if chart is None:
            return
        try:
            problems = await self._obstacles(await self.client(inputs, LOOK_PATIENCE), inputs, chart)
        except (KubeconfigError, WrongCluster, ApiError, Unreachable):
            return
        if problems:
            raise ProviderError("\n  ".join(f"the CRD {each}" for each in problems))

    async def _obstacles(self, client: Client, inputs: Properties, chart: Chart) -> list[str]:
        cluster = str(known(inputs, "clusterName"))
        owner, stack = crds.manager(cluster, str(inputs["name"])), crds.managers(cluster)
        wanted: dict[str, str] = inputs.get("crds") or {}
        asked = (crds.obstacle(client, name, chart.crds[name], wanted[name], owner, stack) for name in sorted(wanted))
        return [each for each in await asyncio.gather(*asked) if each]

    async def _converge(
        self, op: Operation, resource_id: str, inputs: Properties, wanted: dict[str, str]
    ) -> Properties:
        if not wanted:
            return inputs
        chart = self._charts.get(_key(inputs))
        if chart is None:
            raise ProviderError(f"the chart of {inputs['name']} was not looked at; run it again")
        cluster = str(known(inputs, "clusterName"))
        owner, stack = crds.manager(cluster, str(inputs["name"])), crds.managers(cluster)
        try:
            client = await self.client(inputs, WORK_PATIENCE)
            obstacles = await self._obstacles(client, inputs, chart)
        except (KubeconfigError, WrongCluster, ApiError, Unreachable) as error:
            raise ProviderError(f"CRDs of {inputs['name']}: {error}") from None
        if obstacles:
            raise ProviderError("\n  ".join(f"the CRD {each}" for each in obstacles))
        results = await asyncio.gather(
            *(crds.apply(client, name, chart.crds[name], digest, owner, stack) for name, digest in wanted.items()),
            return_exceptions=True,
        )
        problems = {name: error for name, error in zip(wanted, results, strict=True) if isinstance(error, Exception)}
        if not problems:
            op.report.info(f"CRDs up to date: {_names(wanted)}")
            return inputs
        reasons = [f"the CRD {name}: {_said(error)}" for name, error in problems.items()]
        done = {**inputs, "crds": {name: digest for name, digest in wanted.items() if name not in problems}}
        raise PartialFailure(reasons[0], resource_id, done, reasons[1:])


def _key(properties: Properties) -> tuple[str, str, str]:
    return str(properties["chart"]), str(properties.get("repository") or ""), str(properties.get("version") or "")


def _said(error: Exception) -> str:
    return "it was not established within 15 s" if isinstance(error, TimeoutError) else str(error)


def _names(names: Any) -> str:
    listed = sorted(names)
    more = f" and {len(listed) - _NAMED:,} more" if len(listed) > _NAMED else ""
    return f"{len(listed):,}: {', '.join(listed[:_NAMED])}{more}"

"""``kumulus:index:Cluster``: a control plane, provided by one of the runtimes."""

import os
from pathlib import Path
from typing import Any, ClassVar

from kumulus.model.contents import expected_nodes
from kumulus.model.plain import UNKNOWN
from kumulus.nodes import runs
from kumulus.nodes.errors import ProviderError
from kumulus.nodes.reporter import Silent
from kumulus.provider.connections import Connections
from kumulus.provider.resources import adoption, cluster_inputs, previews
from kumulus.provider.resources.base import CheckResult, Operation, Properties, ReadResult, Resource, known
from kumulus.provider.resources.cluster_place import RecordedPlaces, left_by_runs, put_back, require_no_run
from kumulus.provider.resources.diffing import PropertyDifference, differences, join
from kumulus.provider.resources.in_cluster import STACK_ID
from kumulus.provider.settings import PluginSettings
from kumulus.provider.values import contains_unknown
from kumulus.runtimes import registry
from kumulus.runtimes.base import Observed, RecordedControlPlane, Runtime, WantedControlPlane
from kumulus.runtimes.place import Place, identified, identity_of, same_owner
from kumulus.runtimes.place import owner as owner_of
from kumulus.runtimes.whereabouts import LOST

_REMEDIES = {
    "lost": "restored",
    "damaged": "restored",
    "full": "compacted and defragmented",
    "unhealthy": "restarted if it stays so",
}
_UNKNOWN_AT_FIRST = ("identity", "server", "directory", "status", "components", "endpoints")


class ClusterResource(Resource):
    """The control plane of an emulated cluster."""

    token: ClassVar[str] = "kumulus:index:Cluster"
    inputs: ClassVar = cluster_inputs.INPUTS
    outputs: ClassVar = cluster_inputs.OUTPUTS

    def __init__(
        self, runtimes: dict[str, Runtime], connections: Connections, settings: PluginSettings | None = None
    ) -> None:
        self._runtimes = runtimes
        self._connections = connections
        settings = settings or PluginSettings()
        self._hourly = settings.hourly
        self._places = RecordedPlaces(runtimes, settings)
        # The directories of the clusters that the stack has and keeps, by URN.
        self._kept: dict[str, str] = {}
        # The clusters that are made again, as they were before, by directory.
        self._remade: dict[str, Observed] = {}

    def check(self, old_inputs: Properties, inputs: Properties, program: str) -> CheckResult:
        # An import and a refresh pass on the status that check has filled in; the name is checked with the rest.
        declared = {key: value for key, value in inputs.items() if key != "status"}
        failures = [failure for failure in self.input_failures(declared) if failure.path != "name"]
        present = {key: inputs[key] for key in self.keys() if inputs.get(key) is not None}
        return cluster_inputs.checked_cluster_inputs(self._runtimes, old_inputs, present, program, failures)

    async def declare(self, urn: str, old_inputs: Properties, inputs: Properties) -> None:
        """See :meth:`Resource.declare`: a cluster is made again only with the user's consent, and while no run uses it.

        Pulumi does not ask for the difference if a replacement is forced, as by `pulumi up --replace`, nor of a cluster
        that has another URN now.
        """
        if contains_unknown([inputs.get("name"), inputs.get("home")]):
            return
        directory = _directory(inputs)
        self._kept.pop(urn, None)
        if old_inputs:
            if directory == _directory(old_inputs):
                self._kept[urn] = directory
            return
        if seen := await self._there(directory, inputs):
            require_no_run(seen.identity)
            self._places.require_consent_to_make_again(directory, inputs)
            self._remade[directory] = seen

    async def _there(self, directory: str, inputs: Properties) -> Observed | None:
        """A directory's cluster, if it is whole and the stack's own; None of what an interrupted run has left."""
        place = Place(Path(directory))
        owner = place.note().get("owner", "")
        identities = {identity_of(owner), str(inputs.get("stackId") or "")} - {""}
        is_anothers = len(identities) > 1
        if is_anothers or place.removed() or not place.declared_file.exists():
            return None
        found = {**adoption.cluster_inputs(place), "owner": owner, "identity": "", **_files(place)}
        if not self._runtime(found).on_one_machine:
            return None
        seen = await self._runtime(found).read(self._recorded(found), Silent())
        return None if seen is None or seen.health == "incomplete" else seen

    async def preview(
        self,
        reporters: previews.Reporters,
        urn: str,
        old_inputs: Properties,
        old_outputs: Properties,
        inputs: Properties,
    ) -> None:
        """See :meth:`Resource.preview`: what leaves the cluster with declarations that were removed."""
        self._places.require_here_or_moving(old_outputs, reporters(urn))
        runtime = self._runtimes.get(str(inputs.get("runtime")))
        if runtime is not None and old_outputs.get("runtime") == runtime.name and not contains_unknown(inputs):
            wanted = self._wanted(inputs, str(old_outputs.get("owner")))
            await runtime.examine(wanted, str(old_outputs.get("identity")), reporters(urn))
            if not any(each.replaces for each in self.diff(old_outputs, inputs)):
                await runtime.examine_update(wanted, reporters(urn))
        await previews.report_removals(self._connections, reporters, urn, old_inputs, old_outputs, inputs, self._hourly)

    def diff(self, old_outputs: Properties, inputs: Properties) -> list[PropertyDifference]:
        def compared(key: str, *, replace: bool = False) -> list[PropertyDifference]:
            return differences(key, old_outputs.get(key), inputs.get(key), replace=replace)

        found = [each for key in self.replaced_by() for each in compared(key, replace=True)]
        # The note next to its files says who owns it.
        found += compared(STACK_ID.name)
        runtime = self._runtimes.get(str(inputs.get("runtime")))
        before, after = (str(each.get("kubernetesVersion") or "") for each in (old_outputs, inputs))
        found += compared("kubernetesVersion", replace=runtime is None or not runtime.takes_version(before, after))
        if runtime is None or inputs.get("options") is UNKNOWN:
            return found + compared("options", replace=True)
        old_options, options = _mapping(old_outputs, "options"), _mapping(inputs, "options")
        for key in sorted({*old_options, *options}):
            replace = key in runtime.replaced_by
            found += differences(
                join("options", key), old_options.get(key), options.get(key), replace=replace, deep=True
            )
        if contains_unknown(inputs):
            return found
        # A killed destroy may have removed a cluster that the state still has; detected without a refresh, too.
        status = left_by_runs(old_outputs) or old_outputs.get("status")
        if old_outputs.get("directory") and runtime.removed(str(old_outputs["directory"])):
            status = "removed"
        found += differences("status", status, inputs.get("status"), replace=status in ("removed", "incomplete"))
        wanted = runtime.configuration(self._wanted(inputs))
        return found + differences("configuration", old_outputs.get("configuration"), wanted)

    async def compare(self, old_outputs: Properties, inputs: Properties) -> list[PropertyDifference]:
        """See :meth:`Resource.compare`: where the cluster is, and whether it runs and answers."""
        found = self._places.move_differences(old_outputs) + self.diff(old_outputs, inputs)
        if old_outputs.get("directory"):
            found += await self._health(old_outputs, inputs, found)
        replaced = {each.path for each in found if each.replaces}
        # On a cluster that is gone, no run is under way.
        if replaced and "status" not in replaced:
            require_no_run(str(old_outputs.get("identity") or ""))
        self._places.require_consent(old_outputs, inputs, found)
        return found

    async def _health(
        self, old_outputs: Properties, inputs: Properties, found: list[PropertyDifference]
    ) -> list[PropertyDifference]:
        """The differences if a cluster that ran no longer runs or answers: an update has to leave one that does both.

        If its note is gone, nothing else says whether it is there; the update writes another note.

        Args:
            found: the differences so far. If they say enough of the status already, the cluster is not looked at.
        """
        runtime = self._runtimes.get(str(old_outputs.get("runtime")))
        place = Place(Path(str(old_outputs["directory"])))
        has_note = place.note_file.exists()
        replaced = {each.path for each in found if each.replaces}
        if has_note:
            ran = old_outputs.get("status") == "running"
            is_known = not ran or bool(replaced) or any(each.path == "status" for each in found)
        else:
            is_known = not replaced.isdisjoint(("machine", "status"))
        if runtime is None or not runtime.on_one_machine or is_known:
            return []
        seen = await runtime.read(self._recorded(old_outputs), Silent())
        health = seen.health if seen else "removed"
        lost = differences("status", health, inputs.get("status"), replace=health in ("removed", "incomplete"))
        if not lost and not has_note and place.directory.is_dir():
            return [PropertyDifference("configuration", "update")]
        return lost

    async def create(self, op: Operation, inputs: Properties) -> tuple[str, Properties]:
        if op.preview:
            return "", await self._preview_create(op, _without_contents(inputs))
        wanted = self._wanted(inputs, _owner(op, inputs))
        seen = await self._runtime(inputs).create(wanted, op.report, op.stop)
        self._kept[op.urn] = _directory(inputs)
        return wanted.name, self._outputs(inputs, seen, wanted.owner)

    async def _preview_create(self, op: Operation, inputs: Properties) -> Properties:
        """Refuse what others already have in a cluster that is there; returns the outputs as far as they are known."""
        outputs: Properties = dict.fromkeys((*_UNKNOWN_AT_FIRST, "owner", "kubeconfig"), UNKNOWN)
        if not contains_unknown(inputs):
            if seen := self._remade.get(_directory(inputs)):
                lost = await previews.what_is_in(self._connections, seen.kubeconfig, seen.identity)
                op.report.warn(f"cluster {known(inputs, 'name')} is there and is made again, {LOST}{lost}")
            runtime, wanted = self._runtime(inputs), self._wanted(inputs, _owner(op, inputs))
            path = outputs["kubeconfig"] = runtime.kubeconfig_path(wanted)
            if there := await runtime.examine(wanted, None, op.report):
                # So that resources for this cluster can check who owns the names that they want.
                self._connections.foresee(path, there.connection)
                outputs |= {"identity": there.identity, "server": there.server}
        return {**inputs, **outputs}

    async def read(self, op: Operation, resource_id: str, outputs: Properties, inputs: Properties) -> ReadResult | None:
        if not outputs.get("directory"):
            return await self._adopt(op, resource_id)
        self._places.require_here(outputs)
        seen = await self._runtime(outputs).read(self._recorded(outputs), op.report)
        if seen is None:
            return None
        return ReadResult(resource_id, self._outputs(inputs, seen, str(outputs.get("owner"))), inputs)

    async def _adopt(self, op: Operation, resource_id: str) -> ReadResult | None:
        """Read a cluster for an import, which knows only its id; see ``adoption``."""
        place = adoption.cluster_place(resource_id, op.program)
        inputs, owner = adoption.cluster_inputs(place), place.note().get("owner", "")
        found = {**inputs, **_files(place), "owner": owner, "identity": await adoption.identity(place)}
        seen = await self._runtime(inputs).read(self._recorded(found), op.report)
        if seen is None:
            return None
        if not same_owner(owner, _owner(op, {})):
            op.report.warn(
                f"cluster {place.name} was made by {owner}; where a stack still has it, take it out there with "
                "`pulumi state delete`: whichever of the two destroys it destroys it for both"
            )
        # Imported with its maker's identity: the stack's next update replaces it by its own.
        if maker := identity_of(owner):
            inputs["stackId"] = maker
        return ReadResult(place.name, self._outputs(inputs, seen, owner), inputs)

    async def update(self, op: Operation, resource_id: str, old_outputs: Properties, inputs: Properties) -> Properties:
        owner = identified(str(old_outputs.get("owner")), str(inputs.get("stackId") or ""))
        self._places.require_own(old_outputs, owner)
        if op.preview:
            return await self._preview_update(op, old_outputs, _without_contents(inputs))
        wanted = self._wanted(inputs, owner)
        seen = await self._runtime(inputs).repair(wanted, str(old_outputs.get("identity")), op.report)
        await put_back(seen, op.report)
        return self._outputs(inputs, seen, owner)

    async def _preview_update(self, op: Operation, old_outputs: Properties, inputs: Properties) -> Properties:
        """Report what an update does; returns the outputs as far as they are known."""
        kept = {key: old_outputs.get(key) for key in ("identity", "kubeconfig", "server", "directory", "owner")}
        runtime = self._runtime(inputs)
        may_have_stopped = old_outputs.get("status") == "running" and runtime.on_one_machine
        seen = await runtime.read(self._recorded(old_outputs), op.report) if may_have_stopped else None
        components = dict(seen.components) if seen else _mapping(old_outputs, "components")
        for name, state in components.items():
            if state != "running":
                op.report.info(f"{name} is {state} and will be {_REMEDIES.get(str(state), 'started')}")
        if left := left_by_runs(old_outputs):
            op.report.info(f"the cluster is {left}, which is gone: all of it is put back")
        before, after = (str(each.get("kubernetesVersion") or "") for each in (old_outputs, inputs))
        if before != after:
            op.report.info(
                f"Kubernetes {before} becomes {after}: the API server, the controller manager and the scheduler "
                "are restarted, what is in the cluster stays"
            )
        was = old_outputs.get("configuration")
        configuration: Any = UNKNOWN
        if not contains_unknown(inputs):
            for line in runtime.consequences(_mapping(old_outputs, "options"), _mapping(inputs, "options")):
                op.report.info(line)
            configuration = runtime.configuration(self._wanted(inputs))
        # The endpoints of a service that is added, removed or reconfigured are known only after the update.
        unchanged = old_outputs.get("options") == inputs.get("options") and configuration == was
        return {
            **inputs,
            **kept,
            "endpoints": _mapping(old_outputs, "endpoints") if unchanged else UNKNOWN,
            "status": "running",
            "components": dict.fromkeys(components, "running"),
            "configuration": configuration,
            **self._machine(inputs),
        }

    async def delete(self, op: Operation, resource_id: str, outputs: Properties) -> None:
        """See :meth:`Resource.delete`; what has been made in its place since, or is still declared, stays."""
        recorded = self._recorded(outputs)
        if recorded.directory in self._kept.values():
            op.report.info(f"cluster {recorded.name} stays, as the stack still declares it")
            # If another one was made there, the recorded one is gone.
            gone = recorded.directory in self._remade
        else:
            require_no_run(recorded.identity)
            moved = await self._places.end_moved(outputs, recorded, op.report)
            gone = not moved
            if gone:
                await self._runtime(outputs).delete(recorded, op.report)
        if gone and not registry.outlives_stack(outputs.get("runtime")):
            runs.forget(recorded.identity)

    def _runtime(self, properties: Properties) -> Runtime:
        name = str(known(properties, "runtime"))
        if name not in self._runtimes:
            raise ProviderError(
                f"{name!r} is not a runtime of this plugin; it has: {', '.join(sorted(self._runtimes))}"
            )
        return self._runtimes[name]

    def _wanted(self, inputs: Properties, owner: str = "") -> WantedControlPlane:
        return WantedControlPlane(
            name=str(known(inputs, "name")),
            owner=owner,
            home=str(known(inputs, "home")),
            kubernetes_version=str(inputs.get("kubernetesVersion") or ""),
            options=_mapping(inputs, "options"),
            nodes=expected_nodes(inputs.get("contents")),
        )

    def _recorded(self, outputs: Properties) -> RecordedControlPlane:
        return RecordedControlPlane(
            name=str(known(outputs, "name")),
            owner=str(outputs.get("owner")),
            directory=str(known(outputs, "directory")),
            kubeconfig=str(known(outputs, "kubeconfig")),
            identity=str(known(outputs, "identity")),
            options=_mapping(outputs, "options"),
        )

    def _outputs(self, inputs: Properties, seen: Observed, owner: str) -> Properties:
        """The outputs; also writes the note of how the cluster was declared, next to its files."""
        if seen.directory:
            adoption.note(seen.directory, inputs)
        outputs: dict[str, Any] = {
            **_without_contents(inputs),
            "identity": seen.identity,
            "kubeconfig": seen.kubeconfig,
            "server": seen.server,
            "directory": seen.directory,
            "owner": owner,
            "status": seen.health,
            "components": dict(seen.components),
            "endpoints": dict(seen.endpoints),
            "configuration": seen.configuration,
            **self._machine(inputs),
        }
        return outputs

    def _machine(self, inputs: Properties) -> Properties:
        found = self._places.machine(str(inputs.get("runtime")))
        return {"machine": found} if found else {}


def _directory(inputs: Properties) -> str:
    """Where the files of a cluster are to be."""
    return str(Place.of(str(known(inputs, "home")), str(known(inputs, "name"))).directory)


def _files(place: Place) -> Properties:
    return {"directory": str(place.directory), "kubeconfig": str(place.kubeconfig)}


def _without_contents(inputs: Properties) -> Properties:
    """The inputs that are outputs, too; what the stack has in the cluster is none of them."""
    return {key: value for key, value in inputs.items() if key != "contents"}


def _mapping(properties: Properties, key: str) -> dict[str, Any]:
    found = properties.get(key)
    return found if isinstance(found, dict) else {}


def _owner(op: Operation, inputs: Properties) -> str:
    """The owner; it includes the directory, as two checkouts of the same project have the same URNs."""
    stack = op.urn.split("::")[0].removeprefix("urn:pulumi:")
    return owner_of(stack, op.urn, os.getcwd(), str(inputs.get("stackId") or ""))

"""Resources about a Helm release: what they share, its mark, and its preparation."""

from collections.abc import Callable, Sequence
from typing import ClassVar

from kumulus.helm import command, history, namespaces
from kumulus.helm.history import Revision
from kumulus.model.identity import STACK_ID, Owner
from kumulus.model.words import repairs_in
from kumulus.nodes import ownership
from kumulus.nodes.errors import ProviderError
from kumulus.provider.connections import SILENT, UNASKED
from kumulus.provider.properties import BOOLEAN, INTEGER, STRING, Property
from kumulus.provider.resources.base import Operation, Properties, known
from kumulus.provider.resources.diffing import PropertyDifference
from kumulus.provider.resources.in_cluster import LOOK_PATIENCE, PLACE, WORK_PATIENCE, InClusterResource
from kumulus.provider.values import contains_unknown


class OfRelease(InClusterResource):
    """A resource about a Helm release; ``namespace`` and ``name`` say which, in addition to its cluster's place."""

    inputs: ClassVar[tuple[Property, ...]] = (
        *PLACE,
        Property("namespace", STRING, "The Helm release's namespace.", required=True, replaces=True),
        Property("name", STRING, "The Helm release's name.", required=True, replaces=True),
    )

    def title(self, properties: Properties) -> str:
        return f"release {self.id_of(properties)}"

    def id_of(self, inputs: Properties) -> str:
        """See :meth:`InClusterResource.id_of`: ``namespace/name`` of the release."""
        return f"{known(inputs, 'namespace')}/{known(inputs, 'name')}"

    def place_of(self, properties: Properties) -> tuple[object, ...]:
        """See :meth:`InClusterResource.place_of`: which release it is about."""
        return (properties.get("namespace"), properties.get("name"))

    async def look(self, op: Operation, outputs: Properties, inputs: Properties) -> Properties:
        """See :meth:`InClusterResource.look`; what is recorded stands; :meth:`compare` may look at the release."""
        return outputs

    async def remove(self, op: Operation, outputs: Properties) -> None:
        """See :meth:`InClusterResource.remove`: most of these resources have nothing to remove besides the release."""

    async def differing(
        self, old_outputs: Properties, inputs: Properties, name: str, differs: Callable[[list[Revision]], bool]
    ) -> list[PropertyDifference]:
        """The differences of the properties, or else that of one property if the release's revisions make it differ."""
        found = self.diff(old_outputs, inputs)
        if found or contains_unknown(inputs):
            return found
        try:
            revisions = await self.revisions(inputs, LOOK_PATIENCE)
        except UNASKED:
            # Then there is nothing to differ from, or the cluster's own resource reports the problem.
            return []
        return [PropertyDifference(name, "update")] if differs(revisions) else []

    async def revisions(self, properties: Properties, patience: float) -> list[Revision]:
        """The release's revisions; arguments and errors as of :meth:`InClusterResource.client`."""
        client = await self.client(properties, patience)
        namespace, name = str(known(properties, "namespace")), str(known(properties, "name"))
        return await history.revisions(client, namespace, name, patience)


class ReleaseMark(OfRelease):
    """A note in the cluster that a Pulumi state has a Helm release."""

    # It is declared after the release. A release without it was installed by an update that was killed before it ended,
    # and Pulumi would fail on it forever; see ``ReleasePreparation`` and docs/decisions/helm-releases.md.
    token: ClassVar[str] = "kumulus:index:ReleaseMark"

    async def compare(self, old_outputs: Properties, inputs: Properties) -> list[PropertyDifference]:
        """See :meth:`Resource.compare`: a release that was installed again has to be marked again."""
        mine = str(inputs.get("stackId") or "")

        def unmarked(found: list[Revision]) -> bool:
            return bool(found) and not any(each.recorded and (each.owner or Owner()).identity == mine for each in found)

        return await self.differing(old_outputs, inputs, "name", unmarked)

    async def make(self, op: Operation, resource_id: str, inputs: Properties, old: Properties | None) -> Properties:
        owner = self.owner(op, inputs, old)
        with self.needing_cluster(inputs):
            found = await self.revisions(inputs, WORK_PATIENCE)
            if history.is_anothers(found, owner, proven=True):
                raise ProviderError(f"release {self.id_of(inputs)} is another stack's; it was not marked as this one's")
            if found:
                await history.mark_recorded(await self.client(inputs, WORK_PATIENCE), found[-1], owner)
        return inputs


class ReleasePreparation(OfRelease):
    """What a Helm release needs before it: nothing of an interrupted update in its way, and its namespace."""

    # It is declared before the release, and so deleted after it: then it uninstalls a release that the state never knew
    # of, and removes a namespace that is no longer needed. See docs/decisions/helm-releases.md.
    token: ClassVar[str] = "kumulus:index:ReleasePreparation"
    inputs: ClassVar = (
        *OfRelease.inputs,
        Property("createNamespace", BOOLEAN, "Make the namespace, and remove it with the last release in it."),
    )
    outputs: ClassVar = (
        Property("repairs", INTEGER, "How often something was in the release's way; the release follows from it."),
        Property("foreign", STRING, "UID of the revision of somebody else's release that was there before."),
    )

    async def compare(self, old_outputs: Properties, inputs: Properties) -> list[PropertyDifference]:
        """See :meth:`Resource.compare`: a leftover in the cluster is a difference, in previews too."""
        foreign = str(old_outputs.get("foreign") or "")

        def in_the_way(found: list[Revision]) -> bool:
            # Another stack's release is refused by the update.
            anothers = history.is_anothers(found, _mine(inputs), proven=True)
            return anothers or history.leftover(found, foreign) != ""

        return await self.differing(old_outputs, inputs, "repairs", in_the_way)

    async def previewed(self, op: Operation, inputs: Properties, old: Properties | None) -> Properties:
        if old is None and contains_unknown(inputs):
            return _outputs(inputs, {})
        try:
            return await self._looked_over(op, inputs, old)
        except UNASKED:
            return _outputs(inputs, old or {})

    async def make(self, op: Operation, resource_id: str, inputs: Properties, old: Properties | None) -> Properties:
        """See :meth:`InClusterResource.make`: an existing release is somebody else's unless marked as this stack's."""
        with self.needing_cluster(inputs):
            outputs = await self._looked_over(op, inputs, old)
        await self._namespace(op, inputs, old)
        return outputs

    async def _looked_over(self, op: Operation, inputs: Properties, old: Properties | None) -> Properties:
        """Refuse another owner's release, and repair what an interrupted update left; a preview only reports that."""
        found = await self.revisions(inputs, LOOK_PATIENCE if op.preview else WORK_PATIENCE)
        owner = self.owner(op, inputs, old)
        is_recorded = any(revision.recorded for revision in found)
        # A stack without an identity has no other way to know its own.
        proven = old is not None or (is_recorded and not owner.identity)
        if history.is_anothers(found, owner, proven=proven):
            raise ProviderError(await self._refusal(inputs, found))
        marked = history.owner_of(found)
        if marked is not None and marked.identity != owner.identity and not op.preview:
            # The stack has been given another identity.
            await history.mark_recorded(await self.client(inputs, WORK_PATIENCE), found[-1], owner)
        outputs = _outputs(inputs, old or {})
        if old is None and is_recorded and owner.identity:
            # It was once in the stack's state, as after a refused destroy. The state may have lost this resource alone,
            # and the release changes only by another number of repairs.
            client = await self.client(inputs, WORK_PATIENCE)
            outputs["repairs"] = repairs_in(await history.description(client, found[-1], LOOK_PATIENCE))
            ending = "is taken up again" if op.preview else "was taken up again"
            op.report.info(f"{self.title(inputs)} is this stack's and has left its state; it {ending}")
        elif old is not None and (left := history.leftover(found, outputs["foreign"])):
            ending = "is repaired" if op.preview else "was repaired"
            op.report.info(f"{self.title(inputs)}: {left} by an update that did not end; it {ending}")
        else:
            return outputs
        if not op.preview:
            await history.mark_failed(await self.client(inputs, WORK_PATIENCE), found[-1])
        # The release depends on this output, and on no other.
        return {**outputs, "repairs": outputs["repairs"] + 1}

    async def remove(self, op: Operation, outputs: Properties) -> None:
        """See :meth:`InClusterResource.remove`: uninstalls a release that Pulumi's state never had."""
        foreign, resource_id = str(outputs.get("foreign") or ""), self.id_of(outputs)
        found = await self.revisions(outputs, WORK_PATIENCE)
        proven = all(revision.uid != foreign for revision in found)
        if history.is_anothers(found, _mine(outputs), proven=proven):
            op.report.warn(f"release {resource_id} {await self._owner_text(outputs, found)}; it is left alone")
        elif found:
            await self._uninstall(op, resource_id, outputs)
        if not outputs.get("createNamespace"):
            return
        try:
            client = await self.client(outputs, WORK_PATIENCE)
            name, cluster = str(known(outputs, "namespace")), str(known(outputs, "clusterName"))
            if kept := await namespaces.take_away(client, name, cluster, _mine(outputs)):
                op.report.info(kept)
        except SILENT as error:
            op.report.warn(f"whether the namespace {outputs['namespace']} can go is not known: {error}")

    async def _refusal(self, inputs: Properties, found: Sequence[Revision]) -> str:
        """Why nothing is done with a release, and the possible remedies."""
        namespace, name, mine, last = inputs["namespace"], inputs["name"], _mine(inputs), found[-1]
        there = f"the release {namespace}/{name} is there already (revision {last.number}, {last.status})"
        refused = (
            f"{there} and {await self._owner_text(inputs, found)}; nothing was changed: give the add-on another name"
        )
        if history.owner_of(found) is not None or not mine.identity:
            return refused
        return (
            f"{refused}. To have this stack take it over: kubectl -n {namespace} label secret -l owner=helm,name="
            f"{name} {STACK_ID}={mine.identity}, then pulumi import kubernetes:helm.sh/v3:Release {name}-release "
            f"{namespace}/{name}"
        )

    async def _owner_text(self, properties: Properties, found: Sequence[Revision]) -> str:
        """Who has a release that is not ours, after its name: ``belongs to the stack kumulus/dev (identity …)``."""
        owner = history.owner_of(found)
        if owner is not None:
            client = await self.client(properties, LOOK_PATIENCE)
            return f"belongs to {await ownership.named(client, owner)}"
        recorded = any(revision.recorded for revision in found)
        return "is a stack's that has no identity" if recorded else "was installed by somebody else"

    async def _uninstall(self, op: Operation, resource_id: str, outputs: Properties) -> None:
        place = ("--namespace", str(outputs["namespace"]), "--kubeconfig", str(outputs["kubeconfig"]))
        try:
            await command.run("uninstall", str(outputs["name"]), *place)
        except command.HelmError as error:
            raise ProviderError(f"release {resource_id}, left by an update that did not end: {error}") from None
        op.report.info(f"release {resource_id}, left by an update that did not end, was uninstalled")

    async def _namespace(self, op: Operation, inputs: Properties, old: Properties | None) -> None:
        if not inputs.get("createNamespace"):
            return
        try:
            client = await self.client(inputs, WORK_PATIENCE)
            owner = self.owner(op, inputs, old)
            name, cluster = str(inputs["namespace"]), str(inputs["clusterName"])
            await namespaces.ensure(client, name, cluster, owner, recorded=old is not None)
        except UNASKED as error:
            raise ProviderError(f"the namespace {inputs['namespace']}: {error}") from None
        except TimeoutError:
            raise ProviderError(
                f"the namespace {inputs['namespace']} is being removed and does not go; see what holds it with "
                f"kubectl get namespace {inputs['namespace']} -o yaml"
            ) from None


def _outputs(inputs: Properties, old: Properties) -> Properties:
    return {**inputs, "repairs": int(old.get("repairs") or 0), "foreign": str(old.get("foreign") or "")}


def _mine(properties: Properties) -> Owner:
    return Owner(str(properties.get("stackId") or ""))

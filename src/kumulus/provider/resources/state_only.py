"""Resources that are in the state alone: a stack's identity, a cluster's life, a check before a destroy."""

from collections.abc import Mapping
from typing import ClassVar

from kumulus.model import identity
from kumulus.model.plain import UNKNOWN
from kumulus.nodes.errors import ProviderError
from kumulus.provider.properties import STRING, STRINGS, Property
from kumulus.provider.resources.base import (
    CheckResult,
    InputFailure,
    Operation,
    Properties,
    ReadResult,
    Resource,
    known,
)
from kumulus.provider.resources.cluster_place import RecordedPlaces, require_no_run
from kumulus.provider.resources.in_cluster import PLACE
from kumulus.provider.settings import PluginSettings
from kumulus.runtimes.base import Runtime

_IDENTITY = "clusterIdentity"


class StateOnly(Resource):
    """A resource that is in the state alone. Its id is the value of one of its inputs."""

    key: ClassVar[str]
    delete_before_replace: ClassVar[bool] = False

    async def create(self, op: Operation, inputs: Properties) -> tuple[str, Properties]:
        return "" if op.preview else str(known(inputs, self.key)), inputs

    async def read(self, op: Operation, resource_id: str, outputs: Properties, inputs: Properties) -> ReadResult | None:
        """See :meth:`Resource.read`; there is nothing to look at."""
        by_id = {self.key: resource_id}
        return ReadResult(resource_id, outputs or by_id, inputs or by_id)

    async def update(self, op: Operation, resource_id: str, old_outputs: Properties, inputs: Properties) -> Properties:
        return inputs

    async def delete(self, op: Operation, resource_id: str, outputs: Properties) -> None:
        """See :meth:`Resource.delete`; there is nothing to remove."""


class StackIdentityResource(StateOnly):
    """Who a stack is: what it makes in clusters and on machines carries this, and nobody else's is touched."""

    # An input that the plugin fills in, as Pulumi's providers do with auto-generated names: every preview knows it,
    # even the first, and it stays for as long as the resource is in the state. See docs/decisions/identity.md.
    token: ClassVar[str] = "kumulus:index:StackIdentity"
    key: ClassVar[str] = "stackId"
    inputs: ClassVar = (
        Property(key, STRING, "The identity, 32 hexadecimal digits; drawn at random, once, when left out."),
    )

    def drawn(self, old_inputs: Properties, inputs: Properties, seed: bytes) -> Properties:
        """See :meth:`Resource.drawn`: an identity, if there is none yet."""
        return {self.key: inputs.get(self.key) or old_inputs.get(self.key) or identity.drawn(seed)}

    def check(self, old_inputs: Properties, inputs: Properties, program: str) -> CheckResult:
        failures = self.input_failures(inputs)
        value = inputs.get(self.key)
        if value is not UNKNOWN and not identity.is_identity(value):
            failures.append(InputFailure(self.key, f"{value!r} is not an identity; leave it out to have one drawn"))
        return CheckResult({self.key: value}, failures)

    async def read(self, op: Operation, resource_id: str, outputs: Properties, inputs: Properties) -> ReadResult | None:
        """See :meth:`Resource.read`; an import restores an identity that was lost with a state."""
        kept = outputs.get(self.key) or resource_id
        if not identity.is_identity(kept):
            raise ProviderError(
                f"{kept!r} is not an identity; write the 32 digits that the label {identity.STACK_ID} has on what "
                "the stack has made"
            )
        return ReadResult(str(kept), {self.key: kept}, {self.key: kept})


class Lifetime(StateOnly):
    """The life of one cluster, for other resources to be `deletedWith`; it stands for nothing outside the state."""

    # When the cluster's identity changes, it is replaced, the new one created first. The old one is then deleted in the
    # same step as the old resources of the lost cluster, and the engine skips their deletes, which would reach no
    # cluster. See docs/decisions/deleted-with.md.
    token: ClassVar[str] = "kumulus:index:Lifetime"
    key: ClassVar[str] = _IDENTITY
    inputs: ClassVar = (PLACE[1],)


class DestroyCheck(StateOnly):
    """Where and which a cluster is, for a destroy to look there first; it stands for nothing outside the state."""

    # Pulumi drops what is deleted with a cluster, such as its pools, from the state without asking the provider, before
    # the cluster can report that it is on another machine, or that an experiment runs there. This depends on all of
    # that, so it is deleted first. See docs/decisions/machine.md.
    token: ClassVar[str] = "kumulus:index:DestroyCheck"
    key: ClassVar[str] = "name"
    inputs: ClassVar = (
        Property(key, STRING, "The cluster's name.", required=True),
        Property("runtime", STRING, "The cluster's runtime.", required=True),
        Property("directory", STRING, "Where its files are."),
        Property("owner", STRING, "Its owner, as the cluster has it on record."),
        Property("machine", STRINGS, "The machine that it is on: its `id` and its `name`."),
        Property(_IDENTITY, STRING, "Its identity: while a run is under way there, it is not destroyed."),
    )

    def __init__(self, runtimes: Mapping[str, Runtime], settings: PluginSettings) -> None:
        self._settings = settings
        self._places = RecordedPlaces(runtimes, settings)

    async def delete(self, op: Operation, resource_id: str, outputs: Properties) -> None:
        """See :meth:`Resource.delete`; refused of a cluster in use, on another machine, or of a later version."""
        require_no_run(str(outputs.get(_IDENTITY) or ""))
        if not self._settings.move_here:
            self._places.require_here(outputs)

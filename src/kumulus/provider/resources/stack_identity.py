"""``kumulus:index:StackIdentity``: a stack's identity, drawn once and kept in its state.

Its value is an input that the plugin fills in, as Pulumi's providers do with auto-generated names: every preview knows
it, even the first, and it does not change for as long as the resource is in the state. See docs/decisions/identity.md.
"""

from __future__ import annotations

from typing import ClassVar

from kumulus.model import identity
from kumulus.model.unknown import UNKNOWN
from kumulus.nodes.errors import ProviderError
from kumulus.provider.properties import STRING, Property
from kumulus.provider.resources.base import Checked, Failure, Found, Operation, Properties, Resource, known

_KEY = "stackId"


class StackIdentity(Resource):
    """Who a stack is: what it makes in clusters and on machines carries this, and nobody else's is touched."""

    token: ClassVar[str] = "kumulus:index:StackIdentity"
    inputs: ClassVar = (
        Property(_KEY, STRING, "The identity, 32 hexadecimal digits; drawn at random, once, when left out."),
    )
    delete_before_replace: ClassVar[bool] = False

    def drawn(self, old_inputs: Properties, inputs: Properties, seed: bytes) -> Properties:
        """See :meth:`Resource.drawn`: an identity, if there is none yet."""
        return {_KEY: inputs.get(_KEY) or old_inputs.get(_KEY) or identity.drawn(seed)}

    def check(self, old_inputs: Properties, inputs: Properties, program: str) -> Checked:
        """See :meth:`Resource.check`."""
        failures = self.input_failures(inputs)
        value = inputs.get(_KEY)
        if value is not UNKNOWN and not identity.is_identity(value):
            failures.append(Failure(_KEY, f"{value!r} is not an identity; leave it out to have one drawn"))
        return Checked({_KEY: value}, failures)

    async def create(self, op: Operation, inputs: Properties) -> tuple[str, Properties]:
        """See :meth:`Resource.create`."""
        return "" if op.preview else str(known(inputs, _KEY)), inputs

    async def read(self, op: Operation, resource_id: str, outputs: Properties, inputs: Properties) -> Found | None:
        """See :meth:`Resource.read`; an import restores an identity that was lost with a state."""
        kept = outputs.get(_KEY) or resource_id
        if not identity.is_identity(kept):
            raise ProviderError(
                f"{kept!r} is not an identity; write the 32 digits that the label {identity.STACK_ID} has on what "
                "the stack has made"
            )
        return Found(str(kept), {_KEY: kept}, {_KEY: kept})

    async def update(self, op: Operation, resource_id: str, old_outputs: Properties, inputs: Properties) -> Properties:
        """See :meth:`Resource.update`."""
        return inputs

    async def delete(self, op: Operation, resource_id: str, outputs: Properties) -> None:
        """See :meth:`Resource.delete`; there is nothing outside the state."""

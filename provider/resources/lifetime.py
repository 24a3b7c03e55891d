"""``kumulus:index:Lifetime``: the life of one cluster, for other providers' resources to be ``deleted_with``.

It stands for nothing outside the state. When the cluster's identity changes it is replaced, the new one first: its old
self is then deleted in the same step as the old selves of what lived in the lost cluster, and the engine spares those
a delete that would reach nobody. See docs/decisions/deleted-with.md.
"""

from __future__ import annotations

from typing import ClassVar

from provider.resources.base import Checked, Difference, Failure, Found, Operation, Properties, Resource, known
from provider.resources.diffing import differences


class Lifetime(Resource):
    """The life of one cluster. Input and output: ``clusterIdentity``."""

    token: ClassVar[str] = "kumulus:index:Lifetime"
    delete_before_replace: ClassVar[bool] = False

    def check(self, old_inputs: Properties, inputs: Properties, program: str) -> Checked:
        """See :meth:`Resource.check`."""
        failures = [
            Failure(key, f"Lifetime has no input {key!r}; it takes clusterIdentity")
            for key in inputs
            if key != "clusterIdentity" and not key.startswith("__")
        ]
        if inputs.get("clusterIdentity") is None:
            failures.append(Failure("clusterIdentity", "is required"))
        return Checked({key: inputs[key] for key in ("clusterIdentity",) if key in inputs}, failures)

    def diff(self, old_outputs: Properties, inputs: Properties) -> list[Difference]:
        """See :meth:`Resource.diff`."""
        key = "clusterIdentity"
        return differences(key, old_outputs.get(key), inputs.get(key), replace=True)

    async def create(self, op: Operation, inputs: Properties) -> tuple[str, Properties]:
        """See :meth:`Resource.create`."""
        return "" if op.preview else str(known(inputs, "clusterIdentity")), inputs

    async def read(self, op: Operation, resource_id: str, outputs: Properties, inputs: Properties) -> Found | None:
        """See :meth:`Resource.read`: a life that ended is known by the identity of the next one."""
        return Found(resource_id, outputs, inputs)

    async def update(self, op: Operation, resource_id: str, old_outputs: Properties, inputs: Properties) -> Properties:
        """See :meth:`Resource.update`; there is nothing that could change in place."""
        return inputs

    async def delete(self, op: Operation, resource_id: str, outputs: Properties) -> None:
        """See :meth:`Resource.delete`; there is nothing to remove."""

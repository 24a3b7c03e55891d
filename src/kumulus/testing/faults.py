"""Faults of a cluster for tests: begun and ended as `kumulus fault` does."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

from kumulus.model.errors import SpecError
from kumulus.model.pools import names_of
from kumulus.nodes.faults import operations, records, stages
from kumulus.stackfile.fault_now import NoPools, resolved
from kumulus.stackfile.faults import fault_from
from kumulus.testing.errors import ClusterError
from kumulus.testing.plane import Plane
from kumulus.testing.views import Node

Target = int | str | Sequence[str] | Mapping[str, Any] | None
"""How many nodes, which ones by name, or a `target` as in a stack file; None for all."""
_SOURCE = "the fault"


class AsyncFaultHandle:
    """A fault that is active.

    Attributes:
        name: its name.
        names: of its nodes.
    """

    def __init__(self, name: str, names: Sequence[str], nodes: Callable[[], Awaitable[list[Node]]]) -> None:
        self.name, self.names = name, names
        self._nodes = nodes

    async def nodes(self) -> list[Node]:
        """Its nodes, as they are now."""
        return [each for each in await self._nodes() if each.name in self.names]


def fault_item(name: str, kind: str, nodes: Target, fields: Mapping[str, Any]) -> dict[str, Any]:
    """A fault as an item of the stack file's `faults`."""
    item: dict[str, Any] = {"name": name, **fields}
    if kind:
        item["kind"] = kind
    if isinstance(nodes, int):
        item["target"] = {"count": nodes}
    elif isinstance(nodes, Mapping):
        item["target"] = dict(nodes)
    elif isinstance(nodes, str):
        item["target"] = {"names": [nodes]}
    elif nodes is not None:
        item["target"] = {"names": list(nodes)}
    return item


async def begin(plane: Plane, raw: Mapping[str, Any]) -> list[str]:
    """Begin a fault; returns the names of its nodes."""
    known = await records.read(plane.client)
    try:
        found = resolved(fault_from(raw, _SOURCE), known.pools, _SOURCE)
        began = await plane.begin(found)
    except (SpecError, NoPools, operations.FaultRefused, stages.NoStages) as error:
        raise ClusterError(str(error)) from None
    return sorted({*names_of(began.nodes, plane.pools), *began.machines})


async def end(plane: Plane, name: str) -> None:
    """End a fault; one that a reset has ended is over already."""
    _, applied = await operations.end(plane.client, name, owner=plane.owner)
    if left := applied.left():
        raise ClusterError(f"the fault {name} is not over: {left}")

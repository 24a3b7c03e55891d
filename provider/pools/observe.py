"""Look at a pool's nodes and keep only what is not as wanted, so that memory does not grow with the pool."""

from __future__ import annotations

from dataclasses import dataclass, field

from kube import ApiError, Client
from kube.bulk import for_each
from provider.pools.compare import FieldDifference, field_differences
from provider.pools.live import NODES, LiveNode, live_node
from spec.pools import POOL_LABEL, Pool

# Up to this many missing names are asked for one by one; beyond it one list of names only is cheaper.
_ASK_SINGLY = 50
_METADATA_ONLY = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json"


@dataclass
class Observation:
    """A pool's nodes compared with what is wanted.

    Attributes:
        missing: ordinals whose node does not exist.
        altered: nodes with owned fields that differ, by ordinal, each with its live state and the differences.
        extra: nodes that carry the pool's label under a name the pool does not have.
        foreign: wanted names that real nodes carry; never touched.
        matching: how many nodes are exactly as wanted.
    """

    missing: list[int] = field(default_factory=list)
    altered: dict[int, tuple[LiveNode, list[FieldDifference]]] = field(default_factory=dict)
    extra: list[str] = field(default_factory=list)
    foreign: list[str] = field(default_factory=list)
    matching: int = 0

    @property
    def present(self) -> int:
        """How many of the wanted names exist."""
        return self.matching + len(self.altered)

    @property
    def exact(self) -> bool:
        """Whether nothing is left to do."""
        return not (self.missing or self.altered or self.extra or self.foreign)


async def observe(client: Client, pool: Pool, patience: float | None = None) -> Observation:
    """List the pool's nodes, page by page, and compare each with what is wanted.

    A wanted node that lost the pool's label (altered by hand) is found by its name.

    Args:
        client: the cluster's API.
        pool: what is wanted.
        patience: seconds to keep trying an unreachable server.

    Raises:
        ApiError, Unreachable: the server could not be asked.
    """
    found = Observation()
    wanted = {name: ordinal for ordinal, name in enumerate(pool.node_names())}
    unseen = dict(wanted)

    def look(node: LiveNode) -> None:
        ordinal = wanted[node.name]
        unseen.pop(node.name, None)
        if node.real:
            found.foreign.append(node.name)
        elif different := field_differences(pool, ordinal, node):
            found.altered[ordinal] = (node, different)
        else:
            found.matching += 1

    async for page in client.pages(NODES, {"labelSelector": f"{POOL_LABEL}={pool.name}"}, patience=patience):
        for item in page:
            node = live_node(item)
            if node.name in wanted:
                look(node)
            elif not node.real:
                found.extra.append(node.name)

    for name in await _existing(client, list(unseen)):
        node_or_none = await get_node(client, name)
        if node_or_none is not None:
            look(node_or_none)
    found.missing = sorted(unseen.values())
    return found


async def get_node(client: Client, name: str) -> LiveNode | None:
    """Return one node, or None when it does not exist."""
    try:
        return live_node(await client.get(f"{NODES}/{name}"))
    except ApiError as error:
        if error.status == 404:
            return None
        raise


async def _existing(client: Client, names: list[str]) -> list[str]:
    """Return those of the names that exist although they did not come with the pool's label."""
    if len(names) > _ASK_SINGLY:
        among = set(names)
        return [
            item["metadata"]["name"]
            async for page in client.pages(NODES, limit=2000, accept=_METADATA_ONLY)
            for item in page
            if item["metadata"]["name"] in among
        ]
    there: list[str] = []

    async def ask(name: str) -> None:
        if await get_node(client, name) is not None:
            there.append(name)

    outcome = await for_each(names, ask, workers=16, most_failures=1)
    if outcome.failed:
        raise outcome.failed[0][1]
    return sorted(there)

"""The section `games`."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

import pulumi
from pydantic import Field

from kumulus import Tenant
from kumulus.model.errors import Problem
from kumulus.stackfile.section import ClusterSection


class Games(ClusterSection):
    """Who plays: each in a namespace of its own."""

    example: ClassVar[str] = "{players: [anna]}"
    after: ClassVar[str] = "tenants"
    players: list[str] = Field(min_length=1, examples=["[anna]"])
    """The players."""

    @classmethod
    def rules(cls, raw: Mapping[str, object]) -> Iterator[Problem]:
        """Nobody plays where something goes wrong."""
        if raw.get("games") and raw.get("faults"):
            yield Problem("games", "are not for a cluster with faults", "leave one of the two out")

    def handed(self, loaded: Any, base: Path) -> tuple[dict[str, Any], list[Problem]]:
        """How many nodes each player has."""
        return {"each": sum(pool.replicas for pool in loaded.pools) // len(self.players)}, []

    def parts(self, loaded: Any) -> Sequence[str]:
        """All that its extra names tools for."""
        return ("games",)

    def declare(self, resource_name: str, cluster: Any, opts: pulumi.ResourceOptions) -> Sequence[pulumi.Resource]:
        """A tenant for each player."""
        return [Tenant(f"{resource_name}-{each}", namespace=each, cluster=cluster, opts=opts) for each in self.players]

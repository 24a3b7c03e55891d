"""The section `games`."""

from collections.abc import Sequence
from typing import Any, ClassVar

import pulumi
from pydantic import Field

from kumulus import Tenant
from kumulus.stackfile.model import ClusterSection


class Games(ClusterSection):
    """Who plays: each in a namespace of its own."""

    example: ClassVar[str] = "{players: [anna]}"
    players: list[str] = Field(min_length=1, examples=["[anna]"])
    """The players."""

    def declare(self, resource_name: str, cluster: Any, opts: pulumi.ResourceOptions) -> Sequence[pulumi.Resource]:
        """A tenant for each player."""
        return [Tenant(f"{resource_name}-{each}", namespace=each, cluster=cluster, opts=opts) for each in self.players]

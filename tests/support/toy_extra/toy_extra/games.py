"""The section `games`, and the key `league` of a stack of several clusters."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

import pulumi
from pydantic import Field

from kumulus import Tenant
from kumulus.model.errors import Problem
from kumulus.stackfile.section import ClusterSection, Joined, StackSection


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

    def runtime_option(self, loaded: Any, base: Path) -> tuple[dict[str, Any], list[Problem]]:
        """How many nodes each player has."""
        return {"each": sum(pool.replicas for pool in loaded.pools) // len(self.players)}, []

    def parts(self, loaded: Any) -> Sequence[str]:
        """All that its extra names tools for."""
        return ("games",)

    def declare(self, resource_name: str, cluster: Any, opts: pulumi.ResourceOptions) -> Sequence[pulumi.Resource]:
        """A tenant for each player."""
        return [Tenant(f"{resource_name}-{each}", namespace=each, cluster=cluster, opts=opts) for each in self.players]


class League(StackSection):
    """Clusters that play against each other."""

    about: ClassVar[str] = "Which clusters play against each other."
    teams: list[str] = Field(min_length=2, examples=["[a, b]"])
    """The clusters."""

    def joined(self, hub: str, entries: Mapping[str, Sequence[str]]) -> tuple[Joined, list[Problem]]:
        """All of them have to be there."""
        return Round(self.teams), [
            Problem("teams", f"{each} is no cluster") for each in self.teams if each not in entries
        ]


class Round(Joined):
    """Who plays."""

    def __init__(self, teams: list[str]) -> None:
        self._teams = teams

    def runtime_options(self, name: str, cluster: str) -> dict[str, Any]:
        """What a cluster that plays is called."""
        return {"games": {"team": cluster}} if name in self._teams else {}

    def declare(self, resource_name: str, clusters: Mapping[str, Any], loaded: Mapping[str, Any]) -> Mapping[str, Any]:
        """A tenant for the referee, in the first of them."""
        Tenant(f"{resource_name}-referee", namespace="referee", cluster=clusters[self._teams[0]])
        return {"teams": self._teams}

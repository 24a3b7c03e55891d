"""What becomes of a stack file with the toy's section: tests that test_extras runs where the toy is installed."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kumulus import EmulatedCluster
from kumulus.cli import needs
from kumulus.model.errors import SpecError
from kumulus.stackfile.clusters import Stack, load_stack
from kumulus.stackfile.kwok_options import local_options
from kumulus.stackfile.load import LoadedCluster, load
from kumulus.stackfile.schema.document import DEFINITIONS
from kumulus.stackfile.schema.stack import stack_schema
from tests.support.program import Program, run

GROUP = {"name": "a", "instanceType": "e2-standard-4", "placement": [{"availabilityZone": "z", "replicas": 6}]}
FAULT = {"name": "x", "kind": "gpu-fell-off-bus", "target": {"count": 1}}


def read(**cluster: Any) -> LoadedCluster:
    return load({"cluster": cluster}, "dev", Path())


def league(teams: list[str]) -> Stack:
    clusters = [{"name": name} for name in ("a", "b", "c")]
    return load_stack({"clusters": clusters, "league": {"teams": teams}}, "dev", Path())


def mistake(read: Callable[[], object]) -> str:
    with pytest.raises(SpecError) as raised:
        read()
    return str(raised.value.problems[0])


def tenants(declare: Callable[[], object]) -> tuple[list[str], Program]:
    program = run(declare)
    return sorted(program.of_type("kumulus:index:Tenant")), program


PLAYED = {"games": {"players": ["anna", "ben"]}}
PROPERTIES = stack_schema()[DEFINITIONS]["ClusterSpec"]["properties"]


def test_a_mistake_is_explained_and_the_schema_has_the_section() -> None:
    said = mistake(lambda: read(games={"players": "anna"}))
    assert said == 'games.players: is "anna", not a list; write players: [anna]'
    assert mistake(lambda: read(games={"gmaes": 1, "players": ["anna"]})).startswith("games.gmaes: ")
    both = mistake(lambda: read(games={"players": ["anna"]}, faults=[FAULT]))
    assert both == "games: are not for a cluster with faults; leave one of the two out"
    places = list(PROPERTIES)
    assert places.index("games") == places.index("tenants") + 1
    assert PROPERTIES["games"]["description"] == "Who plays: each in a namespace of its own."


def test_what_the_section_is_for_is_declared_and_its_tools_are_needed() -> None:
    played = read(**PLAYED, nodeGroups=[GROUP])
    assert local_options(played)["games"] == {"each": 3}
    assert set(needs.of_loaded(played).tools) - set(needs.of_loaded(read()).tools) == {"helm"}
    names, program = tenants(lambda: EmulatedCluster("dev", loaded=read(**PLAYED), base=Path()))
    assert names == ["dev-games-anna", "dev-games-ben"]
    needed = program.only("kumulus:index:DestroyCheck").depends_on
    assert all(any(each in name for name in needed) for each in names), "asked before a destroy"
    assert tenants(lambda: EmulatedCluster("dev", loaded=read(), base=Path()))[0] == []


def test_a_key_about_all_clusters_joins_those_that_it_names() -> None:
    assert mistake(lambda: league(["a", "x"])) == "league.teams: x is no cluster"
    stack = league(["a", "b"])
    joined = {name: local_options(each).get("games") for name, each in stack.clusters.items()}
    assert joined == {"a": {"team": "dev-a"}, "b": {"team": "dev-b"}, "c": None}
    assert ["kueue" in needs.of_loaded(each).tools for each in stack.clusters.values()] == [True, True, False]
    key = stack_schema()[DEFINITIONS]["config"]["properties"]["kumulus:league"]
    assert key["description"] == "Which clusters play against each other."

    def declare() -> None:
        made = {
            name: EmulatedCluster(each.cluster_name, loaded=each, base=Path()) for name, each in stack.clusters.items()
        }
        assert stack.joined["league"].declare("league", made, stack.clusters) == {"teams": ["a", "b"]}

    assert tenants(declare)[0] == ["league-referee"]

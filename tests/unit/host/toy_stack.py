"""What a program makes of a stack file with the toy's section; test_extras runs this where the toy is installed."""

import json
from pathlib import Path
from typing import Any

from kumulus import EmulatedCluster
from kumulus.cli import needs
from kumulus.model.errors import SpecError
from kumulus.stackfile.clusters import Stack, load_stack
from kumulus.stackfile.kwok_options import local_options
from kumulus.stackfile.load import LoadedStack, load
from kumulus.stackfile.schema.document import DEFINITIONS
from kumulus.stackfile.schema.stack import stack_schema
from tests.support.program import run

GROUP = {"name": "a", "instanceType": "e2-standard-4", "placement": [{"availabilityZone": "z", "replicas": 6}]}
FAULT = {"name": "x", "kind": "gpu-fell-off-bus", "target": {"count": 1}}


def read(**cluster: Any) -> LoadedStack:
    return load({"cluster": cluster}, "dev", Path())


def mistake(games: Any, **cluster: Any) -> str:
    try:
        read(games=games, **cluster)
    except SpecError as error:
        [problem] = error.problems
        return str(problem)
    raise AssertionError


def league(teams: list[str]) -> Stack:
    clusters = [{"name": name} for name in ("a", "b", "c")]
    return load_stack({"clusters": clusters, "league": {"teams": teams}}, "dev", Path())


def no_cluster() -> str:
    try:
        league(["a", "x"])
    except SpecError as error:
        return str(error.problems[0])
    raise AssertionError


def referees(stack: Stack) -> list[str]:
    def declare() -> None:
        made = {
            name: EmulatedCluster(each.cluster_name, loaded=each, base=Path()) for name, each in stack.clusters.items()
        }
        assert stack.joined["league"].declare("league", made, stack.clusters) == {"teams": ["a", "b"]}

    return [each.name for each in run(declare).resources if each.type == "kumulus:index:Tenant"]


def tenants(**cluster: Any) -> tuple[list[str], bool]:
    program = run(lambda: EmulatedCluster("dev", loaded=read(**cluster), base=Path()))
    found = [each.name for each in program.resources if each.type == "kumulus:index:Tenant"]
    needed = program.only("kumulus:index:DestroyCheck").depends_on
    return sorted(found), all(any(each in name for name in needed) for each in found)


if __name__ == "__main__":
    declared, asked = tenants(games={"players": ["anna", "ben"]})
    definitions = stack_schema()[DEFINITIONS]
    stack = league(["a", "b"])
    played = read(games={"players": ["anna", "ben"]}, nodeGroups=[GROUP])
    print(
        json.dumps(
            {
                "mistake": mistake({"players": "anna"}),
                "unknown": mistake({"gmaes": 1, "players": ["anna"]}),
                "between sections": mistake({"players": ["anna"]}, faults=[FAULT]),
                "handed": local_options(played)["games"],
                "needed": set(needs.of_loaded(played).tools) - set(needs.of_loaded(read()).tools) == {"helm"},
                "places": list(definitions["ClusterSpec"]["properties"]),
                "schema": definitions["ClusterSpec"]["properties"]["games"],
                "declared": declared,
                "asked before a destroy": asked,
                "without": tenants()[0],
                "no cluster": no_cluster(),
                "joined": {name: local_options(each).get("games") for name, each in stack.clusters.items()},
                "for those that play": ["kueue" in needs.of_loaded(each).tools for each in stack.clusters.values()],
                "key": definitions["config"]["properties"]["kumulus:league"]["description"],
                "referees": referees(stack),
            }
        )
    )

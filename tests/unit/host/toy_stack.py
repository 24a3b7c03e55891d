"""What a program makes of a stack file with the toy's section; test_extras runs this where the toy is installed."""

import json
from pathlib import Path
from typing import Any

from kumulus import EmulatedCluster
from kumulus.cli import needs
from kumulus.model.errors import SpecError
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


def tenants(**cluster: Any) -> tuple[list[str], bool]:
    program = run(lambda: EmulatedCluster("dev", loaded=read(**cluster), base=Path()))
    found = [each.name for each in program.resources if each.type == "kumulus:index:Tenant"]
    needed = program.only("kumulus:index:DestroyCheck").depends_on
    return sorted(found), all(any(each in name for name in needed) for each in found)


if __name__ == "__main__":
    declared, asked = tenants(games={"players": ["anna", "ben"]})
    definitions = stack_schema()[DEFINITIONS]
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
            }
        )
    )

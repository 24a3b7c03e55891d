"""Files of problems: what a seed draws of one, and mistakes with their places and remedies."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from kumulus.gym import GymError, Problem, problem, problems
from kumulus.gym.problem_file import read
from kumulus.kube.safe_yaml import written
from kumulus.model.errors import SpecError

NODES = ["n1", "n2", "n3", "n4"]
RIGHT: dict[str, Any] = {
    "name": "mine",
    "draw": {
        "namespace": ["a", "b"],
        "nodes": {"nodes": "pool=cpu", "count": 2},
        "size": [{"replicas": 2}, {"replicas": 3}],
    },
    "description": "In $namespace, ${replicas} pods cost 5 $$.",
    "setup": [{"kubectl": ["kubectl cordon $nodes"]}, {"fault": {"kind": "not-ready", "target": {"names": "$nodes"}}}],
    "verify": [{"kind": "Pod", "match": {"spec": {"nodeName": "$nodes_1"}}, "equals": "$replicas"}],
    "solution": ["kubectl uncordon $nodes"],
}  # fmt: skip


def drawn(raw: dict[str, Any], seed: int) -> tuple[Problem, str]:
    return read(raw, "mine.yaml").drawn(seed, lambda _: NODES)


def test_a_seed_draws_the_same_and_seeds_draw_all_there_is() -> None:
    assert drawn(RIGHT, 7) == drawn(RIGHT, 7)
    made = [drawn(RIGHT, seed) for seed in range(40)]
    assert {namespace for _, namespace in made} == {"a", "b"}
    assert {each.verify[0].least for each, _ in made} == {2, 3}
    assert len({each.solution[0] for each, _ in made}) == 12


def test_names_become_what_was_drawn_in_texts_and_values() -> None:
    found, namespace = drawn(RIGHT, 1)
    (cordon,), fault = found.setup[0].kubectl or [""], found.setup[1].fault or {}
    names = fault["target"]["names"]
    assert cordon == f"kubectl cordon {' '.join(names)}"
    assert len(set(names) & set(NODES)) == 2
    assert found.verify[0].match == {"spec": {"nodeName": names[0]}}
    assert found.description == f"In {namespace}, {found.verify[0].equals} pods cost 5 $."


def test_nodes_that_are_not_there_cannot_be_drawn() -> None:
    with pytest.raises(GymError, match=r"mine: draw.nodes: 1 of 2 nodes are there; write another selector or count"):
        read(RIGHT, "mine.yaml").drawn(1, lambda _: ["n1"])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"verfy": []}, "verfy: is not a known key; write verify"),
        ({"setup": []}, "setup: is empty; write at least one"),
        ({"verify": []}, "verify: is empty; write at least one"),
        ({"steps": 0}, "steps: is 0"),
        ({"timeLimit": "10 min"}, 'timeLimit: is "10 min", which is not a duration; write a duration such as 90s'),
        ({"description": "$namespce"}, "description: says $namespce, which is not drawn; write $namespace, or draw it"),
        ({"description": "5 $"}, 'description: has a $ that begins no name: "5 $"; write $$ for a dollar sign'),
        ({"setup": [{}]}, "setup[0]: says nothing; write one of objects:, kubectl:, fault: and until: in each step"),
        ({"setup": [{"until": [], "objects": []}]}, "setup[0]: says objects and until; write one of objects:"),
        ({"setup": [{"objects": [{"$nope": 1}]}]}, "says $nope, which is not drawn"),
        ({"verify": [{"kind": "Pod", "equals": -1}]}, "verify[0].equals: is -1; write equals: 3, or the name of"),
        ({"verify": [{"kind": "Pod", "equals": 1, "atMost": 1}]}, "equals: cannot be combined with another bound"),
        ({"verify": [{"kind": "Node", "onNodes": "a=b"}]}, "verify[0].onNodes: is there for the kind Node; leave"),
        ({"verify": [{}]}, "verify[0].kind: is missing; write kind: Pod"),
        ({"draw": {"A": [1]}}, "draw.A: is no name of a draw; write small letters, digits and _"),
        ({"draw": {"a": []}}, "draw.a: is empty; write at least one value"),
        ({"solution": ["kubectl get pods | wc"]}, "solution[0]: is refused: there is no shell that knows |; write one"),
        ({"cluster": {"nodeGroup": []}}, "nodeGroup: is not a known key; write nodeGroups"),
    ],
)  # fmt: skip
def test_mistakes_are_named_with_their_places_and_remedies(change: dict[str, Any], message: str) -> None:
    with pytest.raises(SpecError) as error:
        read({**RIGHT, **change}, "mine.yaml")
    assert "in mine.yaml" in str(error.value)
    assert message in str(error.value)


def test_a_file_is_read_by_its_path(tmp_path: Path) -> None:
    file = tmp_path / "mine.yaml"
    file.write_text(written(RIGHT))
    assert problem(file) == problem(str(file)) == read(RIGHT, "")
    file.write_text("name: [")
    with pytest.raises(GymError, match=r"1 problem in .*mine.yaml\n.*line 1"):
        problem(file)
    with pytest.raises(GymError, match=r"none\.yaml"):
        problem(tmp_path / "none.yaml")


def test_a_name_that_is_none_is_answered_with_those_that_are_near() -> None:
    with pytest.raises(GymError, match="there is no problem cordoned-zones; write cordoned-zone"):
        problem("cordoned-zones")
    with pytest.raises(GymError, match="there is no problem zzz; write a name that `kumulus gym ls` lists or the path"):
        problem("zzz")


def test_thirty_problems_come_with_kumulus_each_with_a_solution_and_draws() -> None:
    found = [problem(name) for name in problems()]
    assert [each.name for each in found] == problems()
    assert len(found) == 30
    assert all(each.solution and each.subject and len(each.draw) > 1 and not each.cluster for each in found)


def test_what_an_agent_is_told_has_nothing_of_the_solution() -> None:
    for each in map(problem, problems()):
        assert "kubectl" not in each.description
        assert each.name not in each.description


def test_the_page_names_every_problem_and_its_file_is_right() -> None:
    page = (Path(__file__).resolve().parents[3] / "docs" / "agents.md").read_text()
    assert [name for name in problems() if f"`{name}`" not in page] == []
    file = page.partition("<!-- file: my-problem.yaml -->\n```yaml\n")[2].partition("```")[0]
    read(yaml.safe_load(file), "the page")

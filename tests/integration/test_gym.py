"""Problems for agents on a real control plane: their solutions solve them, and bad commands are observations."""

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kumulus import toolchain
from kumulus.gym import Environment, GymError, Problem, problem, problems
from kumulus.gym.checking import check
from kumulus.gym.kubectl import REFUSED_FLAGS, VERBS
from kumulus.gym.problem_file import read, standard_cluster
from kumulus.testing import Cluster
from tests.support.project import ROOT

pytestmark = pytest.mark.integration
COMMAND = [sys.executable, str(ROOT / "kumulus"), "gym"]
PAGE = (ROOT / "docs" / "agents.md").read_text()
POD = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "one"},
    "spec": {"containers": [{"name": "c", "image": "i"}]},
}
UNTIL_TWO: dict[str, Any] = {
    "name": "two-pods",
    "description": "Make two pods in default.",
    "setup": [
        {"objects": [{**POD, "metadata": {"name": "one", "namespace": "default"}}]},
        {"until": [{"kind": "Pod", "name": "one", "match": {"status": {"phase": "Running"}}}]},
    ],
    "verify": [
        {"kind": "Pod", "namespace": "default", "match": {"status": {"phase": "Running"}}, "equals": 2},
        {"kind": "Node", "match": {"spec": {"unschedulable": True}}, "atMost": 0},
    ],
}


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with Cluster(standard_cluster()) as made:
        yield made


def made(**changes: Any) -> Problem:
    return read({**UNTIL_TWO, **changes}, "the test")


@pytest.mark.parametrize(("seed", "name"), enumerate(problems(), start=1))
def test_each_problem_is_one_and_its_solution_solves_it(cluster: Cluster, seed: int, name: str) -> None:
    with Environment(name, cluster) as environment:
        assert check(environment, seed) == ""


def test_a_seed_makes_the_same_problem_again_after_an_agents_work(cluster: Cluster) -> None:
    with Environment("broken-gpu", cluster) as environment:
        first = environment.reset(3)
        environment.step("kubectl delete deployments --all -A")
        environment.step("kubectl delete node h100-use1-a-0 --wait=false")
        again = environment.reset(3)
        assert (again.text, again.step, again.ends) == (first.text, 0, "")
        assert again.nodes == first.nodes
        assert [pod["phase"] for pod in again.pods] == [pod["phase"] for pod in first.pods] == ["Running"] * 8
        assert environment.reset(4).nodes != first.nodes


def test_rewards_are_what_the_verdict_grows_by_and_what_is_broken_is_lost(cluster: Cluster) -> None:
    with Environment(made(), cluster) as environment:
        environment.reset()
        assert environment.verify(0).progress == 0.75
        steps = [
            environment.step(f"kubectl {command}")
            for command in ("get pods", "cordon cpu-use1-a-0", "uncordon cpu-use1-a-0")
        ]
        assert [(reward, done) for _, reward, done in steps] == [(0, False), (-0.5, False), (0.5, False)]
        observation, reward, done = environment.step({**POD, "metadata": {"name": "two"}})
        assert observation.text == "pod/two created"
        if not done:
            # A busy machine takes its time.
            observation, more, done = environment.step("kubectl wait pod/two --for=condition=Ready --timeout=30s")
            reward += more
        assert (observation.ends, reward, done) == ("solved", 0.25, True)
        assert "[15 nodes ready of 15; 2 pods]" in str(observation)
        assert "[the episode is over: solved]" in str(observation)
        assert environment.verify().solved
        with pytest.raises(GymError, match=r"the episode is over \(solved\); call reset\(seed\) first"):
            environment.step("kubectl get pods")


def test_whatever_is_wrong_with_a_command_is_an_observation(cluster: Cluster) -> None:
    with Environment(made(steps=6), cluster) as environment:
        with pytest.raises(GymError, match=r"there is no episode; call reset\(seed\) first"):
            environment.step("kubectl get pods")
        environment.reset()
        seen = [
            environment.step(command)
            for command in (
                "rm -rf /",
                "kubectl get pods; kubectl delete nodes --all",
                "kubectl get nothing",
                {"kind": "Nonsense"},
                "kubectl apply -f - <<EOF\n{\nEOF",
                "kubectl delete node none",
            )
        ]
        assert [(found.code > 0, reward) for found, reward, _ in seen] == [(True, 0)] * 6
        assert 'the server doesn\'t have a resource type "nothing"' in seen[2][0].text
        assert [(found.ends, done) for found, _, done in seen][-2:] == [("", False), ("steps", True)]
        assert len(cluster.nodes()) == 15


def test_an_episode_ends_with_its_time_and_by_giving_up(cluster: Cluster) -> None:
    with Environment(made(timeLimit="2s"), cluster) as environment:
        environment.reset()
        found, _, done = environment.step("kubectl get pods -w")
        assert (found.code, found.ends, done) == (124, "time", True)
        environment.reset()
        found, reward, done = environment.step("Give up")
        assert (found.ends, reward, done) == ("gave up", 0, True)
    with Environment(made(timeLimit="0s"), cluster) as environment:
        environment.reset()
        found, _, done = environment.step("kubectl delete nodes --all")
        assert (found.text, found.ends, done) == ("the command is not run: the time limit of 0s is over", "time", True)


def test_problems_that_are_none_are_named(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kumulus.gym.environment._SETUP_S", 0.5)
    never = {"until": [{"kind": "Pod", "name": "none"}]}
    for changes, message in (
        ({"verify": [{"kind": "Pod"}]}, "two-pods is solved at its beginning with seed 1; write other conditions"),
        ({"setup": [never]}, "two-pods cannot be set up with seed 1: after 0 s, until missed: Pod none atLeast 1"),
        ({"setup": [{"kubectl": ["kubectl get x"]}]}, "with seed 1: kubectl get x: error: the server doesn't have"),
        ({"setup": [{"objects": [{"kind": "X"}]}]}, "with seed 1: objects: error: "),
        ({"setup": [{"fault": {"kind": "not-redy"}}]}, 'with seed 1: .*"not-redy" is not in the catalog'),
        ({"solution": ["kubectl get pods"]}, "its solution does not solve it:\nmissed: Pod b atLeast 1"),
    ):
        with Environment(made(**{"verify": [{"kind": "Pod", "name": "b"}], **changes}), cluster) as environment:
            assert re.search(message.replace("\n", ".*"), check(environment, 1), re.DOTALL), changes


def test_every_flag_of_kubectl_that_names_a_file_is_refused() -> None:
    # The words of these are about something else, or take -f; of --output, the values are looked at.
    known = {"output", "patch", "raw", "recursive", "rule", "tail", "template", "vmodule"}
    program, seen = str(toolchain.find("kubectl")), dict[str, str]()

    def read_help(*words: str) -> None:
        text = subprocess.run([program, *words], env={"PATH": ""}, capture_output=True, text=True, check=True).stdout
        for flag in re.finditer(r"^ +(?:-\w, )?--([a-z-]+)=.*:\n((?:\t.*\n?|\s{8,}.*\n?)+)", text, re.MULTILINE):
            seen.setdefault(flag[1], flag[2])
        if below := re.search(r"^Available Commands:\n((?:  .*\n)+)", text, re.MULTILINE):
            for line in below[1].splitlines():
                read_help(*words[:-1], line.split()[0], "--help")

    for verb in sorted(VERBS):
        read_help(verb, "--help")
    read_help("options")
    assert len(seen) > 150
    named = {
        name for name, about in seen.items() if re.search(r"\bfile|\bpath\b|director|\bedit", about, re.IGNORECASE)
    }
    assert named - known - REFUSED_FLAGS == set()


def test_the_examples_of_the_page_are_right(tmp_path: Path) -> None:
    example = PAGE.partition("```python\n")[2].partition("```")[0]
    said = subprocess.run([sys.executable, "-c", example], capture_output=True, text=True, check=False, cwd=tmp_path)
    assert (said.returncode, said.stderr) == (0, "")
    assert re.match(r"holds: all pods of web run in the zone \(found \d\)\n", said.stdout)
    file = tmp_path / "my-problem.yaml"
    file.write_text(PAGE.partition("<!-- file: my-problem.yaml -->\n```yaml\n")[2].partition("```")[0])
    asked = [*COMMAND, "check", "my-problem.yaml"]
    said = subprocess.run(asked, capture_output=True, text=True, check=False, cwd=tmp_path)
    assert (said.stdout, said.returncode) == ("my-problem, seed 1: right\nmy-problem, seed 2: right\n", 0), said.stderr


def test_the_command_lists_the_problems() -> None:
    asked = [*COMMAND, "ls", "--json"]
    found = json.loads(subprocess.run(asked, capture_output=True, text=True, check=True).stdout)
    assert [each["name"] for each in found] == problems()
    assert problem(found[0]["name"]).subject == found[0]["subject"]

"""The steps of the reusable action, as GitHub runs them: a wheel, a real cluster, a missed threshold, nothing left."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from kumulus.extras.lab.report.files import report_at
from tests.support.api import Api
from tests.support.installed import ROOT, Environment, User
from tests.support.project import NODES

pytestmark = pytest.mark.e2e

CAPACITY = {"cpu": "8", "memory": "32Gi", "pods": "110"}
STACK = {
    "config": {
        "kumulus:cluster": {
            "nodeGroups": [
                {
                    "name": "small",
                    "placement": [{"availabilityZone": "z1", "replicas": 2}],
                    "nodeTemplate": {"capacity": CAPACITY},
                }
            ]
        }
    }
}
EXPERIMENT = """\
name: gate
workloads:
  - {name: fits, jobs: 2, requests: {cpu: "1"}}
settle: 2s
expect:
  - {measure: pods.scheduled, equals: 2}
  - {measure: pods.scheduled, atLeast: 3}
"""


@pytest.fixture
def environment(archives: tuple[Path, Path], tmp_path: Path) -> Environment:
    made = Environment.make(tmp_path / "env", extras=True)
    made.install(archives[1])
    return made


def test_a_fleet_an_experiment_a_missed_threshold_and_nothing_left(
    environment: Environment, user: User, tmp_path: Path
) -> None:
    workspace, temporary, output, summary = (tmp_path / name for name in ("work", "temporary", "output", "summary"))
    workspace.mkdir()
    temporary.mkdir()
    (workspace / "fleet.yaml").write_text(yaml.safe_dump(STACK))
    (workspace / "gate.yaml").write_text(EXPERIMENT)
    shell = user.variables(
        environment,
        RUNNER_TEMP=str(temporary),
        GITHUB_OUTPUT=str(output),
        GITHUB_STEP_SUMMARY=str(summary),
    )
    outputs: dict[str, str] = {}

    def step(name: str, code: int = 0, **variables: str) -> str:
        output.write_text("")
        done = user.run([str(ROOT / ".github" / "action" / "steps"), name], workspace, {**shell, **variables})
        assert done.returncode == code, done.stdout + done.stderr
        outputs.update(dict(line.split("=", 1) for line in output.read_text().splitlines()))
        return done.stdout

    step("project", STACK="fleet.yaml")
    where: dict[str, Any] = {"PROJECT": outputs["project"], "NAME": outputs["name"]}
    step("tools", **where)
    step("up", **where)
    assert len(Api(Path(outputs["kubeconfig"])).list(NODES)) == 2
    said = step(
        "experiment",
        code=1,
        NAME=outputs["name"],
        KUBECONFIG=outputs["kubeconfig"],
        EXPERIMENT="gate.yaml",
        ARGS="--seed 2",
        THRESHOLDS="error",
        RESULTS="results",
    )
    missed = "::error file=gate.yaml,line=7,title=gate%3A threshold missed::pods.scheduled at least 3: found 2"
    assert missed in said.splitlines()
    assert (outputs["status"], outputs["missed"]) == ("failure", "1")
    assert report_at(workspace / outputs["report"] / "report.json").metadata.seed == 2
    assert "### gate: 1 of 2 thresholds missed" in summary.read_text()
    step("down", **where)
    assert not (Path(outputs["project"]) / ".kumulus").exists()
    assert user.processes() == {}

"""The reusable action and the workflows: what they say holds together, and the action's steps do as they say."""

import os
import re
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from kumulus.extras.lab.report.files import RunDirectory
from tests.support.reports import report

ROOT = Path(__file__).resolve().parents[3]
STEPS = ROOT / ".github" / "action" / "steps"
ACTION = ROOT / "action.yml"
WORKFLOWS = sorted([*(ROOT / ".github" / "workflows").glob("*.yml"), *(ROOT / "examples" / "ci").glob("*.yml")])
OURS = ("./", "OWNER/kumulus@v0")


def parsed(path: Path) -> dict[Any, Any]:
    found = yaml.safe_load(path.read_text(encoding="utf-8"))
    assert isinstance(found, dict)
    return found


def steps_of(document: dict[Any, Any]) -> Iterator[dict[str, Any]]:
    for job in document["jobs"].values() if "jobs" in document else [document["runs"]]:
        yield from job["steps"]


@pytest.mark.parametrize("path", [ACTION, *WORKFLOWS], ids=lambda path: path.stem)
def test_actions_of_others_are_pinned_by_commit_and_inputs_are_no_part_of_a_command(path: Path) -> None:
    for line in path.read_text(encoding="utf-8").splitlines():
        used = re.search(r"uses: (\S+)(.*)", line)
        if used and used[1] not in OURS:
            assert re.fullmatch(r"actions/[a-z-]+@[0-9a-f]{40}", used[1]), line
            assert re.fullmatch(r" # v\d+\.\d+\.\d+", used[2]), line
    for step in steps_of(parsed(path)):
        assert ("uses" in step) != ("run" in step)
        assert "${{" not in step.get("run", "")


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_a_workflow_has_few_permissions_and_ends_in_time(path: Path) -> None:
    workflow = parsed(path)
    assert workflow["permissions"] == {"contents": "read"}
    # PyYAML reads the key `on` as true.
    assert workflow[True]
    for job in workflow["jobs"].values():
        assert job["timeout-minutes"] <= 120
        assert re.fullmatch(r"ubuntu-\d+\.\d+", job["runs-on"])
        assert set(job.get("needs", ())) <= set(workflow["jobs"])
    declared = parsed(ACTION)["inputs"]
    for step in steps_of(workflow):
        if step.get("uses") in OURS:
            assert step.get("with", {}).keys() <= declared.keys()
            name, stack = step["with"]["experiment"], step["with"]["stack"]
            # Files of the user's own repository are not here.
            assert name.endswith(".yaml") or (ROOT / "experiments" / f"{name}.yaml").exists()
            assert stack.endswith(".yaml") or (ROOT / "stacks" / f"Pulumi.{stack}.yaml").exists()


def test_our_workflow_calls_make_as_it_is() -> None:
    runs = [step.get("run", "") for step in steps_of(parsed(ROOT / ".github" / "workflows" / "ci.yml"))]
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), flags=re.MULTILINE))
    called = {run.split()[1] for run in runs if run.startswith("make ")}
    assert called == {"lint", "test-all"}
    assert called <= targets
    assert any("-m build" in run for run in runs)
    assert any("kumulus --version" in run for run in runs)


def test_the_actions_parts_refer_to_each_other() -> None:
    action = parsed(ACTION)
    assert action["runs"]["using"] == "composite"
    text = ACTION.read_text(encoding="utf-8")
    assert set(re.findall(r"inputs\.([a-z-]+)", text)) == set(action["inputs"])
    ids = {step["id"] for step in steps_of(action) if "id" in step}
    assert set(re.findall(r"steps\.([a-z]+)\.outputs", text)) <= ids
    script = STEPS.read_text(encoding="utf-8")
    called = [step["run"].rsplit(" ", 1)[1] for step in steps_of(action) if "run" in step]
    assert called == ["install", "project", "tools", "up", "experiment", "down"]
    for step in steps_of(action):
        if "run" in step:
            assert step["shell"] == "bash"
            assert step["run"].startswith('"$GITHUB_ACTION_PATH/.github/action/steps" ')
            body = re.search(rf"^{step['run'].rsplit(' ', 1)[1]}\(\) {{\n(.*?)^}}", script, re.DOTALL | re.MULTILINE)
            assert body is not None
            # What a step takes from its inputs is what its function reads.
            used = set(re.findall(r"\$\{?([A-Z][A-Z_]*)\b", body[1])) & {
                name for other in steps_of(action) for name in other.get("env", {})
            }
            given = set(step.get("env", {})) - {"KUMULUS_TOOLS"}
            assert used - {"KUBECONFIG"} <= given <= used | {"KUBECONFIG"}
    assert all(each["description"] for each in (*action["inputs"].values(), *action["outputs"].values()))
    page = (ROOT / "docs" / "ci.md").read_text(encoding="utf-8")
    assert all(f"| `{name}` |" in page for name in (*action["inputs"], *action["outputs"]))
    assert os.access(STEPS, os.X_OK)


class Runner:
    """A GitHub runner as far as a step sees it; `kumulus` is the real one, but for running experiments."""

    def __init__(self, folder: Path) -> None:
        self.workspace, self.temporary, self.output = folder / "workspace", folder / "temporary", folder / "output"
        for each in (self.workspace, self.temporary, folder / "bin"):
            each.mkdir()
        self.called, self.told = folder / "called", folder / "told"
        command = folder / "bin" / "kumulus"
        real = f"{sys.executable} -c 'from kumulus.cli.main import main; import sys; sys.exit(main(sys.argv[1:]))'"
        command.write_text(
            f'#!/bin/sh\nif [ "$1 $2" = "experiment run" ]; then printf "%s\\n" "$@" >{self.called}; '
            f'cat {self.told}; exit 1; fi\nexec {real} "$@"\n'
        )
        command.chmod(command.stat().st_mode | stat.S_IXUSR)
        self.path = f"{folder / 'bin'}:{os.environ['PATH']}"

    def step(self, name: str, **variables: str) -> subprocess.CompletedProcess[str]:
        """Run a step of the action."""
        self.output.write_text("")
        kept = {key: os.environ[key] for key in ("HOME", "LANG") if key in os.environ}
        return subprocess.run(
            [str(STEPS), name],
            cwd=self.workspace,
            env={
                **kept,
                "PATH": self.path,
                "PYTHONPATH": str(ROOT / "src"),
                "RUNNER_TEMP": str(self.temporary),
                "GITHUB_OUTPUT": str(self.output),
                "GITHUB_STEP_SUMMARY": str(self.output.with_name("summary")),
                **variables,
            },
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
        )

    def outputs(self) -> dict[str, str]:
        """What the last step has put out."""
        return dict(line.split("=", 1) for line in self.output.read_text().splitlines())


@pytest.fixture
def runner(tmp_path: Path) -> Runner:
    return Runner(tmp_path)


def test_a_stack_file_gets_a_project(runner: Runner) -> None:
    (runner.workspace / "ci").mkdir()
    (runner.workspace / "ci" / "fleet.yaml").write_text("config: {kumulus:cluster: {}}\n")
    done = runner.step("project", STACK="ci/fleet.yaml")
    assert (done.returncode, done.stderr) == (0, "")
    made = Path(runner.outputs()["project"])
    assert runner.outputs()["name"] == "fleet"
    assert made.is_relative_to(runner.temporary)
    assert {path.name for path in made.glob("Pulumi*")} == {"Pulumi.yaml", "Pulumi.fleet.yaml"}
    assert (made / "Pulumi.fleet.yaml").read_text() == "config: {kumulus:cluster: {}}\n"


def test_a_stack_that_comes_with_kumulus_is_known_by_its_name(runner: Runner) -> None:
    assert runner.step("project", STACK="quickstart").returncode == 0
    made = Path(runner.outputs()["project"]) / "Pulumi.quickstart.yaml"
    assert made.read_text() == (ROOT / "stacks" / "Pulumi.quickstart.yaml").read_text()


def test_a_stack_of_a_project_stays_in_it(runner: Runner) -> None:
    (runner.workspace / "stacks").mkdir()
    (runner.workspace / "Pulumi.yaml").write_text("name: theirs\nruntime: python\nstackConfigDir: stacks\n")
    (runner.workspace / "stacks" / "Pulumi.dev.yaml").write_text("config: {kumulus:cluster: {}}\n")
    assert runner.step("project", STACK="stacks/Pulumi.dev.yaml").returncode == 0
    assert runner.outputs() == {"project": str(runner.workspace), "name": "dev"}


@pytest.mark.parametrize(
    ("step", "variables", "words"),
    [
        ("project", {"STACK": "nowhere.yaml"}, "there is no file nowhere.yaml, and no stack of that name"),
        ("experiment", {"EXPERIMENT": "nowhere", "THRESHOLDS": "error"}, "there is no file nowhere"),
        ("experiment", {"EXPERIMENT": "quickstart", "THRESHOLDS": "fatal"}, "thresholds is fatal"),
        ("nothing", {}, "steps nothing is none of the steps"),
    ],
)
def test_what_cannot_be_is_told_on_the_workflows_page(
    runner: Runner, step: str, variables: dict[str, str], words: str
) -> None:
    done = runner.step(step, **variables)
    assert done.returncode == 1
    assert done.stdout.startswith(f"::error title=Kumulus::{words}")


def _ran(runner: Runner) -> Path:
    judged = [("timeToSchedule.p99 at most 1.00 s", False, "1.25 s")]
    directory = RunDirectory(runner.workspace / "results", "fill", "20261121-150000-abc123")
    directory.prepare({"experiment.yaml": "name: fill\nworkloads: [{name: a}]\n"})
    directory.write(report(status="failure", judged=judged))
    runner.told.write_text(f"fill: failure\nreport: {directory.path}\n")
    return directory.path


@pytest.mark.parametrize(("thresholds", "code"), [("error", 1), ("warning", 0)])
def test_a_missed_threshold_is_shown_and_decides_the_step(runner: Runner, thresholds: str, code: int) -> None:
    directory = _ran(runner)
    (runner.workspace / "gate.yaml").write_text("name: fill\n")
    injected = runner.workspace / "injected"
    args = f"--scheduler-binary './my scheduler' --seed 2 $(touch {injected}) ; `touch {injected}`"
    done = runner.step(
        "experiment", EXPERIMENT="gate.yaml", THRESHOLDS=thresholds, RESULTS="results", NAME="fleet",
        KUBECONFIG="/kubeconfig", ARGS=args,
    )  # fmt: skip
    assert done.returncode == code
    missed = (
        f"::{thresholds} file=gate.yaml,title=fill%3A threshold missed::timeToSchedule.p99 at most 1.00 s: found 1.25 s"
    )
    assert missed in done.stdout.splitlines()
    assert runner.outputs() == {"status": "failure", "missed": "1", "report": str(directory)}
    called = runner.called.read_text().splitlines()
    assert called[:9] == [
        *("experiment", "run", "gate.yaml", "-s", "fleet", "--kubeconfig", "/kubeconfig", "--results", "results"),
    ]
    assert called[9:14] == ["--quiet", "--scheduler-binary", "./my scheduler", "--seed", "2"]
    assert not injected.exists()


def test_a_run_that_never_began_fails_with_what_it_said(runner: Runner) -> None:
    runner.told.write_text("error: the cluster is gone\n")
    done = runner.step(
        "experiment", EXPERIMENT="quickstart", THRESHOLDS="warning", RESULTS="results", NAME="fleet", KUBECONFIG="k"
    )
    assert done.returncode == 1
    assert (done.stdout, done.stderr) == ("error: the cluster is gone\n", "")
    assert runner.called.read_text().splitlines()[2] == str(ROOT / "experiments" / "quickstart.yaml")

"""A Pulumi program of one's own that uses the components as a library."""

import json
import subprocess
from pathlib import Path

import pytest

from tests.support.pods import is_ready
from tests.support.project import NODES, ROOT, Project

pytestmark = pytest.mark.e2e

PROGRAM = ROOT / "examples" / "own-program"


def test_ten_lines_make_a_cluster_with_ready_nodes(tmp_path: Path) -> None:
    assert len((PROGRAM / "__main__.py").read_text().splitlines()) <= 12
    project = Project(tmp_path, PROGRAM)
    try:
        project.write_config({}, stack="dev")
        project.up()
        assert project.outputs()["kubeconfig"] == str(project.kubeconfig("own"))
        nodes = project.api("own").list(NODES)
        assert {node["metadata"]["name"] for node in nodes} == {
            *(f"a100-use1-{ordinal}" for ordinal in range(3)),
            *(f"a100-use2-{ordinal}" for ordinal in range(2)),
        }
        assert all(map(is_ready, nodes))
        # One of them has a GPU less, as the program's fault says.
        assert sorted(node["status"]["allocatable"]["nvidia.com/gpu"] for node in nodes) == ["7", *["8"] * 4]
        project.preview("--expect-no-changes")
        project.destroy()
        assert project.processes() == {}
        assert not project.home.exists()
    finally:
        project.close()


def test_the_automation_api_brings_a_cluster_up_experiments_on_it_and_takes_it_down(tmp_path: Path) -> None:
    project = Project(tmp_path, ROOT / "examples" / "automation")
    try:
        made = subprocess.run(
            [ROOT / ".venv" / "bin" / "python", project.directory / "__main__.py"],
            env={**project.environment, "PULUMI_CONFIG_PASSPHRASE": ""},
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
        assert made.returncode == 0, made.stdout + made.stderr
        assert "the experiment: success" in made.stdout
        (report,) = project.directory.glob(".kumulus/experiments/automation/*/report.json")
        assert json.loads(report.read_text())["metadata"]["cluster"]["nodes"] == 100
        assert project.processes() == {}
        assert not project.home.exists()
    finally:
        project.close()

"""A program of one's own that uses the components as a library; tests/e2e/test_docs.py runs examples/own-program."""

import json
import subprocess
from pathlib import Path

import pytest

from tests.support.project import ROOT, Project

pytestmark = pytest.mark.e2e


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

"""The Go module in contrib, built and run: a plain test, the provider for e2e-framework, an operator of others."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.support.project import ROOT

pytestmark = pytest.mark.e2e

MODULE = ROOT / "contrib" / "go"


def test_go_tests_get_a_cluster_by_the_command_and_leave_nothing(tmp_path: Path) -> None:
    if shutil.which("go") is None:
        pytest.skip("there is no go on PATH")
    got = subprocess.run(
        ["go", "mod", "download"], cwd=MODULE, capture_output=True, text=True, check=False, timeout=300
    )
    if got.returncode:
        pytest.skip(f"its Go modules cannot be had: {got.stderr.strip().splitlines()[-1]}")
    # A short folder: Go's own temporary files are not in it.
    environment = {**os.environ, "KUMULUS": str(ROOT / "kumulus"), "TMPDIR": str(tmp_path), "GOTMPDIR": "/tmp"}
    done = subprocess.run(
        ["go", "test", "-count=1", "-v", "./..."],
        cwd=MODULE, env=environment, capture_output=True, text=True, check=False, timeout=900,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert {
        f"--- PASS: {each}"
        for each in ("TestNodesOfAPlainTest", "TestFiveNodesAreReady", "TestAPodWhoseTimeHasComeIsMadeAnew")
    } <= {line.strip().partition(" (")[0] for line in done.stdout.splitlines()}
    assert list(tmp_path.glob("kumulus-test-*")) == []

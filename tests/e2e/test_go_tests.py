"""The Go module in contrib, built and run: a plain test, the provider for e2e-framework, an operator of others."""

import os
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.support import examples
from tests.support.project import ROOT

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(1800)]

MODULE = ROOT / "contrib" / "go"
COMMANDS = "with contrib/go of this checkout -->\n```console\n"


@pytest.fixture(autouse=True)
def modules() -> None:
    if shutil.which("go") is None:
        pytest.skip("there is no go on PATH")
    examples.got("go", "mod", "download", cwd=MODULE)


def passed(folder: Path, packages: str, temporary: Path) -> set[str]:
    """The tests of a module's packages that pass; all have to, and to leave nothing."""
    temporary.mkdir()
    # A short folder: Go's own temporary files are not in it.
    environment = {**os.environ, "KUMULUS": str(ROOT / "kumulus"), "TMPDIR": str(temporary), "GOTMPDIR": "/tmp"}
    done = subprocess.run(
        ["go", "test", "-count=1", "-v", packages],
        cwd=folder, env=environment, capture_output=True, text=True, check=False, timeout=900,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert list(temporary.iterdir()) == []
    lines = (line.strip().partition(" (")[0] for line in done.stdout.splitlines())
    return {line.removeprefix("--- PASS: ") for line in lines if line.startswith("--- PASS: ")}


def test_go_tests_get_a_cluster_by_the_command_and_leave_nothing(tmp_path: Path) -> None:
    wanted = {"TestNodesOfAPlainTest", "TestFiveNodesAreReady", "TestObjectsAreCreatedOfKindsThatAreJustDefined"}
    assert passed(MODULE, "./...", tmp_path / "tmp") >= wanted


def test_the_sample_of_kubebuilder_is_tested_from_an_empty_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GOBIN", str(tmp_path / "bin"))
    monkeypatch.setenv("PATH", str(tmp_path / "bin"), prepend=os.pathsep)
    (folder := tmp_path / "memcached").mkdir()
    page = (ROOT / "docs" / "testing.md").read_text().partition(COMMANDS)[2].partition("```")[0]
    written = [line.removeprefix("$ ").partition("  ")[0] for line in page.splitlines()]
    examples.got(*shlex.split(written[0]))
    for command in written[1:-1]:
        if "replace" in command:
            examples.write(folder, "memcached_test.go")
        subprocess.run(command.replace("PATH", str(MODULE)), shell=True, cwd=folder, check=True, timeout=900)
    name, _, image = written[-1].removesuffix(" go test .").partition("=")
    monkeypatch.setenv(name, image)
    assert "TestAMemcachedHasADeploymentThatRuns" in passed(folder, ".", tmp_path / "tmp")

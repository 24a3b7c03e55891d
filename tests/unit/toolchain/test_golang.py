"""Which Go builds the tools: the one on PATH, a fetched one, or the newer one that a module asks for."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from kumulus.toolchain import build, golang, pins
from kumulus.toolchain.progress import ToolLine
from tests.unit.toolchain.sample import ROOT, Sample

pytestmark = pytest.mark.skipif(shutil.which("go") is None, reason="needs a Go compiler")


def asks_for(sample: Sample, version: str) -> None:
    (sample.folder / "modules" / "alpha" / "go.mod").write_text(
        f"module sample/alpha\n\ngo 1.21\n\ntoolchain go{version}\n"
    )


def test_only_the_module_that_names_a_go_may_have_another_than_the_one_that_is_there(sample: Sample) -> None:
    asks_for(sample, "1.21.1")
    calls = sample.folder / "calls"
    made_nothing = 'while [ $# -gt 1 ]; do if [ "$1" = -o ]; then echo "#!/bin/sh" > "$2"; fi; shift; done'
    version = 'if [ "$1" = env ]; then echo go1.26.0; exit; fi; mkdir -p "$GOCACHE"'
    sample.program("go", f"{version}\necho \"$GOTOOLCHAIN $PWD $1\" >> '{calls}'\n{made_nothing}")
    result = sample.ensure()
    assert result.returncode == 0, result.stderr
    made = [line.split() for line in calls.read_text().splitlines()]
    assert {(toolchain, Path(folder).parent.name) for toolchain, folder, _ in made} == {
        ("auto", "alpha"),
        ("local", "beta"),
    }
    assert [command for _, folder, command in made if "/alpha/" in folder] == ["version", "build"]


def test_where_the_newer_go_cannot_be_had_the_remedy_is_named(sample: Sample) -> None:
    asks_for(sample, "1.99.1")
    result = sample.ensure(GOPROXY="off")
    assert result.returncode != 0
    assert "alpha v1.2.3 needs Go 1.99.1 or later, which could not be fetched from the Go proxy\n" in result.stderr
    assert "install Go 1.99.1 or later from https://go.dev/dl/ and put its bin directory on PATH" in result.stderr
    assert "download go1.99.1" in result.stderr
    assert sample.installed() == {}


def test_a_fetched_newer_go_can_be_removed_by_whoever_fetched_it(sample: Sample, tmp_path: Path) -> None:
    asks_for(sample, "1.99.1")
    put = 'mkdir -p "$GOMODCACHE/golang.org/toolchain/bin" && chmod -R a-w "$GOMODCACHE/golang.org"'
    builder = build.Builder(sample.program("go", put), tmp_path / "scratch", tmp_path / "logs")
    tool = pins.load(sample.pins).tool("alpha")
    (tmp_path / "logs").mkdir()
    (tmp_path / "module").mkdir()
    builder._get_newer_go("1.99.1", tool, tmp_path / "module", ToolLine("alpha"))
    fetched = builder.caches("alpha") / "gomod" / "golang.org"
    assert all(folder.stat().st_mode & 0o200 for folder in (fetched, *fetched.rglob("*")))
    builder.drop_caches("alpha")
    assert not fetched.exists()


def test_karpenter_names_the_go_that_its_module_needs_and_no_other_tool_does() -> None:
    assert {tool.name for tool in pins.load().tools if tool.buildable and golang.newer(tool)} == {"karpenter"}


def test_without_go_and_without_pip_the_remedy_is_named(sample: Sample) -> None:
    script = (
        "import sys, pathlib; from kumulus.toolchain import golang, supply, pins;"
        " golang._python_with_pip = lambda: None;"
        " supply.ensure(known=pins.load(pathlib.Path(sys.argv[1])))"
    )
    environment = {**sample.environment, "PATH": "/nonexistent"}
    command = [sys.executable, "-c", script, str(sample.pins)]
    result = subprocess.run(command, env=environment, cwd=ROOT, capture_output=True, text=True, check=False)
    assert "Go is not on PATH, and this Python has no pip to fetch one with" in result.stderr
    assert "install Go 1.21 or later from https://go.dev/dl/" in result.stderr


def test_an_old_go_on_path_is_not_used(sample: Sample) -> None:
    old = sample.program("go", 'echo "go1.19.5"')
    path = os.environ["PATH"]
    try:
        os.environ["PATH"] = str(sample.path)
        assert golang.on_path("1.26") == (None, f"{old} is 1.19.5, needed is 1.26 or later")
    finally:
        os.environ["PATH"] = path

"""What a release's files say agrees; tests/e2e/test_release.py makes one."""

import re
import subprocess
from pathlib import Path

import pytest
import yaml

from kumulus import toolchain
from kumulus.host import version
from kumulus.host.version import EARLIER, VERSION
from tests.support import release
from tests.support.project import ROOT

WORKFLOW = ROOT / ".github" / "workflows" / "release.yml"
# Whose repository, npm scope, image or tap it is: one owner everywhere.
_OWNED = re.compile(r"github\.com[:/]([\w.-]+)/kumulus\b|@([\w-]+)/kumulus\b|ghcr\.io/([\w.-]+)/kumulus\b")
# Not a name of ours: a placeholder for the reader's own.
_PLACEHOLDERS = {"OWNER"}


def test_names_that_are_assumed_are_those_of_one_file() -> None:
    """Files that cannot import it repeat the names; another one there is an error here, with its place."""
    owners = {version.REPOSITORY.split("/")[-2], version.NPM_PACKAGE.partition("/")[0].removeprefix("@")}
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    found: dict[str, set[str]] = {}
    for name in listed.splitlines():
        file = ROOT / name
        if not file.is_file() or name.startswith("benchmarks/results/") or file.suffix in {".png", ".xz", ".gz"}:
            continue
        for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), 1):
            for match in _OWNED.finditer(line):
                found.setdefault(next(filter(None, match.groups())), set()).add(f"{name}:{number}")
    assert set(found) - _PLACEHOLDERS <= owners, found
    assert owners <= set(found)


def test_the_plugin_of_a_git_address_is_this_version() -> None:
    assert (ROOT / "plugin" / "requirements.txt").read_text() == f"kumulus=={VERSION}\n"
    assert yaml.safe_load((ROOT / "plugin" / "PulumiPlugin.yaml").read_text())["runtime"]["name"] == "python"
    assert VERSION not in EARLIER


def test_the_workflow_runs_every_step_once_and_may_do_only_what_its_jobs_are_for() -> None:
    jobs = yaml.safe_load(WORKFLOW.read_text())["jobs"]
    runs = "\n".join(step.get("run", "") for job in jobs.values() for step in job["steps"])
    assert sorted(re.findall(r"tests\.support\.release ([\w-]+)", runs)) == sorted(["check", *release.STEPS])
    assert {name: set(job.get("permissions", ())) - {"contents"} for name, job in jobs.items()} == {
        "make": {"id-token", "attestations"},
        "test": set(),
        "publish": {"id-token"},
        "site": {"pages", "id-token"},
    }
    assert jobs["publish"]["needs"] == ["make", "test"]
    assert jobs["publish"]["if"] == "github.ref_type == 'tag'"


def test_the_sdk_for_dotnet_is_written_by_the_engine_as_our_own_generator_has_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On the workflow's machine there are both, and dotnet."""
    programs = {"pulumi": 'mkdir -p "$7/$5"; echo "$5" > "$7/$5/Kumulus.csproj"', "pulumi-gen-sdk": "exit 1"}
    for name, does in programs.items():
        (tmp_path / name).write_text(f"#!/bin/sh\n{does}\n")
        (tmp_path / name).chmod(0o755)
    monkeypatch.setattr(toolchain, "find", lambda name: tmp_path / name)
    release.generate("dotnet", tmp_path / release.SCHEMA, tmp_path / "sdk")
    assert [(each.name, each.read_text()) for each in (tmp_path / "sdk").iterdir()] == [("Kumulus.csproj", "dotnet\n")]
    with pytest.raises(SystemExit, match="pulumi-gen-sdk"):
        release.generate("nodejs", tmp_path / release.SCHEMA, tmp_path / "sdk")


def test_every_sdk_s_tools_are_on_the_machine_that_packs_it() -> None:
    """Node.js and Go are on every runner; an SDK whose tool is not there would be left out."""
    jobs = yaml.safe_load(WORKFLOW.read_text())["jobs"]
    for name, step in (("make", "release sdks"), ("publish", "release publish-nuget")):
        steps = [each.get("uses", "").partition("@")[0] or each.get("run", "") for each in jobs[name]["steps"]]
        assert "actions/setup-dotnet" in steps[: next(i for i, each in enumerate(steps) if step in each)]

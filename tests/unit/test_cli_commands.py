"""The `kumulus` command as a user calls it, in a checkout of its own, on a machine that has nothing yet."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from cli import project
from cli.registry import COMMANDS
from tests.unit.toolchain_sample import ROOT
from toolchain import plugins

PULUMI_YAML = """\
name: sample
runtime: python
stackConfigDir: stacks
backend:
  # where the state is
  url: file://./.pulumi-state
"""


@dataclass(frozen=True)
class Checkout:
    root: Path
    home: Path

    def run(self, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
        """Run ./kumulus with a bare PATH, an empty cache and an empty home."""
        return subprocess.run(
            [sys.executable, self.root / "kumulus", *arguments],
            env={"HOME": str(self.home), "PATH": "/nonexistent", "LC_ALL": "C.UTF-8", **environment},
            cwd=self.home,
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )

    def shell(self, script: str, **environment: str) -> str:
        """Run a script in bash, where `$kumulus` is the command; returns what it prints."""
        env = {"HOME": str(self.home), "PATH": "/usr/bin:/bin", "kumulus": f"{sys.executable} {self.root}/kumulus"}
        command = ["bash", "-euc", script]
        return subprocess.run(command, env={**env, **environment}, capture_output=True, text=True, check=True).stdout


@pytest.fixture
def checkout(tmp_path: Path) -> Checkout:
    root, home = tmp_path / "checkout", tmp_path / "home"
    home.mkdir()
    (root / "stacks").mkdir(parents=True)
    for folder in ("cli", "toolchain"):
        shutil.copytree(ROOT / folder, root / folder, ignore=shutil.ignore_patterns("__pycache__"))
    for file in ("kumulus", "requirements.txt", "requirements-dev.txt", "pyproject.toml"):
        shutil.copy(ROOT / file, root / file)
    (root / "Pulumi.yaml").write_text(PULUMI_YAML)
    for stack in ("quickstart", "gcp-small", "gcp-large"):
        (root / "stacks" / f"Pulumi.{stack}.yaml").write_text("config: {}\n")
    return Checkout(root, home)


@pytest.mark.parametrize("arguments", [[], ["-h"], ["--help"]])
def test_help_lists_every_command(checkout: Checkout, arguments: list[str]) -> None:
    result = checkout.run(*arguments)
    assert result.returncode == 0
    assert all(f"\n  {name} " in result.stdout for name in COMMANDS)


@pytest.mark.parametrize("name", [name for name, command in COMMANDS.items() if not command.venv])
def test_every_command_explains_itself_on_a_bare_python(checkout: Checkout, name: str) -> None:
    result = checkout.run(name, "-h")
    assert (result.returncode, result.stderr) == (0, "")
    assert f"usage: kumulus {name}" in result.stdout


def test_an_unknown_command_gives_near_matches(checkout: Checkout) -> None:
    result = checkout.run("doctr")
    assert (result.returncode, result.stderr) == (2, "error: there is no command 'doctr': did you mean doctor?\n")


def test_an_unknown_option_is_refused(checkout: Checkout) -> None:
    result = checkout.run("doctor", "--jsn")
    assert result.returncode == 2
    assert "unrecognized arguments: --jsn" in result.stderr


def test_doctor_names_what_is_missing_and_how_to_get_it(checkout: Checkout) -> None:
    result = checkout.run("doctor")
    assert (result.returncode, result.stderr) == (1, "")
    table, summary = result.stdout.split("\n\n")
    row = next(line for line in table.splitlines() if line.startswith("kube-apiserver "))
    assert row.split() == ["kube-apiserver", "-", "missing"]
    assert summary.startswith("Missing: .venv, etcd, kwok, kwokctl, kube-apiserver")
    assert "To get it: ./kumulus venv" in summary
    assert "To get it: ./kumulus tools" in summary


def test_doctor_for_programs_says_the_same(checkout: Checkout) -> None:
    result = checkout.run("doctor", "--json")
    report = json.loads(result.stdout)
    assert (result.returncode, report["ok"]) == (1, False)
    states = {finding["name"]: finding["state"] for finding in report["findings"]}
    assert states["python"] == "ok"
    assert states["kubectl"] == "missing"
    assert states["plugin kubernetes"] == "missing"
    # Neither is needed: Go can be fetched, the plugin is for hostCommands only.
    assert (states["go"], states["plugin command"]) == ("absent", "absent")


def test_doctor_says_which_version_on_path_is_used_and_which_is_not(checkout: Checkout, tmp_path: Path) -> None:
    for name, script in {"etcd": "echo etcd Version: 3.6.9", "kubectl": "echo Client Version: v1.20.1"}.items():
        file = tmp_path / "path" / name
        file.parent.mkdir(exist_ok=True)
        file.write_text(f"#!/bin/sh\n{script}\n")
        file.chmod(0o755)
    report = json.loads(checkout.run("doctor", "--json", PATH=str(tmp_path / "path")).stdout)
    findings = {finding["name"]: finding for finding in report["findings"]}
    assert findings["etcd"]["state"] == "ok"
    assert findings["etcd"]["version"] == "3.6.9"
    assert findings["etcd"]["place"] == f"PATH: {tmp_path}/path/etcd"
    assert findings["kubectl"]["state"] == "missing"
    assert findings["kubectl"]["note"] == f"{tmp_path}/path/kubectl is 1.20.1, needed is >=1.34.0,<1.37.0"


def test_env_twice_is_the_same_as_once(checkout: Checkout) -> None:
    once = 'eval "$($kumulus env 2>/dev/null)"; echo "$PATH"; export -p | grep -c PULUMI'
    first, *rest = checkout.shell(f"{once}; {once}; {once}").split()
    python, tools, *others = first.split(":")
    assert python.endswith("/checkout/.venv/bin")
    assert tools.startswith(f"{checkout.home}/.cache/kumulus/toolchain/")
    assert others == ["/usr/bin", "/bin"]
    assert rest == ["3", first, "3", first, "3"]


def test_env_quotes_what_the_shell_would_read_otherwise(checkout: Checkout, tmp_path: Path) -> None:
    cache = tmp_path / "it's $HOME; a cache"
    script = 'eval "$($kumulus env 2>/dev/null)"; eval "$($kumulus env 2>/dev/null)"; echo "$PATH"'
    path = checkout.shell(script, XDG_CACHE_HOME=str(cache)).strip()
    assert path.split(":")[1].startswith(f"{cache}/kumulus/toolchain/")
    assert path.endswith("/bin:/usr/bin:/bin")
    assert path.count(str(cache)) == 1


@pytest.mark.parametrize(
    ("variables", "expected"),
    [
        ({}, ""),
        ({"PULUMI_CONFIG_PASSPHRASE": "mine"}, "mine"),
        ({"PULUMI_CONFIG_PASSPHRASE": ""}, ""),
        ({"PULUMI_CONFIG_PASSPHRASE_FILE": "/x"}, "unset"),
    ],
)
def test_env_leaves_a_passphrase_of_the_user_alone(
    checkout: Checkout, variables: dict[str, str], expected: str
) -> None:
    script = 'eval "$($kumulus env 2>/dev/null)"; echo "${PULUMI_CONFIG_PASSPHRASE-unset}"'
    assert checkout.shell(script, **variables).rstrip("\n") == expected


def test_env_lets_the_engine_fetch_plugins_only_where_it_costs_nothing(checkout: Checkout) -> None:
    name = "PULUMI_DISABLE_AUTOMATIC_PLUGIN_ACQUISITION"
    script = f'eval "$($kumulus env 2>/dev/null)"; echo "${{{name}-unset}}"'
    assert checkout.shell(script).strip() == "true"
    assert checkout.shell(script, **{name: "false"}).strip() == "false"
    (checkout.home / ".pulumi" / "plugins" / "resource-command-v1.2.1").mkdir(parents=True)
    assert checkout.shell(script).strip() == "unset"


def test_env_of_a_stack_points_at_its_cluster(checkout: Checkout, tmp_path: Path) -> None:
    script = 'eval "$($kumulus env quickstart 2>/dev/null)"; echo "${KUBECONFIG-unset}"'
    assert checkout.shell(script).strip() == "unset"
    for folder, variables in (
        (checkout.root / ".kumulus", {}),
        (tmp_path / "other home", {"KUMULUS_HOME": f"{tmp_path}/other home"}),
    ):
        file = folder / "clusters" / "quickstart" / "kubeconfig.yaml"
        file.parent.mkdir(parents=True)
        file.touch()
        assert checkout.shell(script, **variables).strip() == str(file)


@pytest.mark.parametrize("command", ["env", "up", "preview", "down"])
def test_a_stack_without_a_file_is_refused_and_the_others_are_named(checkout: Checkout, command: str) -> None:
    result = checkout.run(command, "gcp-larg")
    assert result.returncode == 1
    assert result.stderr == (
        "error: there is no stacks/Pulumi.gcp-larg.yaml (did you mean gcp-large?);"
        " the stacks are: gcp-large, gcp-small, quickstart\n"
    )


def test_down_of_a_stack_that_was_never_up_is_calm_and_needs_no_tools(checkout: Checkout) -> None:
    result = checkout.run("down")
    assert (result.returncode, result.stdout, result.stderr) == (0, "quickstart is not up: nothing to destroy\n", "")


def test_clean_is_refused_while_a_cluster_is_up(checkout: Checkout) -> None:
    (checkout.root / ".venv").mkdir()
    cluster = checkout.root / ".kumulus" / "clusters" / "team-a"
    cluster.mkdir(parents=True)
    result = checkout.run("clean")
    assert result.returncode == 1
    assert result.stderr == "error: clusters are up: team-a\n  First: make down STACK=team-a\n"
    assert (checkout.root / ".venv").exists()
    cluster.rmdir()
    assert checkout.run("clean").returncode == 0
    assert not (checkout.root / ".venv").exists()


def test_an_unsupported_kubernetes_version_is_refused_with_those_that_are(checkout: Checkout) -> None:
    result = checkout.run("tools", "--kubernetes", "v1.2.3")
    assert result.returncode == 1
    assert result.stderr.startswith("error: Kubernetes v1.2.3 is not among the supported versions: v1.35.4")
    assert checkout.run("tools", "--kubernetes", "latest").stderr == "error: 'latest' is not a version\n"


def test_a_reader_that_stops_early_is_no_error(checkout: Checkout) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    try:
        command = [sys.executable, checkout.root / "kumulus", "doctor"]
        env = {"HOME": str(checkout.home), "PATH": "/nonexistent"}
        result = subprocess.run(command, env=env, stdout=writer, stderr=subprocess.PIPE, text=True, check=False)
    finally:
        os.close(writer)
    assert (result.returncode, result.stderr) == (0, "")


def test_make_without_a_target_prints_help() -> None:
    result = subprocess.run(
        ["make", "-C", ROOT], capture_output=True, text=True, check=True, env={**os.environ, "MAKEFLAGS": ""}
    )
    assert "make TARGET [STACK=quickstart]" in result.stdout
    assert all(
        f"\n  {target} " in result.stdout for target in ("up", "preview", "down", "test", "lint", "bench", "clean")
    )


@pytest.mark.parametrize(
    ("section", "tools"),
    [
        ("nodeGroups: []", []),
        ("podUsage: []", ["metrics-server"]),
        ("observability: {}", ["observability"]),
        ("podUsage: []\n    observability: {}", ["metrics-server", "observability"]),
        ("# observability: {}", []),
        ("runtime: kind", ["helm", "kind"]),
        ('runtime: "kind"  # in Docker', ["helm", "kind"]),
        ("runtime: existing", ["helm"]),
        # There it is a chart.
        ("runtime: kind\n    observability: {}", ["helm", "kind"]),
        ("runtime: existing\n    observability: {}", ["helm"]),
        ("clusterAddons: []", ["helm"]),
        ("runtime: kwok", []),
        ("kind: {}", []),
    ],
)
def test_a_stack_brings_the_optional_tools_that_its_file_asks_for(
    section: str, tools: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "stacks").mkdir()
    (tmp_path / "stacks" / "Pulumi.x.yaml").write_text(f"config:\n  kumulus:cluster:\n    {section}\n")
    monkeypatch.setattr(project, "ROOT", tmp_path)
    assert project.optional_tools("x") == tools


def test_a_stack_with_commands_brings_the_plugin_that_runs_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "stacks").mkdir()
    monkeypatch.setattr(project, "ROOT", tmp_path)
    for section, runs in {"hostCommands: []": True, "loadImages: [a]": True, "clusterAddons: []": False}.items():
        (tmp_path / "stacks" / "Pulumi.x.yaml").write_text(f"config:\n  kumulus:cluster:\n    {section}\n")
        assert project.runs_host_commands("x") is runs


def test_the_plugin_for_commands_has_its_sdks_version() -> None:
    assert f"pulumi-command=={plugins.COMMAND_VERSION}\n" in (ROOT / "requirements.txt").read_text()


def test_a_kemu_file_is_converted_and_a_file_that_is_none_refused(tmp_path: Path) -> None:
    file = tmp_path / "kemu.yaml"
    file.write_text("kind: ClusterConfig\nspec: {colour: red}\n")
    command = [sys.executable, ROOT / "kumulus", "convert", file]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-3:] == ["config:", "  kumulus:cluster:", "    runtime: kwok"]
    assert "#   spec.colour: is not a key of KEMU's format" in done.stdout
    file.write_text("kind: Cluster\n")
    refused = subprocess.run(command, capture_output=True, text=True, check=False)
    assert refused.returncode == 1
    assert refused.stderr.startswith(f'error: 1 problem in {file}\n  kind: is "Cluster", not KEMU\'s ClusterConfig')

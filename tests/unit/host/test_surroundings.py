"""The user's project as its Pulumi.yaml says, and where the engine finds the plugin."""

import dataclasses
import hashlib
import json
import os
import pwd
import subprocess
import sys
from pathlib import Path

import pytest

from kumulus.host import installation, pulumi_project
from kumulus.host.version import VERSION

PULUMI_YAML = """\
# A comment: name: other
name: fleet
runtime: {name: python, options: {toolchain: pip}}
stackConfigDir: my stacks
backend: {url: "file://./state?create_dir=true"}
plugins:
  providers:
    - {name: random, path: elsewhere}
    - name: kumulus
      path: ../plugin
"""


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "fleet" / "deep" / "er").mkdir(parents=True)
    (tmp_path / "fleet" / "Pulumi.yaml").write_text(PULUMI_YAML)
    return tmp_path / "fleet"


def found(start: Path) -> pulumi_project.PulumiProject:
    project = pulumi_project.find(start)
    assert project is not None
    return project


def test_the_project_is_the_nearest_at_or_above(root: Path) -> None:
    assert found(root).root == found(root / "deep" / "er").root == root
    (root / "deep" / "Pulumi.yml").write_text("name: inner\n")
    assert found(root / "deep" / "er").name == "inner"
    assert pulumi_project.find(root.parent) is None


def test_it_is_as_its_file_says(root: Path) -> None:
    project = found(root)
    assert project.name == "fleet"
    assert project.stack_file("dev") == root / "my stacks" / "Pulumi.dev.yaml"
    assert project.shown(project.stack_file("dev")) == "my stacks/Pulumi.dev.yaml"
    assert project.plugin == root / "../plugin"
    (root / "my stacks").mkdir()
    for name in ("Pulumi.dev.yaml", "Pulumi.prod.yaml", "Pulumi..yaml", "other.yaml"):
        (root / "my stacks" / name).touch()
    assert project.stacks() == ["dev", "prod"]


def test_the_backend_is_a_directory_or_somewhere_else(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PULUMI_BACKEND_URL", raising=False)
    assert found(root).backend_directory() == root / "state"
    monkeypatch.setenv("PULUMI_BACKEND_URL", "s3://bucket")
    assert found(root).backend_directory() is None


@pytest.mark.parametrize(
    "text", ["", "- a list\n", "name: [\n", "a: 2026-02-30\n", "name: fleet\nplugins: x\nbackend: 3\n"]
)
def test_a_file_that_is_wrong_is_left_to_pulumi_to_tell(text: str, tmp_path: Path) -> None:
    (tmp_path / "Pulumi.yaml").write_text(text)
    assert found(tmp_path).stack_file("dev") == tmp_path / "Pulumi.dev.yaml"


def test_without_a_yaml_library_the_checkouts_own_file_is_read_the_same(tmp_path: Path) -> None:
    checkout = installation.checkout()
    assert checkout is not None
    code = (
        "import sys; sys.modules['yaml'] = None; sys.path.insert(0, sys.argv[1])\n"
        "from pathlib import Path; from kumulus.host import pulumi_project as p\n"
        "print(p.read(Path(sys.argv[2])))"
    )
    command = [sys.executable, "-c", code, str(checkout / "src"), str(checkout / "Pulumi.yaml")]
    bare = subprocess.run(command, capture_output=True, text=True, check=True, cwd=tmp_path).stdout.strip()
    assert bare == str(pulumi_project.read(checkout / "Pulumi.yaml"))
    assert "name='kumulus'" in bare


def selection(root: Path, home: Path, written: object) -> None:
    """Write what Pulumi keeps of the selected stack."""
    digest = hashlib.sha1(str(root / "Pulumi.yaml").encode(), usedforsecurity=False).hexdigest()
    file = home / "workspaces" / f"fleet-{digest}-workspace.json"
    file.parent.mkdir(exist_ok=True)
    file.write_text(written if isinstance(written, str) else json.dumps(written))


@pytest.mark.parametrize(
    ("written", "stack"),
    [
        ({"stack": "dev"}, "dev"),
        ({"stack": "organization/fleet/prod"}, "prod"),
        *((each, None) for each in ({"stack": ""}, "{", "[]", {"stacks": [], "stack": 1})),
    ],
)
def test_the_selected_stack_is_pulumis(root: Path, tmp_path: Path, written: object, stack: str | None) -> None:
    assert found(root).selected_stack(tmp_path) is None
    selection(root, tmp_path, written)
    assert found(root).selected_stack(tmp_path) == stack


def test_each_backend_has_a_selected_stack_of_its_own(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "credentials.json").write_text(json.dumps({"current": "s3://fleet"}))
    one, two = {"file://./state": "organization/fleet/dev"}, {"s3://fleet": "organization/fleet/prod"}
    selection(root, tmp_path, {"stacks": one | two})
    monkeypatch.setenv("PULUMI_BACKEND_URL", "s3://fleet")
    assert found(root).selected_stack(tmp_path) == "prod"
    monkeypatch.delenv("PULUMI_BACKEND_URL")
    for url, backends, said in (
        ("file://./state", one | two, "dev"),
        ("s3://fleet", one | two, "prod"),
        ("s3://another", one | two, "old"),
        ("", one | two, "prod"),
        ("", one, "old"),
    ):
        selection(root, tmp_path, {"stack": "old", "stacks": backends})
        project = dataclasses.replace(found(root), backend=url)
        assert project.selected_stack(tmp_path) == said, (url, backends)


def test_pulumis_home_is_where_the_engine_has_it(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("PULUMI_HOME", raising=False)
    assert installation.pulumi_home() == Path(pwd.getpwuid(os.getuid()).pw_dir) / ".pulumi"
    monkeypatch.setenv("PULUMI_HOME", str(tmp_path / "p"))
    assert installation.pulumi_home() == tmp_path / "p"


def test_the_launcher_starts_the_plugin_with_the_python_that_used_it_last(tmp_path: Path) -> None:
    python = tmp_path / "it's one; $HOME" / "python"
    python.parent.mkdir()
    python.write_text('#!/bin/sh\necho "$@"\n')
    python.chmod(0o755)
    installation.install_plugin(tmp_path, Path("/nowhere/python"))
    file = tmp_path / "plugins" / f"resource-kumulus-v{VERSION}" / installation.NAME
    gone = subprocess.run([file, "127.0.0.1:1"], capture_output=True, text=True, check=False)
    assert gone.returncode == 1
    assert gone.stderr.startswith("kumulus plugin: /nowhere/python is gone; run 'kumulus env' in an environment")
    # As a power loss may leave it.
    file.write_bytes(b"\xff\xfe")
    installation.install_plugin(tmp_path, python)
    before = file.stat()
    installation.install_plugin(tmp_path, python)
    assert (file.stat().st_ino, file.stat().st_mtime_ns) == (before.st_ino, before.st_mtime_ns)
    started = subprocess.run([file, "127.0.0.1:1"], capture_output=True, text=True, check=True)
    assert started.stdout == "-P -m kumulus.provider.plugin 127.0.0.1:1\n"
    assert [path.name for path in file.parent.iterdir()] == [installation.NAME]

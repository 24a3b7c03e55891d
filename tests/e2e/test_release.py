"""A release, rehearsed: made and published to stand-ins by its own program, and installed from there by a stranger.

The next release is rehearsed, too: what the last one brought up is gone on with. Once there is a release, the first
wheel below is that one's, from the index that pip asks.
"""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from packaging.utils import canonicalize_name

from kumulus.host.version import EARLIER, GO_MODULE, NPM_PACKAGE, REPOSITORY, VERSION
from tests.support import registries, release
from tests.support.api import Api
from tests.support.installed import ROOT, Environment, User, build
from tests.support.pods import is_ready
from tests.support.project import NODES
from tests.support.registries import Registries
from tests.support.tools import require

# pip unpacks 67 packages for a stranger, on a busy machine too.
pytestmark = [pytest.mark.e2e, pytest.mark.timeout(1800)]

LATER = "99.0.0"
PLUGIN = ROOT / "plugin"
TOKEN = "of-this-test"
AUTHOR = ("-c", "user.name=a", "-c", "user.email=a@b")


@pytest.fixture(scope="module")
def dist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("release")
    step(folder, "packages")
    step(folder, "sums")
    return folder


@pytest.fixture(scope="module")
def internet(dist: Path) -> Iterator[Registries]:
    with registries.serving() as found:
        step(dist, "publish-python", UV_PUBLISH_URL=f"{found.url}/legacy/", UV_PUBLISH_TOKEN=TOKEN)
        for file in dist.iterdir():
            found.files[f"/releases/v{VERSION}/{file.name}"] = file.read_bytes()
        yield found


def step(folder: Path, name: str, **variables: str) -> None:
    """A step of the workflow."""
    command = [sys.executable, "-m", "tests.support.release", name]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "RELEASE_DIST": str(folder), **variables}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False, timeout=600)
    assert done.returncode == 0, done.stdout + done.stderr


def of_stranger(user: User, internet: Registries, **more: str) -> dict[str, str]:
    """The variables of somebody who has nothing of ours, and asks the stand-ins besides the usual registries."""
    there = {"PIP_EXTRA_INDEX_URL": internet.simple, "KUMULUS_RELEASES": f"{internet.url}/releases"}
    # pip would compile all of the 67 packages, 20 s of CPU each time.
    there |= {"PIP_COMPILE": "0"}
    return user.variables(Environment(user.home / ".local")) | there | more


def install(user: User, internet: Registries) -> subprocess.CompletedProcess[str]:
    script = user.home / "install.sh"
    script.write_bytes(internet.files[f"/releases/v{VERSION}/install.sh"])
    return user.run(["sh", str(script)], user.home, of_stranger(user, internet), timeout=1200)


def brought_up(user: User, shell: dict[str, str]) -> tuple[Path, dict[str, str]]:
    """A new project of a user's, up; returns its folder, and the UIDs of its nodes by name."""
    assert user.run(["kumulus", "new", "my-fleet"], user.home, shell).returncode == 0
    project = user.home / "my-fleet"
    up = user.run(["kumulus", "up"], project, shell)
    assert up.returncode == 0, up.stdout + up.stderr
    return project, nodes_of(project)


def nodes_of(project: Path) -> dict[str, str]:
    nodes = Api(project / ".kumulus" / "clusters" / "dev" / "kubeconfig.yaml").list(NODES)
    assert all(map(is_ready, nodes))
    return {each["metadata"]["name"]: each["metadata"]["uid"] for each in nodes}


def taken_down(user: User, project: Path, shell: dict[str, str]) -> None:
    down = user.run(["kumulus", "down"], project, shell)
    assert down.returncode == 0, down.stdout + down.stderr
    assert not (project / ".kumulus").exists()
    assert user.processes() == {}


def test_a_stranger_installs_it_by_the_script_and_has_thirty_nodes(
    dist: Path, internet: Registries, user: User
) -> None:
    checked = subprocess.run(["sha256sum", "--check", "--strict", release.SUMS], cwd=dist, check=False)
    assert checked.returncode == 0
    installed = install(user, internet)
    assert installed.returncode == 0, installed.stdout + installed.stderr
    assert installed.stdout.split()[:2] == ["Kumulus", VERSION]
    shell = of_stranger(user, internet)
    project, nodes = brought_up(user, shell)
    assert len(nodes) == 30
    taken_down(user, project, shell)

    python = str(user.home / ".local" / "share" / "kumulus" / VERSION / "bin" / "python")
    listed = json.loads(user.run([python, "-m", "pip", "list", "--format", "json"], user.home, shell).stdout)
    bill = json.loads((dist / release.BILL).read_text())
    named = {(canonicalize_name(each["name"]), each["version"]) for each in bill["components"]}
    there = {(canonicalize_name(each["name"]), each["version"]) for each in listed}
    # What venv has put there is no part of the release.
    assert {name for name, _ in there - named} <= {"kumulus", "pip", "setuptools"}
    assert ("kumulus", VERSION) in there


def test_what_is_not_what_was_released_is_not_installed(internet: Registries, user: User) -> None:
    path = f"/releases/v{VERSION}/{release.REQUIREMENTS}"
    released = internet.files[path]
    internet.files[path] = released.replace(b"aiohttp==", b"aiohttp>=")
    try:
        refused = install(user, internet)
    finally:
        internet.files[path] = released
    assert (refused.returncode, refused.stderr) == (
        1,
        f"error: {internet.url}{path} is not what was released; nothing was installed\n",
    )
    assert not (user.home / ".local").exists()


def test_what_the_last_release_brought_up_is_gone_on_with(
    dist: Path, user: User, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """In a home where the last release's plugin never was, and in its own."""
    folder = tmp_path_factory.mktemp("versions")
    if EARLIER:
        pip = [sys.executable, "-m", "pip", "download", "--no-deps", "--dest", str(folder), f"kumulus=={EARLIER[-1]}"]
        subprocess.run(pip, check=True, timeout=300)
        (last,), (this,) = folder.glob("*.whl"), dist.glob("*.whl")
    else:
        (last,), (_, this) = dist.glob("*.whl"), build(folder, later=LATER)
    environment = Environment.make(tmp_path / "env")
    environment.install(last)
    shell = user.variables(environment)
    project, nodes = brought_up(user, shell)

    environment.install(this)
    for home in ("of-another-machine", ".pulumi"):
        shell = user.variables(environment, PULUMI_HOME=str(user.home / home))
        up = user.run(["kumulus", "up"], project, shell)
        assert up.returncode == 0, up.stdout + up.stderr
        assert "replace" not in up.stdout
        assert "delete" not in up.stdout
        assert nodes_of(project) == nodes
    taken_down(user, project, shell)


def test_the_plugin_starts_from_the_folder_that_pulumi_gets_by_a_git_address(
    internet: Registries, user: User, tmp_path: Path
) -> None:
    """As Pulumi's Python host does it: that can be downloaded only, and is not on every machine."""
    assert (PLUGIN / "PulumiPlugin.yaml").is_file()
    environment = Environment(tmp_path / "plugin" / ".venv")
    shell = user.variables(environment, tools=True, PIP_EXTRA_INDEX_URL=internet.simple)
    subprocess.run([sys.executable, "-m", "venv", str(environment.prefix)], check=True, timeout=120)
    needed = ["-m", "pip", "install", "--quiet", "-r", str(PLUGIN / "requirements.txt")]
    done = user.run([str(environment.python), *needed], tmp_path, shell)
    assert done.returncode == 0, done.stderr
    host = tmp_path / "pulumi-resource-kumulus"
    host.write_text(f'#!/bin/sh\nexec "{environment.python}" "{PLUGIN}" "$@"\n')
    host.chmod(0o755)
    schema = user.run(["pulumi", "package", "get-schema", str(host)], user.home, shell)
    assert schema.returncode == 0, schema.stderr
    found: dict[str, Any] = json.loads(schema.stdout)
    assert (found["name"], found["version"]) == ("kumulus", VERSION)
    assert "kumulus:index:KwokCluster" in found["resources"]


@pytest.fixture(scope="module")
def sdks(dist: Path) -> Path:
    """The SDKs' folder, where there is a generator for them: ./kumulus tools --with languages."""
    require("pulumi-gen-sdk")
    step(dist, "sdks")
    return dist / "sdk"


def test_a_stranger_has_the_sdk_for_node_from_the_npm_registry(sdks: Path, internet: Registries, user: User) -> None:
    host = internet.url.removeprefix("http:")
    scope = NPM_PACKAGE.partition("/")[0]
    token = f"{host}/npm/:_authToken={TOKEN}\n"
    (user.home / ".npmrc").write_text(f"{token}registry={internet.url}/npm/\n")
    publisher = {"NPM_CONFIG_USERCONFIG": str(user.home / ".npmrc")}
    step(sdks.parent, "publish-npm", **publisher)
    assert f"Bearer {TOKEN}" in internet.signed

    (user.home / ".npmrc").write_text(f"{scope}:registry={internet.url}/npm/\n")
    project = user.home / "program"
    project.mkdir()
    (project / "package.json").write_text("{}")
    shell = of_stranger(user, internet)
    done = user.run(["npm", "install", "--no-audit", "--no-fund", NPM_PACKAGE], project, shell)
    assert done.returncode == 0, done.stdout + done.stderr
    asked = f"console.log(typeof require('{NPM_PACKAGE}').KwokCluster, require('{NPM_PACKAGE}/package.json').version)"
    assert user.run(["node", "-e", asked], project, shell).stdout.split() == ["function", VERSION]


def test_a_stranger_has_the_sdk_for_go_from_a_tag_of_the_repository(sdks: Path, user: User) -> None:
    origin, clone = user.home / "origin.git", user.home / "clone"
    for command in (
        ["init", "--quiet", "--bare", str(origin)],
        ["init", "--quiet", str(clone)],
        ["-C", str(clone), "remote", "add", "origin", str(origin)],
        ["-C", str(clone), *AUTHOR, "commit", "--quiet", "--allow-empty", "-m", "a"],
        ["-C", str(clone), "tag", f"v{VERSION}"],
    ):
        subprocess.run(["git", *command], check=True, timeout=60)
    step(sdks.parent, "publish-go", RELEASE_REPOSITORY=str(clone))

    (user.home / ".gitconfig").write_text(f'[url "file://{origin}"]\n  insteadOf = {REPOSITORY}\n')
    project = user.home / "program"
    project.mkdir()
    (project / "go.mod").write_text("module example\n\ngo 1.26\n")
    # What this machine has of others' modules is not fetched again, and nothing of ours comes to be among them.
    known = subprocess.run(
        ["go", "env", "GOMODCACHE", "GOPROXY", "GOCACHE"], capture_output=True, text=True, check=True
    )
    modules, proxies, cache = known.stdout.split()
    go = {"GOPROXY": f"file://{modules}/cache/download,{proxies}", "GOCACHE": cache, "GOFLAGS": "-mod=mod -modcacherw"}
    shell = user.variables(Environment(user.home / ".local")) | go | {"GOPRIVATE": GO_MODULE}
    done = user.run(["go", "get", f"{GO_MODULE}@v{VERSION}"], project, shell)
    assert done.returncode == 0, done.stdout + done.stderr
    program = f'package main\n\nimport k "{GO_MODULE}"\n\nfunc main() {{ _ = k.NewKwokCluster }}\n'
    (project / "main.go").write_text(program)
    built = user.run(["go", "build", "./..."], project, shell, timeout=500)
    assert built.returncode == 0, built.stderr

"""The first `kumulus up` of an installed wheel, on a machine without any of the tools: they come from a mirror."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from kumulus import toolchain
from kumulus.cli import needs
from kumulus.toolchain import releases
from kumulus.toolchain.pins import CONTROL_PLANE
from tests.e2e import release_files
from tests.support import processes
from tests.support.api import Api
from tests.support.installed import Environment, User, build
from tests.support.pods import is_ready
from tests.support.project import NODES

pytestmark = pytest.mark.e2e
TOOLS = ("etcd", "kwok", "kwokctl", *CONTROL_PLANE, *needs.ENGINE)


@pytest.fixture
def user(tmp_path: Path) -> Iterator[User]:
    for tool in TOOLS:
        try:
            toolchain.find(tool)
        except toolchain.ToolMissing as error:
            pytest.skip(str(error))
    if releases.platform() != "linux-amd64":
        pytest.skip("there are no release files of all of these for this platform")
    home = tmp_path / "home"
    home.mkdir()
    made = User(home)
    yield made
    processes.kill(made.processes())


def test_tools_come_from_a_mirror_and_thirty_nodes_are_ready(user: User, tmp_path: Path) -> None:
    environment = Environment.make(tmp_path / "env")
    environment.install(build(tmp_path)[1])
    mirror, cached = tmp_path / "mirror", user.home / "cache"
    release_files.make(mirror, environment.packages / "kumulus/toolchain/pins.toml", TOOLS)
    bare = {"PATH": f"{environment.prefix}/bin:/usr/bin:/bin", "XDG_CACHE_HOME": str(cached)}
    shell = {**user.variables(environment), **bare, "KUMULUS_TOOLS": "download"}
    project = user.home / "my-fleet"
    assert user.run(["kumulus", "new", "my-fleet"], user.home, shell).returncode == 0
    with release_files.served(mirror) as url:
        up = user.run(["kumulus", "up"], project, {**shell, "KUMULUS_MIRROR": url})
    assert up.returncode == 0, up.stdout + up.stderr
    assert "[7/7] pulumi, pulumi-language-python, pulumi-language-python-exec v3.246.0 … downloaded" in up.stderr
    # Neither the Kubernetes provider nor kubectl.
    installed = [file.name for file in cached.glob("kumulus/toolchain/*/*/*") if file.parent.name != "stamps"]
    assert sorted(installed) == sorted(TOOLS)
    assert not list(user.home.glob(".pulumi/plugins/resource-kubernetes*"))
    nodes = Api(project / ".kumulus" / "clusters" / "dev" / "kubeconfig.yaml").list(NODES)
    assert len(nodes) == 30
    assert all(map(is_ready, nodes))
    down = user.run(["kumulus", "down"], project, shell)
    assert down.returncode == 0, down.stdout + down.stderr
    assert user.processes() == {}

"""The first `kumulus up` of an installed wheel, on a machine without any of the tools: they come from a mirror."""

import hashlib
import io
import sys
import tarfile
from collections.abc import Sequence
from http.server import SimpleHTTPRequestHandler
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from kumulus.cli import needs
from kumulus.toolchain import pins, releases
from kumulus.toolchain.locate import locate
from kumulus.toolchain.pins import CONTROL_PLANE
from kumulus.toolchain.releases import Release
from tests.support import http_server
from tests.support.api import Api
from tests.support.installed import Environment, User
from tests.support.pods import is_ready
from tests.support.project import NODES
from tests.support.tools import require

pytestmark = pytest.mark.e2e
TOOLS = ("etcd", "kwok", "kwokctl", *CONTROL_PLANE, "kubectl", *needs.ENGINE)


def make(folder: Path, pins_file: Path, tools: Sequence[str]) -> None:
    """Write the release files of some tools into a mirror's folder, and their sums into a copy of the project's pins.

    Args:
        folder: the mirror's; it gets a folder for each host.
        pins_file: the pins.toml of the Kumulus that will download them.
        tools: names of tools, all of which are there.
    """
    known, text = pins.load(), pins_file.read_text()
    for tool in _chosen(known, tools):
        if tool.release is None:
            text += _published(tool, folder, locate(known, tool).path)
    for release in {tool.release.url: tool.release for tool in _chosen(known, tools) if tool.release}.values():
        parts = urlsplit(release.url)
        file = folder / parts.netloc / parts.path.lstrip("/")
        file.parent.mkdir(parents=True, exist_ok=True)
        _write(known, release, file)
        assert text.count(release.sum) == 1, release
        text = text.replace(release.sum, hashlib.sha256(file.read_bytes()).hexdigest())
    pins_file.write_text(text)


def _chosen(known: pins.Pins, names: Sequence[str]) -> list[pins.Tool]:
    return [known.tool(name) for name in names]


def _published(tool: pins.Tool, folder: Path, program: Path | None) -> str:
    """A release file of a tool of which nobody has published a sum yet: its entry for the pins."""
    file = folder / "releases.example" / tool.name
    file.parent.mkdir(parents=True, exist_ok=True)
    assert program is not None, tool.name
    file.write_bytes(program.read_bytes())
    found = hashlib.sha256(file.read_bytes()).hexdigest()
    return (
        f'\n[[download]]\ntools = {{{tool.name} = ""}}\nversion = "{tool.version}"\nmegabytes = 1\nsource = "a test"\n'
        f'[download.linux-amd64]\nurl = "https://releases.example/{tool.name}"\nsha256 = "{found}"\n'
    )


def _write(known: pins.Pins, release: Release, file: Path) -> None:
    found = {member: locate(known, known.tool(name)).path for name, member in release.members.items()}
    if list(found) == [""]:
        (program,) = found.values()
        assert program is not None
        file.write_bytes(program.read_bytes())
        return
    assert file.name.endswith(".tar.gz"), file
    with tarfile.open(file, "w:gz", compresslevel=1) as archive:
        for member, program in found.items():
            assert program is not None, member
            entry = tarfile.TarInfo(member)
            content = program.read_bytes()
            entry.size, entry.mode = len(content), 0o755
            archive.addfile(entry, io.BytesIO(content))


if __name__ == "__main__":
    # python -m tests.e2e.test_first_run FOLDER PINS_TOML TOOL...: for trying an installed package by hand.
    make(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3:])


@pytest.fixture
def _released() -> None:
    require(*TOOLS)
    if releases.platform() != "linux-amd64":
        pytest.skip("there are no release files of all of these for this platform")


@pytest.mark.usefixtures("_released")
def test_tools_come_from_a_mirror_and_thirty_nodes_are_ready(
    archives: tuple[Path, Path], user: User, tmp_path: Path
) -> None:
    environment = Environment.make(tmp_path / "env")
    environment.install(archives[1])
    mirror, cached = tmp_path / "mirror", user.home / "cache"
    make(mirror, environment.packages / "kumulus/toolchain/pins.toml", TOOLS)
    bare = {"PATH": f"{environment.prefix}/bin:/usr/bin:/bin", "XDG_CACHE_HOME": str(cached)}
    shell = {**user.variables(environment), **bare, "KUMULUS_TOOLS": "download"}
    project = user.home / "my-fleet"
    assert user.run(["kumulus", "new", "my-fleet"], user.home, shell).returncode == 0
    with http_server.serving(SimpleHTTPRequestHandler, directory=str(mirror)) as address:
        up = user.run(["kumulus", "up"], project, {**shell, "KUMULUS_MIRROR": f"http://{address}"})
    assert up.returncode == 0, up.stdout + up.stderr
    assert "[8/8] pulumi, pulumi-language-python, pulumi-language-python-exec v3.259.0 … downloaded" in up.stderr
    # Not the Kubernetes provider.
    installed = [file.name for file in cached.glob("kumulus/toolchain/*/*/*") if file.parent.name != "stamps"]
    assert sorted(installed) == sorted(TOOLS)
    assert not list(user.home.glob(".pulumi/plugins/resource-kubernetes*"))
    nodes = Api(project / ".kumulus" / "clusters" / "dev" / "kubeconfig.yaml").list(NODES)
    assert len(nodes) == 30
    assert all(map(is_ready, nodes))
    down = user.run(["kumulus", "down"], project, shell)
    assert down.returncode == 0, down.stdout + down.stderr
    assert user.processes() == {}

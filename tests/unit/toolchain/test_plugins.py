"""Pulumi's provider plugins: downloaded, put where the engine looks, or asked of pulumi itself."""

import os
import sys
import time
from pathlib import Path

import pytest

from kumulus.toolchain import cache, pins, plugins, supply
from kumulus.toolchain.build import install
from kumulus.toolchain.errors import ToolchainError, ToolMissing
from kumulus.toolchain.progress import ToolLine, transferred
from tests.unit.toolchain.sample import Sample

# Installs as the real one does, from a file or, where `fetched` is there, from Pulumi's own server.
PULUMI = """
[ "$1" = version ] && echo v3.246.0 && exit 0
echo "$@" >> '{folder}/asked'
name=$4 version=$5 file=
[ "$6" = --file ] && file=$7
[ -z "$file" ] && [ ! -e '{folder}/fetched' ] && echo 'failed all 5 attempts' >&2 && exit 1
target="$PULUMI_HOME/plugins/resource-$name-v$version"
mkdir -p "$target"
printf 'plugin' > "$target/pulumi-resource-$name"
chmod 755 "$target/pulumi-resource-$name"
"""


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A PULUMI_HOME, with a pulumi on PATH that notes what it is asked."""
    sample = Sample(tmp_path)
    sample.path.mkdir()
    sample.program("pulumi", PULUMI.format(folder=tmp_path))
    for name in ("pulumi-language-python", "pulumi-language-python-exec"):
        sample.program(name, "")
    for name in ("HOME", "PATH", "XDG_CACHE_HOME", "PULUMI_HOME"):
        monkeypatch.setenv(name, sample.environment[name])
    return Path(os.environ["PULUMI_HOME"])


def asked(home: Path) -> list[str]:
    return (home.parent.parent / "asked").read_text().splitlines()


def test_a_downloaded_command_plugin_is_put_where_the_engine_looks(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def provide(names: list[str]) -> None:
        known = pins.load()
        (tool,) = (known.tool(name) for name in names)
        assert tool.release is not None
        (tmp_path / "made").write_text("plugin")
        install(tmp_path / "made", tool, cache.home_of(known, tool), tool.release.stamp(tool.name))

    monkeypatch.setattr(supply, "provide", provide)
    assert not plugins.has_command_plugin(home)
    plugins.install_command(home)
    plugins.install_command(home)
    assert plugins.has_command_plugin(home)
    (once,) = asked(home)
    assert once.startswith("plugin install resource command 1.2.1 --file")


def test_where_it_cannot_be_downloaded_pulumi_is_asked_for_it(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def provide(names: list[str]) -> None:
        raise ToolMissing(f"{names[0]} v1.2.1 can only be downloaded")

    monkeypatch.setattr(supply, "provide", provide)
    monkeypatch.setenv("KUMULUS_TOOLS", "auto")
    with pytest.raises(ToolchainError, match=r"(?s)hostCommands and loadImages need:\n  failed all 5 attempts.*--file"):
        plugins.install_command(home)
    (home.parent.parent / "fetched").touch()
    plugins.install_command(home)
    assert asked(home) == ["plugin install resource command 1.2.1 --non-interactive"] * 2


def test_who_wants_tools_built_has_nobody_asked_for_it(home: Path) -> None:
    with pytest.raises(ToolMissing) as raised:
        plugins.install_command(home)
    assert str(raised.value) == (
        "pulumi-resource-command v1.2.1 can only be downloaded, and KUMULUS_TOOLS=build downloads nothing;"
        " hostCommands and loadImages need it"
        "\n  From a file: pulumi plugin install resource command 1.2.1 --file ARCHIVE"
    )
    assert not (home.parent.parent / "asked").exists()


def test_a_transfer_says_how_far_it_is(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(time, "monotonic", lambda: 110.0)
    assert transferred(31_000_000, 84_000_000, 100.0) == "31 of 84 MB (36%), 3.1 MB/s"
    assert transferred(31_000_000, None, 100.0) == "31 MB, 3.1 MB/s"
    assert transferred(31_000_000, 84_000_000, 100.0, before=30_000_000) == "31 of 84 MB (36%), 0.1 MB/s"
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    step = ToolLine("[1/2] etcd v3.6.8", begun=109.0)
    step.tick("31 of 84 MB")
    step.begun = 107.0
    step.tick("32 of 84 MB")
    step.end("downloaded 84 MB in 3 s")
    # What takes less than two seconds needs no words on the way.
    shown = capsys.readouterr().err.replace("\r\x1b[K", "|")
    assert shown == (
        "|[1/2] etcd v3.6.8 … |[1/2] etcd v3.6.8 … 32 of 84 MB|[1/2] etcd v3.6.8 … downloaded 84 MB in 3 s\n"
    )

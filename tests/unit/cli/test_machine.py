"""What is of Kumulus on a machine: clusters, files outside of projects; and the pages of the documentation."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from kumulus.cli import docs, ls
from kumulus.cli.main import main
from kumulus.host.version import REPOSITORY
from kumulus.runtimes.place import Place, owner
from kumulus.toolchain import cache

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A user who has something of everything."""
    for name, folder in (("XDG_CACHE_HOME", "cache"), ("XDG_STATE_HOME", "state"), ("PULUMI_HOME", "pulumi")):
        monkeypatch.setenv(name, str(tmp_path / folder))
    for file in ("cache/kumulus/toolchain/k/bin/etcd", "state/kumulus/machine", "pulumi/plugins/resource-kumulus-v0/p"):
        (tmp_path / file).parent.mkdir(parents=True)
        (tmp_path / file).write_text("x" * 2**20)
    (tmp_path / "pulumi" / "plugins" / "resource-random-v1").mkdir()
    monkeypatch.setattr(ls, "clusters", list)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Path]:
    """The directory of a cluster of which one program runs."""
    directory = tmp_path / "project" / ".kumulus" / "clusters" / "dev"
    directory.mkdir(parents=True)
    Place(directory).write_note({"owner": owner("dev", "urn", "/home/kim/fleet")})
    with subprocess.Popen([str(directory / "bin" / "etcd"), "600"], executable="/bin/sleep") as process:
        try:
            yield directory
        finally:
            process.kill()


def test_a_cluster_of_any_project_is_listed_with_its_stack_and_its_memory(
    cluster: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir("/")
    assert main(["ls", "--json"]) == 0
    (found,) = [each for each in json.loads(capsys.readouterr().out) if each["directory"] == str(cluster)]
    assert (found["cluster"], found["stack"], found["program"]) == ("dev", "dev", "/home/kim/fleet")
    assert (found["processes"], found["nodes"]) == (1, None)
    assert found["memoryBytes"] > 0
    assert main(["ls"]) == 0
    (line,) = [each for each in capsys.readouterr().out.splitlines() if str(cluster) in each]
    assert "dev of /home/kim/fleet" in line
    assert "no answer" in line


def test_a_cluster_of_the_project_that_does_not_run_is_listed_as_not_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("KUMULUS_HOME", str(tmp_path))
    (tmp_path / "clusters" / "old").mkdir(parents=True)
    assert main(["ls"]) == 0
    (line,) = [each for each in capsys.readouterr().out.splitlines() if each.startswith("old ")]
    assert "not up" in line


def test_what_is_left_is_listed_and_removed_and_nothing_else(machine: Path, capsys: pytest.CaptureFixture[str]) -> None:
    plugins = machine / "pulumi" / "plugins"
    for name in ("resource-kumulus-v0.lastused", "resource-kumulus-v0.lock", "resource-random-v1.lastused"):
        (plugins / name).touch()
    assert main(["uninstall", "--yes"]) == 0
    said = capsys.readouterr().out
    for each in ("cache/kumulus", "state/kumulus", "pulumi/plugins/resource-kumulus-v0"):
        assert f"1.0 MiB  {machine / each}\n" in said
        assert not (machine / each).exists()
    assert {each.name for each in plugins.iterdir()} == {"resource-random-v1", "resource-random-v1.lastused"}
    assert main(["uninstall"]) == 0
    assert "nothing of Kumulus is left" in capsys.readouterr().out


def test_what_plots_leave_in_a_home_is_removed_with_the_rest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("MPLCONFIGDIR", "XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_STATE_HOME", "PULUMI_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setattr(ls, "clusters", list)
    subprocess.run([sys.executable, "-c", "from kumulus.extras.lab.report import picture, plots"], check=True)
    assert [each.name for each in tmp_path.glob(".cache/kumulus/matplotlib/fontlist*")]
    assert main(["uninstall", "--yes"]) == 0
    assert [each for each in tmp_path.rglob("*") if each != tmp_path / ".cache"] == []


@pytest.mark.parametrize(("answer", "code"), [("n", 1), ("", 1), ("y", 0)])
def test_nothing_is_removed_without_a_yes(
    machine: Path, monkeypatch: pytest.MonkeyPatch, answer: str, code: int
) -> None:
    monkeypatch.setattr("sys.stdin.isatty", lambda: True)
    monkeypatch.setattr("builtins.input", lambda _: answer)
    assert main(["uninstall"]) == code
    assert (machine / "cache" / "kumulus").exists() == bool(code)


def test_nobody_to_ask_is_an_error(machine: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["uninstall"]) == 1
    assert "nobody can be asked whether to remove this\n  If that is meant: --yes" in capsys.readouterr().err
    assert (machine / "cache" / "kumulus").exists()


def test_nothing_is_removed_while_a_cluster_is_up(
    machine: Path, cluster: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.undo()
    monkeypatch.setenv("XDG_CACHE_HOME", str(machine / "cache"))
    assert main(["uninstall", "--yes"]) == 1
    assert f"dev ({cluster})" in capsys.readouterr().err
    assert (machine / "cache" / "kumulus").exists()


def test_nothing_is_removed_while_tools_are_being_got(machine: Path, capsys: pytest.CaptureFixture[str]) -> None:
    root = machine / "cache" / "kumulus" / "toolchain"
    with cache.exclusive(root / "lock", "getting the tools", print):
        assert main(["uninstall", "--yes"]) == 1
    assert f"process {os.getpid()} is getting the tools\n  End it first" in capsys.readouterr().err
    assert root.exists()
    assert main(["uninstall", "--yes"]) == 0
    assert not root.exists()


@pytest.mark.parametrize(("user", "code"), [(psutil.Process().username(), 1), ("somebody-else", 0)])
def test_a_cluster_of_another_user_keeps_nobody_from_uninstalling(
    machine: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, user: str, code: int
) -> None:
    monkeypatch.setattr(ls, "clusters", lambda: [ls.FoundCluster(tmp_path / "dev", "dev", "/p", user, 4, 2**20, 30)])
    assert main(["uninstall", "--yes"]) == code
    assert (machine / "state" / "kumulus").exists() == bool(code)


@pytest.mark.parametrize(("note", "code"), [({}, 1), ({"runtime": "existing"}, 0)])
def test_a_cluster_that_answers_without_processes_here_is_up_unless_it_outlives_its_stack(
    machine: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, note: dict[str, str], code: int
) -> None:
    directory = tmp_path / "kindly"
    directory.mkdir()
    (directory / "kumulus.json").write_text(json.dumps({"owner": "me", **note}))
    monkeypatch.setattr("kumulus.cli.ls.clusters", lambda: [ls.FoundCluster(directory, "dev", "/p", "", 0, 0, 4)])
    assert main(["uninstall", "--yes"]) == code
    assert (machine / "state" / "kumulus").exists() == bool(code)


def test_something_that_cannot_be_removed_is_named(
    machine: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def refused(place: Path) -> None:
        raise PermissionError(13, "Permission denied", str(place / "bin"))

    monkeypatch.setattr("kumulus.cli.uninstall.shutil.rmtree", refused)
    assert main(["uninstall", "--yes"]) == 1
    assert f"error: {machine / 'cache/kumulus/bin'} cannot be removed: Permission denied" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["faults", "docs/faults.md", "faults.md#kubelets"])
def test_a_page_is_printed_with_its_address(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["docs", name]) == 0
    page = (ROOT / "docs" / "faults.md").read_text()
    assert capsys.readouterr().out == f"{REPOSITORY}/blob/main/docs/faults.md\n\n{page}"


def test_pages_are_listed_and_a_wrong_name_is_corrected(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["docs"]) == 0
    listed = dict(line.split(None, 1) for line in capsys.readouterr().out.splitlines())
    assert (listed["faults"], listed["reference/stack-file"]) == ("Faults", "Every field of a stack file")
    assert "installation-configuration" not in listed
    assert main(["docs", "fautls"]) == 1
    assert "there is no page fautls; did you mean faults?" in capsys.readouterr().err


def test_every_page_that_a_text_of_a_command_names_is_there() -> None:
    named = subprocess.run(
        ["grep", "-rhoE", r"docs/[a-z/-]+\.md", str(ROOT / "src")], capture_output=True, text=True, check=True
    ).stdout.split()
    pages = docs._pages()
    there = {f"docs/{each}.md" for each in pages}
    there |= {f"docs/decisions/{each.name}" for each in ROOT.glob("docs/decisions/*")}
    assert sorted({*named} - there - {"docs/_index.md", "docs/installation-configuration.md"}) == []

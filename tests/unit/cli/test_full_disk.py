"""Whatever a command writes to a disk that is full: an error in words, and what was there before still is."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import IO

import pytest

from kumulus.cli.errors import os_message
from kumulus.cli.main import main
from kumulus.extras.lab.report.files import HISTORY, RunDirectory
from kumulus.extras.watch.history import document
from tests.support import disk
from tests.support.histories import drawn
from tests.support.reports import report
from tests.unit.extras.lab.test_traces import OPENB_NODES, OPENB_PODS
from tests.unit.toolchain.sample import ROOT

POD = "kind: Pod\nmetadata: {name: p}\nspec: {containers: [{name: c}]}\n"


def kumulus(*words: object, stdout: int | IO[str] = subprocess.PIPE) -> subprocess.CompletedProcess[str]:
    command: list[str | Path] = [sys.executable, ROOT / "kumulus", *map(str, words)]
    return subprocess.run(command, cwd=ROOT, stdout=stdout, stderr=subprocess.PIPE, text=True, check=False)


def told(done: subprocess.CompletedProcess[str]) -> None:
    assert done.returncode == 1, done
    assert "Traceback" not in done.stderr
    assert done.stderr.startswith("error: "), done.stderr
    assert "no space left on" in done.stderr.lower()
    assert "make room" in done.stderr.lower()
    assert "Exception ignored" not in done.stderr


@pytest.fixture
def full(tmp_path: Path) -> Iterator[Path]:
    """A disk on which two runs and a page have found their place, and nothing more can."""
    place = tmp_path / "disk"
    place.mkdir()
    with disk.small(place, 2):
        for each in (report(), report("20261122-150000-abc123")):
            directory = RunDirectory(place, "fill", each.metadata.run_id)
            directory.prepare({})
            directory.write(each)
            document.save(drawn(1, nodes=4, pods=8, steps=40), directory.path / HISTORY.format(1))
        (place / "page.html").write_text("the page of before")
        disk.fill(place)
        yield place


@pytest.mark.parametrize("words", ["experiment show latest --html", "experiment compare 20261121 20261122 --page"])
def test_a_page_that_has_no_room_is_told_and_the_one_of_before_is_kept(full: Path, words: str) -> None:
    page = full / "page.html"
    told(kumulus(*words.split(), page, "--results", full))
    assert page.read_text() == "the page of before"
    (full / "filling").unlink()
    assert kumulus(*words.split(), page, "--results", full).returncode == 0
    assert page.read_text() != "the page of before"


def test_a_trace_that_has_no_room_is_told_and_the_next_import_writes_it(full: Path, tmp_path: Path) -> None:
    (tmp_path / "nodes.csv").write_text(OPENB_NODES)
    head, *rows = OPENB_PODS.splitlines(keepends=True)
    (tmp_path / "pods.csv").write_text(head + rows[0] * 2_000)
    sources = ("trace", "import", "openb", tmp_path / "nodes.csv", tmp_path / "pods.csv")
    line = (*sources, "--stack", full / "stack.yaml", "--experiment", full / "e.yaml")
    told(kumulus(*line))
    (full / "filling").unlink()
    assert kumulus(*line).returncode == 0
    assert len((full / "e.tasks.csv").read_text().splitlines()) == 2_001


def test_an_output_that_has_no_room_is_told_once() -> None:
    with Path("/dev/full").open("w") as output:
        told(kumulus("plan", "-s", "quickstart", stdout=output))


@pytest.mark.parametrize("words", [("topology",), ("convert", "kemu.yaml"), ("env",), ("new", "fleet"), ("-h",)])
def test_a_current_directory_that_was_removed_is_told(words: tuple[str, ...], tmp_path: Path) -> None:
    remove = ["sh", "-c", 'cd "$1" && rmdir "$1" && shift && exec "$@"', "sh", str(tmp_path / "gone")]
    (tmp_path / "gone").mkdir()
    command = [*remove, sys.executable, str(ROOT / "kumulus"), *words]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    said = "error: the current directory was removed\n  Change to one that is there\n"
    assert (done.returncode, done.stderr) == (1, said)


def test_a_terminal_without_the_letters_of_a_tree_shows_the_rest() -> None:
    command = [sys.executable, str(ROOT / "kumulus"), "topology", "-s", "quickstart"]
    environment = {**os.environ, "PYTHONIOENCODING": "latin-1", "PYTHONUTF8": "0"}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (0, b"")
    assert b"zone us-central1-a: 10 nodes" in done.stdout


@pytest.mark.parametrize(
    ("error", "what"),
    [
        (OSError(30, "", "a/b"), "a/b: read-only file system\n  Run it where"),
        (NotADirectoryError(20, "", "/dev/null/x"), "/dev/null/x: not a directory\n  Remove the file"),
        (FileExistsError(17, "", "stacks"), "stacks: file exists\n  Remove the file"),
        (IsADirectoryError(21, "", "p"), "p: is a directory\n  Remove the directory"),
        (OSError(36, "", "xxx"), "xxx: file name too long\n  Name another"),
        (PermissionError(13, "", "p"), "p: permission denied\n  Run it as the user"),
    ],
)
def test_what_is_in_the_way_is_named_with_a_remedy(error: OSError, what: str) -> None:
    assert str(os_message(error)).startswith(what)


@pytest.mark.parametrize("error", [OSError(30, ""), FileNotFoundError(2, "", "x"), OSError(5, "", "x"), OSError("x")])
def test_any_other_error_is_ours(error: OSError) -> None:
    assert os_message(error) is None


def test_what_stops_a_clone_is_not_said_of_the_workload(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "Pulumi.yaml").write_text("name: fleet\nruntime: python\nstackConfigDir: stacks\n")
    (tmp_path / "stacks").touch()
    (tmp_path / "pod.yaml").write_text(POD)
    (tmp_path / "capture").mkdir()
    (tmp_path / "capture" / "stack.yaml").write_text("config: {kumulus:cluster: {}}\n")
    (tmp_path / "capture" / "workload.yaml").touch()
    assert main(["fit", "pod.yaml", "--on", "capture"]) == 1
    assert capsys.readouterr().err.startswith(
        f"error: {tmp_path / 'stacks' / 'Pulumi.capture.yaml'}: not a directory\n"
    )
    assert main(["fit", "none.yaml", "--on", "capture"]) == 1
    assert capsys.readouterr().err == "error: there is no file none.yaml; write the path of one that is there\n"

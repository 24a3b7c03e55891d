"""Commands where something is in the way: a directory that is gone, a file where none can be, an old terminal."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from kumulus.cli.errors import os_message
from kumulus.cli.main import main
from tests.unit.toolchain.sample import ROOT

POD = "kind: Pod\nmetadata: {name: p}\nspec: {containers: [{name: c}]}\n"


@pytest.mark.parametrize("words", [("topology",), ("convert", "kemu.yaml"), ("env",), ("new", "fleet"), ("-h",)])
def test_a_current_directory_that_was_removed_is_told(words: tuple[str, ...], tmp_path: Path) -> None:
    remove = ["sh", "-c", 'cd "$1" && rmdir "$1" && shift && exec "$@"', "sh", str(tmp_path / "gone")]
    (tmp_path / "gone").mkdir()
    command = [*remove, sys.executable, str(ROOT / "kumulus"), *words]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (
        1,
        "error: the current directory was removed\n  Change to one that is there\n",
    )


def test_a_terminal_without_the_letters_of_a_tree_shows_the_rest() -> None:
    command = [sys.executable, str(ROOT / "kumulus"), "topology", "-s", "quickstart"]
    environment = {**os.environ, "PYTHONIOENCODING": "latin-1", "PYTHONUTF8": "0"}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (0, b"")
    assert b"zone use1: 10 nodes" in done.stdout


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
    assert capsys.readouterr().err == "error: none.yaml: No such file or directory\n"

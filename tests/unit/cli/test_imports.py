"""What an import writes: over the files of an earlier one, and over no other."""

import json
from pathlib import Path

import pytest
import yaml

from kumulus.cli.main import main
from tests.unit.extras.capture.test_day import web

SALT = "encryptionsalt: v1:a=:v1:b=:c==\n"
TRACE = ("trace", "import", "csv", "jobs.csv", "--machines", "count=2,gpus=8")
REPLAY = ("replay", "import", "audit.log")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project with a trace and an audit log in it, which the test is in."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("PWD", raising=False)
    (tmp_path / "Pulumi.yaml").write_text("name: fleet\nruntime: python\n")
    (tmp_path / "jobs.csv").write_text("name,arrival,duration,gpus\na,0,10,1\nb,1,10,2\n")
    (tmp_path / "audit.log").write_text(json.dumps(web()) + "\n")
    return tmp_path


@pytest.mark.parametrize(
    ("words", "file"),
    [
        ((*TRACE, "--stack", "dev", "--experiment", "e.yaml"), "Pulumi.dev.yaml"),
        ((*TRACE, "--stack", "s.yaml", "--experiment", "e.yaml"), "s.yaml"),
        ((*TRACE, "--stack", "s.yaml", "--experiment", "e.yaml"), "e.yaml"),
        ((*TRACE, "--stack", "s.yaml", "--experiment", "e.yaml"), "e.tasks.csv"),
        ((*TRACE, "--stack", "s.yaml", "--experiment", "e.yaml"), "e.bad-rows.csv"),
        ((*REPLAY, "--experiment", "e.yaml"), "e.yaml"),
        ((*REPLAY, "--experiment", "e.yaml"), "e.recording.jsonl"),
    ],
)
def test_an_import_refuses_a_file_of_the_users(
    folder: Path, capsys: pytest.CaptureFixture[str], words: tuple[str, ...], file: str
) -> None:
    (folder / file).write_text("# mine\nconfig: {}\n")
    before = {path.name for path in folder.iterdir()}
    assert main(words) == 1
    said = capsys.readouterr().err
    assert said.startswith("error: ")
    assert said.endswith(f"{file} is there already, and was not written by an import\n  Name another, or delete it\n")
    assert (folder / file).read_text() == "# mine\nconfig: {}\n"
    assert {path.name for path in folder.iterdir()} == before


@pytest.mark.parametrize(
    ("words", "stack"),
    [
        ((*TRACE, "--stack", "dev", "--experiment", "e.yaml"), "Pulumi.dev.yaml"),
        ((*REPLAY, "--experiment", "e.yaml"), ""),
    ],
    ids=["trace", "replay"],
)
def test_an_import_is_repeated(folder: Path, words: tuple[str, ...], stack: str) -> None:
    assert main(words) == 0
    made = {path: path.read_text() for path in folder.iterdir()}
    # A killed import leaves files of which not even the first line is whole.
    for path in made:
        if path.name.startswith("e."):
            path.write_text(made[path][:9])
    assert main(words) == 0
    assert {path: path.read_text() for path in folder.iterdir()} == made
    if stack:
        (folder / stack).write_text(made[folder / stack] + SALT)
        assert main(words) == 0
        assert yaml.safe_load((folder / stack).read_text())["encryptionsalt"] == SALT.split()[1]

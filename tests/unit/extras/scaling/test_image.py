"""An archive of an image is written whole, under the name that the stack file has, or not at all."""

import json
import tarfile
from pathlib import Path

import pytest

from kumulus.cli import main
from kumulus.extras.scaling.commands import image
from kumulus.toolchain import ToolMissing


@pytest.fixture(autouse=True)
def built(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    program = tmp_path / "karpenter"
    program.write_text("the program")
    monkeypatch.setattr(image, "find", lambda name: {"karpenter": program}[name])
    monkeypatch.chdir(tmp_path)
    return program


def test_the_archive_has_the_program_under_its_name(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main.main(["image", "karpenter", "--name", "registry.example/karpenter:1", "--to", "k.tar"]) == 0
    with tarfile.open(tmp_path / "k.tar") as archive:
        [entry] = json.load(archive.extractfile("manifest.json") or pytest.fail("no manifest"))
        assert entry["RepoTags"] == ["registry.example/karpenter:1"]
        with tarfile.open(fileobj=archive.extractfile(entry["Layers"][0])) as layer:
            content = layer.extractfile("usr/local/bin/karpenter")
            assert content is not None
            assert content.read() == b"the program"
    assert capsys.readouterr().out == "k.tar: registry.example/karpenter:1, 0 MiB\n"
    assert {each.name for each in tmp_path.iterdir()} == {"karpenter", "k.tar"}


def test_what_cannot_be_written_leaves_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "k.tar").mkdir()
    assert main.main(["image", "karpenter", "--to", "k.tar"]) == 1
    assert "k.tar cannot be written" in capsys.readouterr().err
    assert {each.name for each in tmp_path.iterdir()} == {"karpenter", "k.tar"}


def test_a_program_that_is_not_built_is_named(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def missing(name: str) -> Path:
        raise ToolMissing(name)

    monkeypatch.setattr(image, "find", missing)
    assert main.main(["image", "karpenter"]) == 1
    assert "karpenter" in capsys.readouterr().err

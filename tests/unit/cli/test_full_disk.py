"""Whatever a command writes to a disk that is full: an error in words, and what was there before still is."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import IO

import pytest

from kumulus.extras.lab.report.files import HISTORY, RunDirectory
from kumulus.extras.watch.history import document
from tests.support import disk
from tests.support.histories import drawn
from tests.support.reports import report
from tests.unit.extras.lab.test_traces import OPENB_NODES, OPENB_PODS
from tests.unit.toolchain.sample import ROOT


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


@pytest.mark.parametrize(
    "words",
    [
        ("experiment", "show", "latest", "--html"),
        ("experiment", "compare", "20261121", "20261122", "--page"),
    ],
    ids=" ".join,
)
def test_a_page_that_has_no_room_is_told_and_the_one_of_before_is_kept(full: Path, words: tuple[str, ...]) -> None:
    told(kumulus(*words, full / "page.html", "--results", full))
    assert (full / "page.html").read_text() == "the page of before"
    (full / "filling").unlink()
    assert kumulus(*words, full / "page.html", "--results", full).returncode == 0
    assert (full / "page.html").read_text() != "the page of before"


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

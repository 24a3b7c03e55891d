"""Sweeps: which results count, and of what a run is made."""

from __future__ import annotations

from argparse import Namespace
from dataclasses import replace
from pathlib import Path

import pytest

from kumulus.cli import experiment_sweep
from kumulus.lab.sweep import page
from kumulus.lab.sweep.store import Result, Store
from tests.support.sweeps import read, starts, swept


def cut_off(result: Result) -> Result:
    return replace(result, status="partial", error="the server does not answer")


def test_a_run_that_was_cut_off_is_in_no_mean_and_is_named(tmp_path: Path) -> None:
    sweep = read(tmp_path, measures=["pods.scheduled"])
    whole, other = (
        Result(f"{seed}", {"policy": "FGD", "seed": seed}, seed, "success", [{"pods.scheduled": scheduled}])
        for seed, scheduled in ((1, 1000.0), (2, 3.0))
    )
    found = page.tables(sweep, [whole, cut_off(other)])
    assert [(row.mean, list(row.values.values())) for row in found["pods.scheduled"]] == [(1000, [1000])]
    page.write(sweep, found, [whole, cut_off(other)], 4, tmp_path / "p.html")
    text = (tmp_path / "p.html").read_text()
    assert "2 of 4 runs, without a cluster; 1 not complete" in text
    assert "policy FGD, seed 2: the server does not answer" in text


def test_a_run_that_was_cut_off_is_tried_again(tmp_path: Path) -> None:
    first = swept(tmp_path)
    Store(tmp_path / "results").put(cut_off(first.results[1]))
    again = swept(tmp_path)
    assert (again.before, len(starts(tmp_path / "results"))) == (3, 5)
    assert [(result.status, result.runs) for result in again.results] == [
        (result.status, result.runs) for result in first.results
    ]


def test_a_sweep_with_a_run_that_was_cut_off_exits_with_1(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    first = swept(tmp_path)
    broken = replace(first, results=[*first.results[1:], cut_off(first.results[0])])
    monkeypatch.setattr("kumulus.lab.sweep.sweep.run", lambda *_: broken)
    args = Namespace(file=tmp_path / "sweep.yaml", jobs=1, quiet=True, engine="local", results=tmp_path / "results")
    assert experiment_sweep.run(args) == 1
    assert "1 run failed, policy FGD, seed 1 first: the server does not answer" in capsys.readouterr().err

"""Sweeps: which results count, and of what a run is made."""

from argparse import Namespace
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from kumulus.extras.journal.errors import NotWritten
from kumulus.extras.lab.commands import actions
from kumulus.extras.lab.errors import LabError
from kumulus.extras.lab.file.load import LoadedExperiment
from kumulus.extras.lab.run.bench import RunOptions
from kumulus.extras.lab.sweep import cells, engines, live, page
from kumulus.extras.lab.sweep.cells import Cell, cells_of
from kumulus.extras.lab.sweep.file import load as load_sweep
from kumulus.extras.lab.sweep.store import CellResult, Store
from kumulus.kube import Connection, safe_yaml
from kumulus.model.errors import SpecError
from kumulus.nodes.catalog.prices import with_own
from tests.support.sweeps import read, starts, swept


def cut_off(result: CellResult) -> CellResult:
    return replace(result, status="partial", error="the server does not answer")


def test_a_run_that_was_cut_off_is_in_no_mean_and_is_named(tmp_path: Path) -> None:
    sweep = read(tmp_path, measures=["pods.scheduled"])
    whole, other = (
        CellResult(f"{seed}", {"policy": "FGD", "seed": seed}, seed, "success", [{"pods.scheduled": scheduled}])
        for seed, scheduled in ((1, 1000.0), (2, 3.0))
    )
    found = page.tables(sweep, [whole, cut_off(other)])
    assert [(row.mean, list(row.values.values())) for row in found["pods.scheduled"]] == [(1000, [1000])]
    page.write(sweep, found, [whole, cut_off(other)], 4, tmp_path / "p.html")
    text = (tmp_path / "p.html").read_text()
    assert "2 of 4 runs, without a cluster; 1 not complete" in text
    assert "policy FGD, seed 2: the server does not answer" in text


def test_without_a_complete_run_of_the_baseline_no_row_claims_to_be_it(tmp_path: Path) -> None:
    sweep = read(tmp_path, measures=["pods.scheduled"])
    base, other = (
        CellResult(policy, {"policy": policy, "seed": 1}, 1, "success", [{"pods.scheduled": 3.0}])
        for policy in ("FGD", "BestFit")
    )
    found = page.tables(sweep, [cut_off(base), other])
    cut, row = found["pods.scheduled"]
    assert (cut.name, len(cut.values), cut.baseline) == ("policy FGD", 0, True)
    assert (row.name, row.against, row.baseline) == ("policy BestFit", None, False)
    said = "incomplete: no seed of it and of the baseline has this measure"
    assert list(page.lines(sweep, found))[2].endswith(f"1 seed  {said}")
    page.write(sweep, found, [cut_off(base), other], 4, tmp_path / "p.html")
    assert said in (tmp_path / "p.html").read_text()
    rows = page.tables(sweep, [base, other])["pods.scheduled"]
    assert [(row.name, row.baseline) for row in rows] == [("policy FGD", True), ("policy BestFit", False)]


def test_a_run_that_was_cut_off_is_tried_again(tmp_path: Path) -> None:
    first = swept(tmp_path)
    Store(tmp_path / "results").put(cut_off(first.results[1]))
    again = swept(tmp_path)
    assert (again.before, len(starts(tmp_path / "results"))) == (3, 5)
    assert [(result.status, result.runs) for result in again.results] == [
        (result.status, result.runs) for result in first.results
    ]


def test_a_sweep_with_a_run_that_was_cut_off_or_missed_a_threshold_exits_with_1_and_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    first = swept(tmp_path)
    broken = replace(first, results=[*first.results[1:], cut_off(first.results[0])])
    monkeypatch.setattr("kumulus.extras.lab.sweep.sweep.run", lambda *_: broken)
    args = Namespace(file=tmp_path / "sweep.yaml", jobs=1, quiet=True, engine="local", results=tmp_path / "results")
    assert actions.sweep(args) == 1
    assert "1 run failed, policy FGD, seed 1 first: the server does not answer" in capsys.readouterr().err
    kept = [replace(result, status="success") for result in first.results]
    broken = replace(first, results=[*kept[1:], replace(kept[0], status="failure")])
    assert actions.sweep(args) == 1
    assert "1 run of 4 missed a threshold, policy FGD, seed 1 first\n" in capsys.readouterr().err


PRICES = 'regions: {"*": {onDemand: {g: %s}}}'


def ids(directory: Path) -> set[str]:
    return {cell.id for cell in cells_of(load_sweep(directory / "sweep.yaml"), directory)}


def with_files(directory: Path) -> None:
    """A live sweep whose experiment names a program, and whose stack names files of prices and of nodes."""
    scheduler = {"name": "kube-scheduler", "binary": "./mine"}
    read(
        directory, experiment={"scheduler": scheduler, "workloads": [{"name": "w"}]}, live=True, matrix={"seed": "1-2"}
    )
    stack = yaml.safe_load((directory / "s.yaml").read_text())
    stack["config"] |= {"kumulus:prices": "prices.yaml", "kumulus:nodes": "nodes.json"}
    (directory / "s.yaml").write_text(yaml.safe_dump(stack))
    (directory / "mine").write_bytes(b"\xff\x00")
    (directory / "prices.yaml").write_text(PRICES % 1)
    (directory / "nodes.json").write_text("{}")


@pytest.mark.parametrize(
    ("file", "content"), [("mine", b"\xff\x01"), ("prices.yaml", (PRICES % 9).encode()), ("nodes.json", b"{ }")]
)
def test_a_cell_is_another_when_its_scheduler_s_program_or_a_file_of_its_stack_is(
    tmp_path: Path, file: str, content: bytes
) -> None:
    with_files(tmp_path)
    before = ids(tmp_path)
    assert ids(tmp_path) == before
    (tmp_path / file).write_bytes(content)
    assert not ids(tmp_path) & before
    (tmp_path / file).unlink()
    with pytest.raises(SpecError, match=file):
        ids(tmp_path)


def test_a_trace_may_be_as_large_as_in_an_experiment(tmp_path: Path) -> None:
    read(tmp_path)
    trace = tmp_path / "tasks.csv"
    trace.write_text(trace.read_text() + "99,1,1Gi,1,1000\n" * (5 << 16))
    assert trace.stat().st_size > safe_yaml.MOST_BYTES
    before = ids(tmp_path)
    trace.write_text(trace.read_text() + "99,1,1Gi,1,1000\n")
    assert not ids(tmp_path) & before


def test_a_cell_is_another_with_another_version_of_kumulus(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    read(tmp_path)
    before = ids(tmp_path)
    monkeypatch.setattr(cells, "VERSION", "0.2.0")
    assert not ids(tmp_path) & before


POLICY = """
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parent / "parts"))
print("a policy may print")
import weights

WEIGHTS = (pathlib.Path(__file__).parent / "weights.txt").read_text()


def score(pod, nodes, study):
    return weights.of(nodes)
"""


def with_policies(directory: Path) -> None:
    """A sweep of two policies of the user's, which import a module of theirs, and read data."""
    (directory / "parts").mkdir()
    (directory / "parts" / "weights.py").write_text("import nothing_of_theirs_matters as _\n\ndef of(nodes): return 1")
    (directory / "parts" / "nothing_of_theirs_matters.py").write_text("")
    (directory / "weights.txt").write_text("1")
    (directory / "other.txt").write_text("1")
    for name in ("one.py", "two.py"):
        (directory / name).write_text(POLICY)
    read(directory, matrix={"policy": ["one.py", "two.py", "FGD"], "seed": [1]})


def by_policy(directory: Path) -> dict[str, str]:
    return {cell.values["policy"]: cell.id for cell in cells_of(load_sweep(directory / "sweep.yaml"), directory)}


@pytest.mark.parametrize("file", ["parts/weights.py", "parts/nothing_of_theirs_matters.py", "weights.txt"])
def test_a_cell_is_another_when_a_module_or_data_of_its_policy_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, file: str
) -> None:
    # A module that is compiled is not opened any more.
    monkeypatch.delenv("PYTHONDONTWRITEBYTECODE", raising=False)
    with_policies(tmp_path)
    before = by_policy(tmp_path)
    assert by_policy(tmp_path) == before
    (tmp_path / "other.txt").write_text("2")
    assert by_policy(tmp_path) == before, "it reads no such file"
    (tmp_path / file).write_text((tmp_path / file).read_text() + " ")
    now = by_policy(tmp_path)
    assert {policy for policy in before if before[policy] == now[policy]} == {"FGD"}


@pytest.mark.parametrize("content", ["import sys; sys.exit(0)", "import sys; sys.exit(3)", "1 / 0", "def"])
def test_a_policy_that_cannot_be_imported_is_a_cell_all_the_same(tmp_path: Path, content: str) -> None:
    with_policies(tmp_path)
    (tmp_path / "one.py").write_text(content)
    assert len(set(by_policy(tmp_path).values())) == 3


@pytest.fixture
def cell(tmp_path: Path) -> Cell:
    """One on a cluster, with files."""
    with_files(tmp_path)
    return cells_of(load_sweep(tmp_path / "sweep.yaml"), tmp_path)[0]


def runs_are(begin: Callable[..., None], monkeypatch: pytest.MonkeyPatch) -> None:
    """Let runs begin in this way, on clusters that nobody makes."""
    monkeypatch.setattr("kumulus.extras.lab.running.Run", begin)
    monkeypatch.setattr(live, "_command", lambda *_: None)
    connection = Connection("http://127.0.0.1:1", "test")
    monkeypatch.setattr("kumulus.extras.lab.running.load_kubeconfig", lambda _: connection)


def test_a_cell_on_a_cluster_has_the_files_and_the_prices_of_its_stack(
    cell: Cell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found: list[RunOptions] = []

    class Begun(Exception):
        pass

    def begin(client: object, loaded: LoadedExperiment, options: RunOptions) -> None:
        assert loaded.inputs["prices.yaml"] == PRICES % 1
        found.append(options)
        raise Begun

    runs_are(begin, monkeypatch)
    store = Store(tmp_path / "results")
    with pytest.raises(Begun):
        live.run(cell, engines.loaded(cell), store, ())
    assert found[0].prices == with_own(tmp_path / "prices.yaml")
    project = store.directory / "clusters" / cell.id
    config = yaml.safe_load((project / f"Pulumi.sweep-{cell.id}.yaml").read_text())["config"]
    assert config["kumulus:prices"] == str(tmp_path / "prices.yaml")
    assert config["kumulus:nodes"] == str(tmp_path / "nodes.json")


def test_a_cluster_that_is_not_taken_down_is_named_and_left_to_the_next_sweep(
    cell: Cell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def command(_: object, action: str, *_more: object) -> None:
        raise LabError(f"{action} failed")

    monkeypatch.setattr(live, "_command", command)
    store = Store(tmp_path / "results")
    store.prepare()
    result = live.run(cell, engines.loaded(cell), store, ())
    assert result.error == "up failed; its cluster is still there: down failed"
    kept = store.get(cell.id)
    assert kept is not None
    assert kept.error == "up failed"
    assert live.leftovers(store) == [store.directory / "clusters" / cell.id]


def test_a_run_whose_journal_cannot_be_written_is_its_cells_result(
    cell: Cell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def begin(*_: object) -> None:
        raise NotWritten("the journal cannot be written")

    runs_are(begin, monkeypatch)
    store = Store(tmp_path / "results")
    store.prepare()
    result = live.run(cell, engines.loaded(cell), store, ())
    assert (result.complete, result.error) == (False, "the journal cannot be written")
    assert store.get(cell.id) == result
    assert not (store.directory / "clusters" / cell.id).exists(), "its cluster is taken down all the same"

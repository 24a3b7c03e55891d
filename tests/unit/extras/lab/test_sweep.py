"""Sweeps: what a file may say, which cells it has, what is called a difference, and that nothing is run twice."""

import csv
import json
import os
import random
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from kumulus.extras.lab.errors import LabError
from kumulus.extras.lab.sweep import live, page, sweep
from kumulus.extras.lab.sweep.cells import cells_of
from kumulus.extras.lab.sweep.engines import CellEngine, engine
from kumulus.extras.lab.sweep.store import CellResult, Store
from kumulus.model.errors import SpecError
from tests.support.sweeps import read, starts, swept


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"matrix": {}}, "matrix"),
        ({"matrix": {"seed": "all"}}, "write 42-51"),
        ({"matrix": {"policy": "FGD"}}, "write a list with at least one value"),
        ({"matrix": {"seeds": "1-3"}}, "matrix.seeds: is not a known key; write seed$"),
        ({"matrix": {"workload.tasks.kind": ["Pod"]}}, "workload is not a known key; write workloads"),
        ({"measures": ["policy.alocated"]}, "write policy.allocated"),
        ({"matrix": {"seed": [1, "two", 3]}}, r'matrix.seed\[1\]: is "two"; write a whole number$'),
        ({"baseline": {"policy": "FDG"}}, r'baseline.policy: "FDG" is not in the matrix; write FGD$'),
        ({"baseline": {"polic": "FGD"}}, r"baseline.polic: is no field of the matrix; write policy$"),
        ({"baseline": {"seed": 1}}, "is no field of the matrix; write one of policy"),
        (
            {
                "matrix": {
                    "settle": [{"name": "a", "value": "1s"}, {"name": "b", "value": "2s"}, {"name": "a", "value": "3s"}]
                }
            },
            r"matrix.settle\[2\]: is called a, as another is; write {name: …, value: …} with a name of its own",
        ),
        ({"matrix": {"policy": [1, "1"]}}, r"matrix.policy\[1\]: is called 1, as another is"),
        ({"matrix": {"seed": "0-99999", "policy": ["FGD", "BestFit"]}}, "more than 100,000"),
    ],
)
def test_a_mistake_in_a_sweep_file_is_reported_with_its_place(tmp_path: Path, fields: Any, said: str) -> None:
    with pytest.raises(SpecError, match=said):
        read(tmp_path, **fields)


def test_every_combination_is_a_cell_of_its_own(tmp_path: Path) -> None:
    sweep = read(tmp_path, matrix={"policy": ["FGD", "BestFit"], "seed": "3-5"})
    cells = cells_of(sweep, tmp_path)
    assert len({cell.id for cell in cells}) == 6
    assert [(cell.values["policy"], cell.seed) for cell in cells][:4] == [
        ("FGD", 3), ("FGD", 4), ("FGD", 5), ("BestFit", 3),
    ]  # fmt: skip
    assert [cell.id for cell in cells_of(sweep, tmp_path)] == [cell.id for cell in cells]


@pytest.mark.parametrize(
    ("experiment", "matrix", "said"),
    [
        (
            None,
            {"scheduler": ["volcano"]},
            "matrix.scheduler: has no effect without a cluster; leave it out, or write live",
        ),
        ({"workloads": [{"name": "w"}]}, {"seed": [1]}, "policy: is missing, .*; write policy: FGD, or live: true"),
        (
            None,
            {"stackFile": ["s.yaml", "t.yaml"]},
            "matrix.stackFile: has no effect: each run has the machines of s.yaml",
        ),
        (None, {"workloads.task.kind": ["Pod"]}, "write tasks"),
        (None, {"name.first": ["Pod"]}, "has no fields"),
        (None, {"policyy": ["Pod"]}, "policyy"),
    ],
)
def test_what_cannot_be_run_is_said_before_anything_is(
    tmp_path: Path, experiment: dict[str, Any] | None, matrix: dict[str, Any], said: str
) -> None:
    with pytest.raises(SpecError, match=said):
        cells_of(read(tmp_path, experiment=experiment, matrix=matrix), tmp_path)


@pytest.mark.parametrize(
    ("axis", "values", "said"),
    [
        ("stack.nodeGroups.t4.replicas", [20], "is not a known key; write stack.nodeGroups.t4.placement.0.replicas"),
        ("stack.nodeGroups.t4.placement.0.replica", [20], "is not a known key; write replicas"),
        ("stack.nodeGroups.t4.placement.0.replicas", [20, -1], "is -1, less than 0; write a number"),
        ("stack.nodegroups.t4.replicas", [20], "nodegroups is not a known key; write nodeGroups"),
        ("stack.kwok.heartbeatFacto", [3], "is not a known key; write heartbeatFactor"),
        ("stack.nodeGroups.h.placement", [1], '"h" is none of the 1 items there; write t4'),
    ],
)
def test_a_path_into_the_stack_is_checked_beforehand_and_reported_in_the_sweep_s_file(
    tmp_path: Path, axis: str, values: list[int], said: str
) -> None:
    with pytest.raises(SpecError) as raised:
        cells_of(read(tmp_path, matrix={axis: values}), tmp_path)
    assert raised.value.source == str(tmp_path / "sweep.yaml")
    assert str(raised.value).splitlines()[1].startswith(f"  matrix.{axis}: {said}")


def test_a_mistake_in_the_stack_s_own_file_is_reported_there(tmp_path: Path) -> None:
    file = read(tmp_path, matrix={"stack.nodeGroups.t4.placement.0.replicas": [9]})
    (tmp_path / "s.yaml").write_text((tmp_path / "s.yaml").read_text().replace("capacity", "capacty"))
    with pytest.raises(SpecError, match="capacty: is not a known key; write capacity") as raised:
        cells_of(file, tmp_path)
    assert raised.value.source == "s.yaml with stack.nodeGroups.t4.placement.0.replicas 9"


def test_a_value_of_many_words_is_called_by_its_name(tmp_path: Path) -> None:
    soon, late = ({"nodePools": [{"name": "p", "spec": {"weight": weight}}]} for weight in (1, 2))
    named = [{"name": "soon", "value": soon}, {"name": "late", "value": late}]
    cells = cells_of(read(tmp_path, live=True, matrix={"autoscaler": named}, baseline={"autoscaler": "late"}), tmp_path)
    assert [cell.values for cell in cells] == [{"autoscaler": "soon"}, {"autoscaler": "late"}]
    assert [cell.raw["autoscaler"] for cell in cells] == [soon, late]
    with pytest.raises(SpecError, match="is not in the matrix"):
        read(tmp_path, matrix={"autoscaler": named}, baseline={"autoscaler": "never"})


def test_the_first_of_named_values_is_what_others_are_compared_with(tmp_path: Path) -> None:
    named = [{"name": name, "value": {"nodePools": [{"name": "p"}]}} for name in ("a", "b")]
    sweep = read(tmp_path, matrix={"autoscaler": named, "seed": "1-2"}, measures=["cost.total"])
    taken = [
        CellResult(f"{name}{seed}", {"autoscaler": name, "seed": seed}, seed, "success", [{"cost.total": cost}])
        for name, cost in (("b", 2.0), ("a", 1.0))
        for seed in (1, 2)
    ]
    rows = page.tables(sweep, taken)["cost.total"]
    assert [(row.name, row.against is None) for row in rows] == [("autoscaler a", True), ("autoscaler b", False)]


def test_a_path_leads_into_the_experiment_and_into_the_stack(tmp_path: Path) -> None:
    matrix = {
        "workloads.tasks.arrival.trace.inflate": [1.2],
        "scheduler": ["kube-scheduler"],
        "stack.nodeGroups.t4.placement.0.replicas": [9],
        "stack.kwok.heartbeatFactor": [3],
    }
    (cell,) = cells_of(read(tmp_path, live=True, matrix=matrix), tmp_path)
    assert cell.raw["workloads"][0]["arrival"]["trace"]["inflate"] == 1.2
    assert cell.raw["scheduler"] == {"name": "kube-scheduler"}
    cluster = cell.stack["kumulus:cluster"]
    assert cluster["nodeGroups"][0]["placement"][0]["replicas"] == 9
    assert cluster["kwok"] == {"heartbeatFactor": 3}


@pytest.mark.parametrize(
    ("workloads", "said"),
    [
        ([{"name": "w", "arrival": {"trace": "tasks.csv"}}], r"workloads\[0\].arrival.trace: is \"tasks.csv\""),
        ([{"name": "w", "arrival": "tasks.csv"}], r"workloads\[0\].arrival: is \"tasks.csv\""),
        (["w"], r"workloads\[0\]: is \"w\""),
        ({"w": {"jobs": 1}}, "workloads: is"),
        (5, "workloads: is 5"),
    ],
)
def test_an_experiment_with_mistakes_is_refused_whatever_varies(tmp_path: Path, workloads: Any, said: str) -> None:
    experiment = {"policy": "FGD", "workloads": workloads}
    with pytest.raises(SpecError, match=said):
        cells_of(read(tmp_path, experiment=experiment, matrix={"trace": ["tasks.csv"]}), tmp_path)


def test_keys_of_a_stack_need_not_be_texts(tmp_path: Path) -> None:
    addon = {"name": "a", "chart": "oci://example.com/a", "version": "1.0.0", "valuesObject": {1: "a", "b": "c"}}
    (cell,) = cells_of(read(tmp_path, matrix={"stack.clusterAddons": [[addon]]}), tmp_path)
    assert cell.stack["kumulus:cluster"]["clusterAddons"] == [addon]
    with pytest.raises(SpecError, match="has the key 1, which is no text"):
        cells_of(read(tmp_path, matrix={"stack.nodeGroups.t4.nodeTemplate.metadata": [{"labels": {1: "a"}}]}), tmp_path)


def test_a_cell_is_another_when_a_file_that_it_names_is_another(tmp_path: Path) -> None:
    sweep = read(tmp_path)
    before = [cell.id for cell in cells_of(sweep, tmp_path)]
    trace = tmp_path / "tasks.csv"
    trace.write_text(trace.read_text() + "99,1,1Gi,1,1000\n")
    assert not set(before) & {cell.id for cell in cells_of(sweep, tmp_path)}


def test_a_sweep_runs_each_cell_once_and_then_none(tmp_path: Path) -> None:
    first = swept(tmp_path)
    assert (first.cells, first.before, len(starts(tmp_path / "results"))) == (4, 0, 4)
    said: list[str] = []
    again = swept(tmp_path, said)
    assert (again.before, again.results) == (4, first.results)
    assert said == ["4 of 4 runs are there already"]
    # More seeds: only theirs are run.
    more = swept(tmp_path, matrix={"policy": ["FGD", "BestFit"], "seed": "1-3"})
    assert (more.cells, more.before, len(starts(tmp_path / "results"))) == (6, 4, 6)
    assert len(set(starts(tmp_path / "results"))) == 6


def test_one_that_comes_to_nothing_is_said_and_tried_again(tmp_path: Path) -> None:
    said: list[str] = []
    done = swept(tmp_path, said, matrix={"policy": ["FGD", "Fgd"], "seed": [1]})
    assert [bool(result.runs) for result in done.results] == [True, False]
    assert "write FGD" in done.results[1].error
    assert "Not complete" in (tmp_path / "results" / page.NAME).read_text()
    swept(tmp_path, matrix={"policy": ["FGD", "Fgd"], "seed": [1]})
    assert len(starts(tmp_path / "results")) == 3


def test_only_one_sweep_writes_to_a_directory(tmp_path: Path) -> None:
    store = Store(tmp_path)
    store.prepare()
    with store.alone(), pytest.raises(LabError, match="another sweep writes"), Store(tmp_path).alone():
        pass


def test_an_engine_is_one_of_three() -> None:
    assert engine("local") == CellEngine()
    assert engine("dask://10.0.0.1:8786") == CellEngine("dask", "10.0.0.1:8786")
    assert engine("ray://10.0.0.1:10001").elsewhere
    with pytest.raises(LabError, match="Write local, dask"):
        engine("slurm://x")


@pytest.mark.parametrize("scheme", ["dask", "ray"])
def test_no_cluster_is_started_for_a_sweep_on_which_every_user_of_the_machine_could_run_code(scheme: str) -> None:
    with pytest.raises(LabError, match=f"Write {scheme}://HOST:PORT. For processes of this machine"):
        engine(f"{scheme}://")


def results(*values: float, policy: str) -> list[CellResult]:
    runs = [{"policy.allocated": value} for value in values]
    return [
        CellResult(
            f"{policy}{n}", {"policy": policy, "seed": n}, n, "success", [run], {"allocated_percent": {"90": 89.5}}
        )
        for n, run in enumerate(runs)
    ]


def test_the_page_says_what_differs_and_what_does_not(tmp_path: Path) -> None:
    sweep = read(tmp_path, measures=["policy.allocated"], baseline={"policy": "BestFit"}, description="<b>")
    noise = random.Random(9)
    base = [0.92 + noise.gauss(0, 0.002) for _ in range(8)]
    found = results(*(value + 0.03 for value in base), policy="FGD") + results(*base, policy="BestFit")
    rows = page.tables(sweep, found)["policy.allocated"]
    assert [(row.name, row.against and row.against.verdict) for row in rows] == [
        ("policy BestFit", None),
        ("policy FGD", "higher"),
    ]
    page.write(sweep, {"policy.allocated": rows}, found, 16, tmp_path / "p.html")
    text = (tmp_path / "p.html").read_text()
    assert "&lt;b&gt;" in text
    assert "policy.allocated, %</text>" in text, "as in the table above it"
    assert "16 of 16 runs" in text
    assert any(
        "8 seeds  +3.00 points (+3.00 points … +3.00 points): higher" in line
        for line in page.lines(sweep, {"policy.allocated": rows})
    )


def test_the_table_has_a_row_for_each_measure_and_point(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "pyarrow", None)
    path = sweep.write(results(0.9, policy="FGD"), ["policy", "seed"], tmp_path)
    assert path.name == "results.csv"
    with path.open() as file:
        rows = list(csv.DictReader(file))
    assert [(row["policy"], row["measure"], row["arrived"], row["value"]) for row in rows] == [
        ("FGD", "policy.allocated", "", "0.9"),
        ("FGD", "allocated_percent", "90", "89.5"),
    ]


def test_the_table_is_parquet_where_that_can_be_written(tmp_path: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet", reason="pyarrow is in the extra `sweep`")
    table = parquet.read_table(sweep.write(results(0.9, 0.8, policy="FGD"), ["policy", "seed"], tmp_path))
    assert table.num_rows == 4
    assert table.column("value").to_pylist() == [0.9, 89.5, 0.8, 89.5]
    assert table.column("arrived").to_pylist() == [None, 90, None, 90]
    assert str(table.schema.field("seed").type) == "int64"


def test_as_many_clusters_are_made_at_once_as_fit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cells = cells_of(read(tmp_path, matrix={"seed": [1, 2]}), tmp_path)
    monkeypatch.setattr("kumulus.extras.lab.sweep.live.psutil.cpu_count", lambda: 16)
    monkeypatch.setattr("kumulus.extras.lab.sweep.live.memory_bytes", lambda: 64_000_000_000)
    assert live.at_once(cells, 3) == 3
    many = live.at_once(cells, 0)
    assert 3 < many <= 16
    monkeypatch.setattr("kumulus.extras.lab.sweep.live.memory_bytes", lambda: 1_500_000_000)
    assert live.at_once(cells, 0) < many
    monkeypatch.setattr("kumulus.extras.lab.sweep.live.memory_bytes", lambda: 1_000_000)
    with pytest.raises(LabError, match="does not fit on this machine"):
        live.at_once(cells, 0)


def test_what_a_result_holds_comes_back_as_it_was(tmp_path: Path) -> None:
    store = Store(tmp_path)
    store.prepare()
    (one,) = results(0.5, policy="FGD")
    store.put(one)
    assert store.get(one.id) == one
    (tmp_path / "cells" / f"{one.id}.json").write_text(json.dumps({"id": 1})[:-3])
    with pytest.raises(LabError, match="Remove it, and the cell is run again"):
        store.get(one.id)


def test_the_experiment_and_its_stack_file_are_needed(tmp_path: Path) -> None:
    sweep = read(tmp_path)
    experiment = tmp_path / "e.yaml"
    raw = yaml.safe_load(experiment.read_text())
    experiment.write_text(yaml.safe_dump({key: value for key, value in raw.items() if key != "stackFile"}))
    with pytest.raises(LabError, match="names no stackFile"):
        cells_of(sweep, tmp_path)
    # By default, the stack of the project.
    (tmp_path / raw["stackFile"]).rename(tmp_path / "Pulumi.mine.yaml")
    (tmp_path / "Pulumi.yaml").write_text("name: p\nruntime: python\n")
    experiment.write_text(yaml.safe_dump({**{k: v for k, v in raw.items() if k != "stackFile"}, "stack": "mine"}))
    assert cells_of(sweep, tmp_path)


def test_a_page_says_of_as_many_comparisons_as_its_verdicts_have_shared(tmp_path: Path) -> None:
    sweep = read(tmp_path, matrix={"policy": ["FGD", "BestFit", "Random"], "seed": "1-2"}, measures=["pods.scheduled"])
    results = [
        CellResult(f"{policy}{seed}", {"policy": policy, "seed": seed}, seed, "success", runs)
        for policy, runs in (("FGD", [{"pods.scheduled": 3.0}]), ("BestFit", [{"pods.scheduled": 4.0}]), ("Random", []))
        for seed in (1, 2)
    ]
    file = tmp_path / "page.html"
    page.write(sweep, page.tables(sweep, results), results, 6, file)
    # A group without measures is one of those that are compared.
    assert "2 comparisons" in file.read_text()


def test_a_sweep_that_is_ended_says_what_is_done_and_ends_what_it_began(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    said: list[str] = []
    closed: list[bool] = []

    def results(*_: object) -> Iterator[CellResult]:
        try:
            yield CellResult("a", {"seed": 1}, 1, "success", seconds=0.1)
            os.kill(os.getpid(), signal.SIGTERM)
            yield CellResult("b", {"seed": 2}, 2, "success", seconds=0.1)
        finally:
            closed.append(True)

    monkeypatch.setattr("kumulus.extras.lab.sweep.sweep.results", results)
    earlier = signal.signal(signal.SIGTERM, lambda *_: pytest.fail("it does not take the signal"))
    try:
        own = signal.getsignal(signal.SIGTERM)
        with pytest.raises(KeyboardInterrupt):
            swept(tmp_path, said)
        assert signal.getsignal(signal.SIGTERM) is own
    finally:
        signal.signal(signal.SIGTERM, earlier)
    assert said[-1] == "ended: 1 of 4 runs are done; the same command goes on"
    assert closed

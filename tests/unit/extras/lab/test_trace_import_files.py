"""Importing a trace: which files it replaces and when, and what it says of files that are damaged."""

import gzip
from pathlib import Path

import pytest

from kumulus.extras.lab.errors import LabError
from kumulus.extras.lab.file.load import load
from kumulus.extras.lab.offline.placing import EmptyNode
from kumulus.extras.lab.traces.formats import FORMATS
from kumulus.extras.lab.traces.importing import WrittenExperiment, import_trace
from kumulus.extras.lab.traces.writing import WantedExperiment

TASKS = "arrival,gpus\n0,1\n5,2\n"
SWF = " ".join(["1", "0", "10", "60", "64", "-1", "-1", "64", *["-1"] * 10])


def imported(
    folder: Path,
    file: Path,
    kind: str = "csv",
    stack: str = "s.yaml",
    experiment: str = "e.yaml",
    model: str = "T4",
    wanted: WantedExperiment | None = None,
) -> WrittenExperiment:
    machines = [EmptyNode("m", 64_000, 2**18, 8, model)]
    return import_trace(FORMATS[kind], [file], folder / stack, folder / experiment, machines=machines, wanted=wanted)


@pytest.mark.parametrize("name", ["e.tasks.csv", "e.bad-rows.csv", "e.yaml", "s.yaml"])
def test_a_trace_is_not_overwritten_by_its_own_import(tmp_path: Path, name: str) -> None:
    file = tmp_path / name
    file.write_text(TASKS)
    (tmp_path / "link.csv").symlink_to(file)
    for written in (file, tmp_path / "link.csv"):
        with pytest.raises(LabError, match=f"{name} would be overwritten, and is read"):
            imported(tmp_path, written)
    assert file.read_text() == TASKS


@pytest.mark.parametrize(
    ("content", "stack"),
    [("arrival,gpus\nx,1\n", "s.yaml"), ("arrival\n", "s.yaml"), (TASKS, "nowhere/s.yaml")],
    ids=["only bad rows", "no rows", "a stack that cannot be written"],
)
def test_an_import_that_fails_leaves_what_an_earlier_one_wrote(tmp_path: Path, content: str, stack: str) -> None:
    file = tmp_path / "t.csv"
    file.write_text(TASKS + "y,1\n")
    written = imported(tmp_path, file)
    assert written.bad == tmp_path / "e.bad-rows.csv"
    before = {each: each.read_text() for each in tmp_path.iterdir() if each != file}
    file.write_text(content)
    with pytest.raises(LabError):
        imported(tmp_path, file, stack=stack)
    assert {each: each.read_text() for each in tmp_path.iterdir() if each != file} == before
    file.write_text(TASKS)
    imported(tmp_path, file)
    assert not (tmp_path / "e.bad-rows.csv").exists(), "it is of another import"


def test_a_damaged_gzip_file_is_an_error_with_its_name(tmp_path: Path) -> None:
    whole = gzip.compress((TASKS + "7,1\n" * 20_000).encode())
    torn = bytearray(whole)
    torn[len(torn) // 2 :] = b"\xff" * len(torn[len(torn) // 2 :])
    for content in (whole[:-20], TASKS.encode(), bytes(torn)):
        file = tmp_path / "t.csv.gz"
        file.write_bytes(content)
        with pytest.raises(LabError, match=r"t\.csv\.gz cannot be read"):
            imported(tmp_path, file)


@pytest.mark.parametrize(
    ("field", "value", "said"),
    [
        (3, "nan", 'has "nan", not a number'),
        (7, "inf", 'has "inf", not a number'),
        (1, "1e300", 'has "1e300", not a number'),
        (7, "65536", "has 65,536 workers, more than 20,000"),
        (3, "31622401", "runs for 31,622,401 s, longer than a year"),
    ],
)
def test_a_row_of_swf_that_no_experiment_can_have_is_a_bad_one(
    tmp_path: Path, field: int, value: str, said: str
) -> None:
    cells = SWF.split()
    cells[field] = value
    (tmp_path / "t.swf").write_text(f"{SWF}\n{' '.join(cells)}\n")
    written = imported(tmp_path, tmp_path / "t.swf", "swf")
    assert written.listed[0].startswith(f"t.swf, line 2: {said}")
    assert len(load(tmp_path / "e.yaml").traces["tasks"]) == 1


def test_a_job_of_more_workers_than_an_experiment_has_is_a_bad_row_in_every_format(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("timestamp,duration,num_gpus,cluster\n0,5,8,a\n0,5,800000,a\n")
    written = imported(tmp_path, tmp_path / "t.csv", "philly-csv")
    assert written.listed == ["t.csv, line 3: has 100,000 workers, more than 20,000"]


def test_a_job_of_more_gpus_than_a_worker_has_is_a_bad_row_in_every_format(tmp_path: Path) -> None:
    heading = "job_id,user,gpu_num,cpu_num,node_num,submit_time,duration"
    (tmp_path / "t.csv").write_text(f"{heading}\na,u,8,1,1,0,5\nb,u,2000,1,1,0,5\n")
    written = imported(tmp_path, tmp_path / "t.csv", "helios")
    assert written.listed == ["t.csv, line 3: has 2,000 GPUs for a worker, more than 1,024"]
    assert len(load(tmp_path / "e.yaml").traces["tasks"]) == 1


@pytest.mark.parametrize("stem", ["x" * 39 + "-y", "x" * 39 + ".y", "Ümläut_", "---"])
def test_an_experiment_s_name_is_valid_whatever_its_file_is_called(tmp_path: Path, stem: str) -> None:
    (tmp_path / "t.csv").write_text(TASKS)
    imported(tmp_path, tmp_path / "t.csv", experiment=f"{stem}.yaml")
    assert load(tmp_path / f"{stem}.yaml").experiment.name


@pytest.mark.parametrize(
    ("model", "wanted", "said"),
    [
        ("NVIDIA A100", WantedExperiment(), 'product"]: "NVIDIA A100" is not a label value'),
        ("T4", WantedExperiment(speed=20_000.0), r"trace\.speed: is 20000"),
        ("T4", WantedExperiment(limit=100_001), r"trace\.limit: is 100001"),
        ("T4", WantedExperiment(window=(32e6, 33e6)), r"trace\.window\.from: .* longer than a year"),
    ],
)
def test_nothing_is_written_that_could_not_be_read_again(
    tmp_path: Path, model: str, wanted: WantedExperiment, said: str
) -> None:
    (tmp_path / "t.csv").write_text(TASKS)
    with pytest.raises(LabError, match=said):
        imported(tmp_path, tmp_path / "t.csv", model=model, wanted=wanted)
    assert [each.name for each in tmp_path.iterdir()] == ["t.csv"]


def test_a_heading_may_follow_blank_lines_and_a_byte_order_mark(tmp_path: Path) -> None:
    (tmp_path / "t.csv.gz").write_bytes(gzip.compress(f"\ufeff\n\n{TASKS}x,1\n".encode()))
    written = imported(tmp_path, tmp_path / "t.csv.gz")
    assert written.listed[0].startswith("t.csv.gz, line 6: arrival is")


def test_a_heading_that_is_no_csv_is_an_error_with_its_file(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text('arrival,"' + "x" * 200_000)
    with pytest.raises(LabError, match=r"t\.csv, line 1: is no CSV"):
        imported(tmp_path, tmp_path / "t.csv")


def test_an_import_of_more_tasks_than_an_experiment_takes_says_so(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("arrival\n" + "0\n" * 100_001)
    assert "takes 100,000 tasks at most: choose a part" in imported(tmp_path, tmp_path / "t.csv").lines[-1]
    limited = imported(tmp_path, tmp_path / "t.csv", wanted=WantedExperiment(limit=5))
    assert not [line for line in limited.lines if "at most" in line]
    assert len(load(tmp_path / "e.yaml").traces["tasks"]) == 5

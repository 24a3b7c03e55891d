"""The experiments of published traces that come along: right without the data, and whole with what their heads say.

The traces are their owners', and not here. The command in a file's head is run on a few rows made by hand: it has to
write what the file names.
"""

import re
import shlex
import shutil
from pathlib import Path

import pytest

from kumulus.cli.main import main
from kumulus.extras.lab.file.load import load
from kumulus.extras.lab.file.model import ExperimentSpec
from kumulus.extras.lab.sweep.cells import cells_of
from kumulus.extras.lab.sweep.file import load as read_sweep
from kumulus.stackfile.yamltext import read_yaml
from tests.support.project import ROOT

FILES = sorted((ROOT / "experiments" / "traces").glob("*.yaml"))
SWEEPS = sorted((ROOT / "experiments" / "sweeps").glob("openb-*.yaml"))
PODS = "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,deletion_time,scheduled_time\n"
ROWS = {
    "openb_node_list_gpu_node.csv": "sn,cpu_milli,memory_mib,gpu,model\nn-0,8000,8192,2,T4\nn-1,8000,8192,2,G2\n",
    "openb_pod_list_default.csv": PODS
    + "".join(f"p{n},500,128,1,{500 + n},,LS,Running,{n},99,{n}\n" for n in range(6)),
    "philly.csv": "timestamp,duration,num_gpus,gpu_time,cluster\n"
    + "".join(f"2017-{month}-01 00:00:00,60,{n},60,vc{n}\n" for n, month in enumerate(("10", "11", "11"), start=1))
    + "2017-11-05 06:00:00,60,16,60,vc1\n",
}


def command_of(file: Path) -> list[str]:
    """The arguments of the import that the head of a file has."""
    head = "\n".join(line.removeprefix("#").strip() for line in file.read_text().splitlines() if line.startswith("#"))
    found = re.search(r"\./kumulus (trace import (?:.*\\\n)*.*)", head)
    assert found is not None, f"{file} does not say how its tasks are made"
    return shlex.split(found[1].replace("\\\n", " "))


def imported(place: Path, file: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The file, in a checkout with nothing but it and what its import has written."""
    shutil.copytree(ROOT / "experiments", place / "experiments", ignore=shutil.ignore_patterns("data"))
    for made in ("stacks", "experiments/traces/data"):
        (place / made).mkdir()
    for name, text in ROWS.items():
        (place / name).write_text(text)
    monkeypatch.chdir(place)
    assert main(command_of(file)) == 0
    return place / file.relative_to(ROOT)


@pytest.mark.parametrize("file", FILES, ids=lambda path: path.stem)
def test_a_trace_experiment_is_right_and_says_where_its_data_are_from(file: Path) -> None:
    text = file.read_text()
    experiment = ExperimentSpec.checked(read_yaml(text, str(file)), str(file))
    assert experiment.name == file.stem
    assert experiment.expect
    assert all((experiment.about.source, experiment.about.expected, experiment.about.emulation))
    assert "# Data: " in text
    assert "(Apache-2.0)" in text, "the licence"
    assert text.splitlines()[0] == "# yaml-language-server: $schema=../../docs/schema/experiment.schema.json"
    assert f"experiments/traces/{file.name}" in text.partition("\nname:")[0], "how it is run"


@pytest.mark.parametrize("file", FILES, ids=lambda path: path.stem)
def test_the_import_in_its_head_makes_what_it_needs(
    file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    loaded = load(imported(tmp_path, file, monkeypatch))
    assert loaded.traces["tasks"]
    experiment = loaded.experiment
    assert (
        loaded.directory / experiment.stackFile
    ).resolve() == tmp_path / "stacks" / f"Pulumi.{experiment.stack}.yaml"
    # What the import itself would have played, but for what the file has beside it.
    made = load(loaded.directory / "data" / f"{experiment.stack}.yaml").experiment
    [played], [wanted] = experiment.workloads, made.workloads
    assert played.arrival.trace is not None
    assert wanted.arrival.trace is not None
    assert played.arrival.trace.model_copy(update={"file": ""}) == wanted.arrival.trace.model_copy(update={"file": ""})
    assert (played.resourceClaims, experiment.stack) == (wanted.resourceClaims, made.stack)


@pytest.mark.parametrize("file", SWEEPS, ids=lambda path: path.stem)
def test_every_run_of_a_sweep_over_a_trace_is_right(
    file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    of = (file.parent / read_sweep(file).experiment).resolve()
    here = tmp_path / file.relative_to(ROOT)
    imported(tmp_path, of, monkeypatch)
    assert len(cells_of(read_sweep(here), here.parent)) == {"openb-policies": 60, "openb-schedulers": 3}[file.stem]


def test_the_readme_names_every_experiment_of_a_trace() -> None:
    readme = (ROOT / "experiments" / "README.md").read_text()
    for file in (*FILES, *SWEEPS):
        assert f"({file.relative_to(ROOT / 'experiments')})" in readme

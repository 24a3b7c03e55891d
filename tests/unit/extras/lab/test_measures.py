"""A measure is named in one place, from which schema, reports and plots take it."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

import kumulus
from kumulus.extras.lab.cluster.components import Components
from kumulus.extras.lab.measure import summary
from kumulus.extras.lab.measure.allocation import Allocation
from kumulus.extras.lab.measure.records import ExperimentRecords
from kumulus.extras.lab.measure.sampler import Sampler

QUESTIONS = """
import json
from kumulus.extras.lab.file.measures import BETTER, MEANINGS, UNITS
from kumulus.extras.lab.file.model import ExperimentSpec
from kumulus.extras.lab.file.schema import experiment_schema
from kumulus.extras.lab.measure.statistics import spread

name = "timeToSchedule.p95"
expect = [{"measure": name, "atMost": "5s"}]
experiment = ExperimentSpec.checked({"name": "a", "workloads": [{"name": "w"}], "expect": expect})
print(json.dumps({
    "named": [UNITS[name], BETTER[name], MEANINGS[name]],
    "schema": name in json.dumps(experiment_schema()),
    "taken": experiment.expect[0].measure,
    "spread": spread(range(1, 101)),
}))
"""


def ask_a_copy(
    directory: Path, added: Mapping[str, str], changed: Mapping[str, tuple[str, str]], questions: str
) -> str:
    """The output of a program that uses a changed copy of the package.

    Args:
        directory: an empty directory for the copy.
        added: contents of new files, by their path in the package.
        changed: for existing files, a text that occurs in them once, and its replacement.
        questions: the program.
    """
    package = directory / "src" / "kumulus"
    shutil.copytree(Path(kumulus.__file__).parent, package, ignore=shutil.ignore_patterns("__pycache__"))
    for name, content in added.items():
        (package / name).parent.mkdir(parents=True, exist_ok=True)
        (package / name).write_text(content)
    for name, (old, new) in changed.items():
        text = (package / name).read_text()
        assert text.count(old) == 1, f"{name} has {old!r} {text.count(old)} times"
        (package / name).write_text(text.replace(old, new))
    environment = {**os.environ, "PYTHONPATH": str(package.parent), "PYTHONDONTWRITEBYTECODE": "1"}
    answer = subprocess.run(
        [sys.executable, "-c", questions], env=environment, cwd=directory, capture_output=True, text=True, check=False
    )
    assert answer.returncode == 0, answer.stderr
    return answer.stdout


def test_a_percentile_is_a_number_in_one_file(tmp_path: Path) -> None:
    added = {"extras/lab/file/measures.py": ("PERCENTILES = (50, 90, 99)", "PERCENTILES = (50, 90, 95, 99)")}
    answers = json.loads(ask_a_copy(tmp_path, {}, added, QUESTIONS))
    assert answers["named"] == ["s", "lower", "from a pod's creation to its binding, p95"]
    assert answers["schema"]
    assert answers["taken"] == "timeToSchedule.p95"
    assert answers["spread"]["p95"] == 95


def test_a_measure_that_is_taken_and_not_named_is_an_error_with_the_place(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(summary, "_usage", lambda sampler: {"pods.unheardOf": 1.0})
    records = ExperimentRecords(Allocation())
    with pytest.raises(AssertionError, match=r"lab/file/measures.py does not name pods.unheardOf"):
        summary.measures(records, Sampler(records, Components(tmp_path), None, lambda: 1.0), 1.0, 1.0)

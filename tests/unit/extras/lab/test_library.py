"""An experiment as a program has it: from a file or a mapping, with mistakes as Python's own errors."""

from pathlib import Path

import pytest

from kumulus import Experiment
from tests.support.project import ROOT


def test_it_is_read_from_a_file_with_what_the_file_names() -> None:
    assert Experiment(ROOT / "experiments" / "kemu-gang.yaml").name == "kemu-gang"
    assert Experiment(str(ROOT / "experiments" / "kemu-gang.yaml")).name == "kemu-gang"


def test_a_mapping_is_read_as_a_file_would_be() -> None:
    with pytest.raises(ValueError, match="2 problems in the experiment") as raised:
        Experiment({"name": "x", "workloads": [], "workload": []})
    assert "workload: is not a known key; write workloads" in str(raised.value)
    with pytest.raises(ValueError, match="PosixPath"):
        Experiment({"name": "x", "workloads": [{"name": "w"}], "setup": [Path("queue.yaml")]})


def test_a_file_that_a_mapping_names_is_found_from_the_directory(tmp_path: Path) -> None:
    described = {"name": "x", "setup": ["queue.yaml"], "workloads": [{"name": "w"}]}
    with pytest.raises(ValueError, match=r"queue\.yaml"):
        Experiment(described, directory=tmp_path)
    (tmp_path / "queue.yaml").write_text("apiVersion: v1\nkind: Namespace\nmetadata: {name: q}\n")
    assert Experiment(described, directory=tmp_path).name == "x"


def test_a_kubeconfig_that_is_not_there_is_told(tmp_path: Path) -> None:
    experiment = Experiment({"name": "x", "workloads": [{"name": "w"}]})
    with pytest.raises(RuntimeError, match="nowhere"):
        experiment.run(tmp_path / "nowhere", results=tmp_path)

"""What an experiment begins from is refused, with the remedy, before anything is asked of the cluster."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from pathlib import Path

import pytest

from kumulus.extras.journal.book import Journal
from kumulus.extras.journal.changes import Changes
from kumulus.extras.lab.cluster.beginning import begin_from
from kumulus.extras.lab.errors import LabError
from kumulus.extras.lab.file.model import Beginning, Experiment
from kumulus.kube import Client, Connection
from kumulus.model.errors import SpecError
from kumulus.runtimes.existing import KUBECONFIG_FILE


async def begin(directory: Path, name: str = "full", kubeconfig: str = "kubeconfig.yaml", **more: bool) -> str:
    journal = Journal(Changes("one", "training", "5d4f", ""))
    wanted = Beginning(snapshot=name, **more)
    # Nobody listens there: what is told here is told without asking.
    async with Client(Connection("https://127.0.0.1:1", "test", {}), patience=0.1) as client:
        at = (directory / "snapshots", directory / "cluster" / kubeconfig)
        return await begin_from(client, journal, wanted, *at, asyncio.Event())


async def test_what_is_not_there_is_said_with_what_is(tmp_path: Path) -> None:
    with pytest.raises(LabError, match="there is no snapshot full; make it: kumulus snapshot save full"):
        await begin(tmp_path)
    (tmp_path / "snapshots").mkdir()
    (tmp_path / "snapshots" / "other.snapshot").write_bytes(b"nothing")
    with pytest.raises(LabError, match="there is no snapshot full; there are other"):
        await begin(tmp_path)
    with pytest.raises(LabError, match="is no snapshot"):
        await begin(tmp_path, "other")


async def test_a_cluster_that_outlives_its_stack_needs_leave_in_the_file(tmp_path: Path) -> None:
    (tmp_path / "snapshots").mkdir()
    (tmp_path / "snapshots" / "full.snapshot").write_bytes(b"nothing")
    with pytest.raises(LabError, match="write allowDeletion: true below from"):
        await begin(tmp_path, kubeconfig=KUBECONFIG_FILE)
    with pytest.raises(LabError, match="is no snapshot"):
        await begin(tmp_path, kubeconfig=KUBECONFIG_FILE, allowDeletion=True)


def test_a_file_names_the_snapshot() -> None:
    workloads = [{"name": "work"}]
    found = Experiment.checked({"name": "x", "workloads": workloads, "from": {"snapshot": "full"}})
    assert found.from_ is not None
    assert found.from_.snapshot == "full"
    assert Experiment.checked({"name": "x", "workloads": workloads}).from_ is None
    for wrong in ("full", {"snapshot": " "}, {"snapshots": "full"}, {}):
        with pytest.raises(SpecError):
            Experiment.checked({"name": "x", "workloads": workloads, "from": wrong})


def test_a_run_is_begun_without_what_few_runs_need() -> None:
    """Half of the time that the command would take to start: an HTTP server, and the models of a whole stack file."""
    heavy = "('aiohttp', 'kumulus.stackfile.model')"
    code = f"import sys, kumulus.extras.lab.running; print([name for name in {heavy} if name in sys.modules])"
    answer = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert answer.stdout.strip() == "[]"

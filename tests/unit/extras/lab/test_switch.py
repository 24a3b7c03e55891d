"""The cluster's own scheduler in a timeline; any program on this machine can stand for it."""

from __future__ import annotations

import asyncio
import subprocess
from pathlib import Path

import pytest

from kumulus.extras.journal.book import Journal
from kumulus.extras.journal.changes import Changes
from kumulus.extras.lab.cluster.components import SCHEDULER, Components
from kumulus.extras.lab.errors import LabError
from kumulus.extras.lab.file.model import Scheduler
from kumulus.extras.lab.run.second import require_built
from kumulus.extras.lab.run.switch import OwnScheduler, OwnSwitch, SchedulerAction


def set_scheduler(switch: OwnSwitch, how: SchedulerAction) -> str:
    return asyncio.run(switch.set_scheduler(how))


def test_a_scheduler_that_is_stopped_can_be_stopped_and_restarted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    (tmp_path / "logs").mkdir()
    journal, components = Journal(Changes("one", "training", "uid", "")), Components(tmp_path)
    with subprocess.Popen(["sleep", "60"]) as first:
        components.look({SCHEDULER: [first.pid]})
        switch = OwnSwitch(OwnScheduler(tmp_path, components, journal), components)
        for _ in range(2):
            assert set_scheduler(switch, "stop") == "scheduler stopped"
            assert (components.pids(SCHEDULER), switch.ended()) == ([], "")
    assert set_scheduler(switch, "restart") == "scheduler restarted"
    (second,) = components.pids(SCHEDULER)
    assert journal.changes.stopped is None
    assert set_scheduler(switch, "restart") == "scheduler restarted"
    (third,) = components.pids(SCHEDULER)
    assert len({first.pid, second, third}) == 3
    set_scheduler(switch, "stop")


def test_a_scheduler_that_is_not_built_is_refused_before_anything_is_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    require_built(Scheduler(), tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv("PATH", "")
    with pytest.raises(LabError, match=r"is missing\n  To get it: .* tools --with volcano"):
        require_built(Scheduler(name="volcano"), tmp_path)
    with pytest.raises(LabError, match="mine does not exist"):
        require_built(Scheduler(name="kube-scheduler", binary="mine"), tmp_path)

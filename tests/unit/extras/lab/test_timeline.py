"""Faults of an experiment's timeline, on an API server that keeps objects in memory."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import pytest

from kumulus.extras.journal.book import Journal
from kumulus.extras.journal.changes import Changes
from kumulus.extras.lab.errors import LabError
from kumulus.extras.lab.file.timeline import Event
from kumulus.extras.lab.run.timeline import Timeline
from tests.support.object_store import NODES, storing
from tests.unit.nodes.test_fault_operations import filled, on, refusing, shown

FAULT = {
    "name": "xid",
    "target": {"nodeGroup": "a100"},
    "capacity": {"nvidia.com/gpu": "-1"},
    "taints": [{"key": "example.com/xid", "effect": "NoSchedule"}],
}
RESIZE = {"pool": "a100-use1", "replicas": 8}


@pytest.mark.parametrize("event", [{"fault": FAULT}, {"resize": RESIZE}])
async def test_a_fault_that_some_nodes_refuse_ends_the_experiment_and_is_undone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, event: dict[str, Any]
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    async with storing() as store, store.client() as client:
        await filled(store, client)
        journal = Journal(Changes("one", "training", "uid", ""))
        timeline = Timeline(
            client, journal, [Event.model_validate(event)], cast(Any, Unstopped()), lambda: 0.0, cast(Any, None)
        )
        store.refuse = refusing(2)
        with pytest.raises(LabError, match=r"fault .* has not begun everywhere: \d+ nodes left to do: .*403"):
            await timeline.begin()
        assert timeline.happened == []
        assert (shown(store), len(store.under(NODES))) != ([], 12)
        store.refuse = refusing(1000)
        await timeline.undo()
        assert (shown(store), len(store.under(NODES))) == ([], 12)
        assert journal.changes.empty


async def test_a_fault_that_every_node_takes_has_happened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    async with storing() as store, store.client() as client:
        await filled(store, client)
        journal = Journal(Changes("one", "training", "uid", ""))
        events = [Event.model_validate({"fault": FAULT})]
        timeline = Timeline(client, journal, events, cast(Any, Unstopped()), lambda: 0.0, cast(Any, None))
        await timeline.begin()
        assert [each.what.startswith("fault on 12 nodes") for each in timeline.happened] == [True]
        assert shown(store) == on(range(12))
        await timeline.undo()
        assert shown(store) == []


class Unstopped:
    """A scheduler that was never stopped."""

    async def restore(self) -> None:
        pass

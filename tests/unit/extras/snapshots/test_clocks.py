"""What runs by the clock in a pod's status goes on where it was; what has ended stays."""

from __future__ import annotations

from kumulus.extras.snapshots.clocks import moved

RUNS = {
    "phase": "Running",
    "startTime": "2026-11-23T10:00:00Z",
    "conditions": [{"type": "Ready", "lastTransitionTime": "2026-11-23T10:00:02Z"}],
    "initContainerStatuses": [
        {"state": {"terminated": {"startedAt": "2026-11-23T10:00:00Z", "finishedAt": "2026-11-23T10:00:01Z"}}}
    ],
    "containerStatuses": [{"name": "c", "state": {"running": {"startedAt": "2026-11-23T10:00:01Z"}}, "lastState": {}}],
}


def test_a_pod_that_runs_has_begun_later() -> None:
    found = moved(RUNS, 3600)
    assert found["startTime"] == "2026-11-23T11:00:00Z"
    assert found["containerStatuses"][0]["state"] == {"running": {"startedAt": "2026-11-23T11:00:01Z"}}
    over = found["initContainerStatuses"][0]["state"]["terminated"]
    assert over == {"startedAt": "2026-11-23T11:00:00Z", "finishedAt": "2026-11-23T11:00:01Z"}
    assert found["conditions"] == RUNS["conditions"]


def test_one_that_has_ended_and_one_that_has_not_begun_stay() -> None:
    for status in ({**RUNS, "phase": "Succeeded"}, {**RUNS, "phase": "Failed"}, {"phase": "Pending"}, {}):
        assert moved(status, 3600) == status

"""What a run's nodes cost, on a real control plane whose nodes come and go while it is measured."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from kumulus.extras.lab.measure.cost import Meter
from kumulus.extras.lab.run import repetition
from tests.integration.conftest import Plane, Pools
from tests.support import runs

pytestmark = pytest.mark.integration
LABELS = {
    "lab": "priced",
    "node.kubernetes.io/instance-type": "m5.xlarge",
    "topology.kubernetes.io/region": "us-east-1",
}
PRICE = 0.192


class Noted(Meter):
    """A meter that notes each node event and its time as well, for a sum that knows nothing of the meter's."""

    def __init__(self, now: Callable[[], float]) -> None:
        self.events: list[tuple[float, str, str]] = []
        self.read = 0.0
        super().__init__(lambda: self._noted(now))
        meters.append(self)

    def _noted(self, now: Callable[[], float]) -> float:
        self.read = now()
        return self.read

    def begin(self) -> None:
        super().begin()
        self.events.append((self.read, "begin", ""))

    def end(self) -> None:
        super().end()
        self.events.append((self.read, "end", ""))

    def put(self, name: str, hourly: float | None, *amounts: Any) -> None:
        super().put(name, hourly, *amounts)
        if hourly is not None:
            self.events.append((self.read, "put", name))

    def take(self, name: str) -> None:
        super().take(name)
        self.events.append((self.read, "take", name))


meters: list[Noted] = []


def independent(events: list[tuple[float, str, str]]) -> float:
    """The cost by lifetimes: from when a node was first there, but not before the beginning, to when it was gone."""
    began = max(at for at, what, _ in events if what == "begin")
    ended = next(at for at, what, _ in events if what == "end")
    total = 0.0
    for name in {name for _, what, name in events if what == "put"}:
        there: float | None = None
        # An update is told as a node that goes and comes at one moment.
        for at, what, whose in sorted(events, key=lambda event: event[0]):
            if whose == name and what == "put" and there is None:
                there = at
            elif whose == name and what == "take" and there is not None:
                total += max(0.0, min(at, ended) - max(there, began)) * PRICE
                there = None
        if there is not None:
            total += max(0.0, ended - max(there, began)) * PRICE
    return total / 3600


async def test_the_cost_of_a_run_is_the_sum_over_its_nodes_lifetimes(
    plane: Plane, pools: Pools, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    grows, shrinks = pools.inputs(4, labels=LABELS), pools.inputs(4, labels=LABELS)
    await pools.create(grows)
    await pools.create(shrinks)
    bare = pools.inputs(2, labels={"lab": "unpriced"})
    await pools.create(bare)
    monkeypatch.setattr(repetition, "Meter", Noted)
    meters.clear()
    file = tmp_path / "experiment.yaml"
    file.write_text(
        yaml.safe_dump(
            {
                "name": "cost",
                "settle": "1s",
                "timeout": "90s",
                "workloads": [
                    {
                        "name": "work",
                        "jobs": 4,
                        "workers": 1,
                        "requests": {"cpu": "1"},
                        "nodeSelector": {"lab": "priced"},
                        "duration": "5m",
                    }
                ],
                "timeline": [
                    {"after": "created", "at": "1s", "resize": {"pool": str(grows["name"]), "replicas": 7}},
                    {"after": "created", "at": "3s", "resize": {"pool": str(shrinks["name"]), "replicas": 2}},
                ],
                "expect": [
                    {"measure": "cost.total", "atMost": 1},
                    {"measure": "cost.perHourPeak", "equals": 11 * PRICE},
                    {"measure": "cost.wastedShare", "atLeast": "10%"},
                ],
            }
        )
    )
    report, _ = await runs.run(plane.observed.kubeconfig, file)
    [test] = report.results.tests
    assert test.status == "success", (test.details.ended, test.thresholds)
    measures = test.details.measures
    [meter] = meters
    assert measures["cost.total"] > 0
    assert measures["cost.total"] == pytest.approx(independent(meter.events), rel=0.001)
    assert measures["cost.perHourEnd"] == pytest.approx(9 * PRICE)
    assert measures["cost.unpricedNodes"] >= 2
    assert max(test.details.series["cost per hour"]) == pytest.approx(11 * PRICE, abs=1e-3)

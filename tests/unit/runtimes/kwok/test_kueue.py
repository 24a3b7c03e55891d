"""Kueue as a component of a cluster: where it listens, what restarts it, and that nothing of it is left without it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from kumulus import toolchain
from kumulus.runtimes.base import Wanted
from kumulus.runtimes.kwok import additions, configuration
from kumulus.runtimes.kwok.layout import Layout
from tests.unit.runtimes.kwok.test_monitoring import Ports, layout, wanted

__all__ = ["layout"]


@pytest.fixture(autouse=True)
def tool(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Any program is found: none is started here."""
    monkeypatch.setattr(toolchain, "find", lambda name, version=None: tmp_path / name)


def configure(layout: Layout, **options: Any) -> Wanted:
    asked = wanted(**options)
    additions.configure(layout, asked, [], Ports())  # type: ignore[arg-type]
    layout.write_note({**layout.note(), **additions.note(asked)})
    return asked


def test_it_is_one_more_component_on_ports_of_its_own_which_it_keeps(layout: Layout) -> None:
    configure(layout, kueue={"origin": "a"})
    assert "kueue" in layout.components()
    before = {name: port for name, port in layout.ports().items() if name.startswith("kueue")}
    assert len({*before.values()}) == len(before) == 3
    configure(layout, kueue={"origin": "a", "workerLostTimeout": "1m"})
    assert before.items() <= layout.ports().items()
    written = yaml.safe_load((layout.directory / "kueue" / "config.yaml").read_text())
    assert written["multiKueue"] == {"gcInterval": "1m", "origin": "a", "workerLostTimeout": "1m"}
    configure(layout, kueue={"origin": "a", "dispatcher": "incremental", "stepSize": 2})
    other = yaml.safe_load((layout.directory / "kueue" / "config.yaml").read_text())["multiKueue"]
    assert other["dispatcherName"] == "kueue.x-k8s.io/multikueue-dispatcher-incremental"
    assert other["incrementalDispatcherConfig"] == {"stepSize": 2}
    assert written["webhook"]["port"] == before["kueue (webhooks)"]
    assert written["webhook"]["host"] == "127.0.0.1"


def test_another_timeout_restarts_it_and_not_kwok_controller(layout: Layout) -> None:
    asked = configure(layout, kueue={"origin": "a"})
    assert {"kueue", "kwok-controller"}.isdisjoint(additions.outdated(layout, asked))
    other = wanted(kueue={"origin": "a", "workerLostTimeout": "1m"})
    assert {"kueue", "kwok-controller"} & {*additions.outdated(layout, other)} == {"kueue"}
    assert configuration.fingerprint(other.options) != configuration.fingerprint(asked.options)


def test_a_cluster_without_it_has_the_fingerprint_it_had(layout: Layout) -> None:
    assert configuration.fingerprint({}) == configuration.fingerprint({"kueue": None})
    assert not configuration.has_additions({})
    assert configuration.has_additions({"kueue": {}})


def test_without_it_nothing_is_left_of_it(layout: Layout) -> None:
    configure(layout, kueue={"origin": "a"})
    configure(layout)
    assert "kueue" not in layout.components()
    assert not (layout.directory / "kueue").exists()
    assert not [name for name in layout.ports() if name.startswith("kueue")]

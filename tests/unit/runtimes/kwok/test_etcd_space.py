"""How much room etcd has: its flag is rewritten where the stack wants another quota."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from kumulus.host import processes
from kumulus.runtimes.kwok import configuration, etcd_space
from kumulus.runtimes.kwok.layout import Layout
from kumulus.runtimes.kwok.runtime import KwokRuntime
from tests.support.said import Said


@pytest.fixture
def ended(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    found: list[int] = []
    monkeypatch.setattr(processes, "running", lambda _: {"etcd": [11], "kube-apiserver": [12]})
    monkeypatch.setattr(processes, "end", found.extend)
    return found


@pytest.fixture
def layout(tmp_path: Path) -> Layout:
    found = Layout.of(str(tmp_path), "dev")
    found.directory.mkdir(parents=True)
    components: list[dict[str, Any]] = [
        {"name": "etcd", "args": ["--name=node0", "--quota-backend-bytes=8589934592", "--data-dir=x"]},
        {"name": "kube-apiserver", "args": ["--quota-backend-bytes=1"]},
    ]
    found.write_documents([{"kind": "KwokctlConfiguration", "components": components}, {"kind": "Stage"}])
    return found


def arguments(layout: Layout) -> list[list[str]]:
    return [each["args"] for each in layout.settings()["components"]]


def test_another_quota_restarts_etcd_alone(layout: Layout, ended: list[int]) -> None:
    assert etcd_space.change(layout, {"etcdQuota": "16Mi"})
    wanted = ["--name=node0", "--data-dir=x", "--quota-backend-bytes=16777216"]
    assert arguments(layout) == [wanted, ["--quota-backend-bytes=1"]]
    assert ended == [11]
    assert len(layout.documents()) == 2


@pytest.mark.parametrize("options", [{}, {"etcdQuota": None}, {"etcdQuota": "8Gi"}, {"etcdQuota": "8192Mi"}])
def test_the_same_quota_changes_nothing(layout: Layout, ended: list[int], options: dict[str, Any]) -> None:
    before = layout.kwok_file.read_text()
    assert not etcd_space.change(layout, options)
    assert (layout.kwok_file.read_text(), ended) == (before, [])


def test_a_quota_is_no_reason_for_a_new_cluster() -> None:
    assert "etcdQuota" not in configuration.REPLACED_BY
    assert KwokRuntime().problems({"etcdQuota": "a lot"}).keys() == {"etcdQuota"}


def test_an_etcd_that_does_not_answer_is_not_taken_for_full(layout: Layout) -> None:
    said = Said()
    assert not asyncio.run(etcd_space.is_full(layout))
    assert not asyncio.run(etcd_space.relieve(layout, said))
    assert not asyncio.run(etcd_space.relieve_cluster("/nowhere/kubeconfig.yaml", said))

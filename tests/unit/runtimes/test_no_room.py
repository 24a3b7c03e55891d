"""A cluster's disk that is all but full is named, with the remedy, wherever the cluster fails of it."""

import asyncio
import os
from pathlib import Path

import pytest

from kumulus.host import processes
from kumulus.nodes.errors import ProviderError
from kumulus.runtimes import directories
from kumulus.runtimes.base import WantedControlPlane
from kumulus.runtimes.kwok import api, etcd_space, kept
from kumulus.runtimes.kwok.layout import Layout, dump
from kumulus.runtimes.kwok.runtime import KwokRuntime
from tests.support import disk
from tests.support.said import Said
from tests.unit.runtimes.kwok.test_damage import DOCUMENTS, KUBECONFIG


def test_a_disk_with_room_is_not_spoken_of(tmp_path: Path) -> None:
    with disk.small(tmp_path, 128):
        assert directories.no_room(tmp_path / "not" / "there") == ""
        assert "no disk space" not in api.explain(Layout(tmp_path / "clusters" / "dev"), "etcd ended")


def test_a_full_disk_is_named_first_and_once(tmp_path: Path) -> None:
    with disk.small(tmp_path, 128):
        disk.fill(tmp_path)
        layout = Layout(tmp_path / "clusters" / "dev")
        full = f"no disk space: 0 MiB free at {layout.home}; free some, and run `pulumi up --refresh`"
        assert directories.no_room(layout.home) == full
        said = api.explain(layout, "etcd of cluster dev ended")
        assert said == f"{full}\n  etcd of cluster dev ended"
        assert api.explain(layout, said) == said


@pytest.mark.parametrize("changed", [True, False], ids=["settings changed", "etcd ended"])
def test_a_repair_on_a_full_disk_says_so_and_names_no_other_disk_for_a_cluster_that_is_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, changed: bool
) -> None:
    runtime, wanted = KwokRuntime(), WantedControlPlane("dev", "me", str(tmp_path), "")
    running = {} if changed else {"kwok-controller": [os.getpid()]}
    monkeypatch.setattr(processes, "running", lambda _: running)
    monkeypatch.setattr(processes, "end", lambda *_: None)
    with disk.small(tmp_path, 128):
        layout = Layout.of(str(tmp_path), "dev")
        layout.directory.mkdir(parents=True)
        layout.write_documents(DOCUMENTS)
        layout.kubeconfig.write_text(dump([KUBECONFIG]))
        etcd_space.change_quota(layout, wanted.options)
        layout.write_note({"owner": "me", "configuration": "old" if changed else runtime.configuration(wanted)})
        kept.keep(layout)
        disk.fill(tmp_path)
        with pytest.raises(ProviderError) as raised:
            asyncio.run(runtime.repair(wanted, "uid", Said()))
    assert str(raised.value) == f"no disk space left at {tmp_path}; free some, and run `pulumi up --refresh`"

"""A cluster's disk that is all but full is named, with the remedy, wherever the cluster fails of it."""

from __future__ import annotations

from pathlib import Path

from kumulus.runtimes import directories
from kumulus.runtimes.kwok import api
from kumulus.runtimes.kwok.layout import Layout
from tests.support import disk


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

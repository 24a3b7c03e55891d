"""A snapshot's file: what is written comes back, what is damaged is refused, what was there stays until all is well."""

import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from kumulus.extras.snapshots import file as snapshot_file
from kumulus.extras.snapshots.file import DamagedSnapshot, SnapshotSummary

ABOUT = SnapshotSummary("dev", "uid-1", "2026-11-22T12:00:00Z")
ENTRIES = [
    (b"/registry/minions/a", b"k8s\0" + bytes(range(256))),
    (b"/registry/pods/x/p", b""),
    (b"/registry/secrets/x/s", b"v" * 3_000_000),
]


def test_what_is_written_comes_back_with_what_it_is_of(tmp_path: Path) -> None:
    file = tmp_path / "snapshots" / "full.snapshot"
    made = snapshot_file.write(file, ABOUT, ENTRIES)
    assert (made.nodes, made.pods, made.keys) == (1, 1, 3)
    found, entries = snapshot_file.read(file)
    assert (found, list(entries)) == (made, ENTRIES)
    assert snapshot_file.about(file) == made
    # It holds the cluster's secrets.
    assert (file.stat().st_mode & 0o777, file.parent.stat().st_mode & 0o777) == (0o600, 0o700)
    assert file.stat().st_size < 100_000


def test_a_save_that_is_cut_off_leaves_the_last_one_whole_and_nothing_beside_it(tmp_path: Path) -> None:
    file = tmp_path / "full.snapshot"
    snapshot_file.write(file, ABOUT, ENTRIES)
    before = file.read_bytes()

    def cut_off() -> Iterator[tuple[bytes, bytes]]:
        yield ENTRIES[0]
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        snapshot_file.write(file, ABOUT, cut_off())
    assert file.read_bytes() == before
    assert list(tmp_path.iterdir()) == [file]


def test_a_save_that_is_killed_leaves_nothing_of_the_clusters_secrets(tmp_path: Path) -> None:
    killed = f"""
import os, signal
from pathlib import Path
from kumulus.extras.snapshots import file
def entries():
    yield b"/registry/secrets/a/b", os.urandom(2**20)
    os.kill(os.getpid(), signal.SIGKILL)
    yield b"", b""
file.write(Path({str(tmp_path / "full.snapshot")!r}), file.SnapshotSummary("dev", "uid", "now"), entries())
"""
    assert subprocess.run([sys.executable, "-c", killed], check=False).returncode == -signal.SIGKILL
    assert list(tmp_path.iterdir()) == []


def test_one_of_many_namespaces_and_forbidden_kinds_is_read_and_one_that_could_not_be_is_not_written(
    tmp_path: Path,
) -> None:
    file = tmp_path / "many.snapshot"
    names = tuple(f"team-{number:05d}-training-experiments" for number in range(9_000))
    made = snapshot_file.write(file, replace(ABOUT, form="objects", namespaces=names, forbidden=names), ENTRIES)
    found, entries = snapshot_file.read(file)
    assert (found, list(entries), snapshot_file.about(file)) == (made, ENTRIES, made)
    before = file.read_bytes()
    with pytest.raises(OSError, match="save fewer"):
        snapshot_file.write(file, replace(ABOUT, namespaces=names * 4), ENTRIES)
    assert file.read_bytes() == before


@pytest.mark.parametrize("at", [-1, -100, 400])
def test_a_changed_byte_anywhere_is_refused(tmp_path: Path, at: int) -> None:
    file = tmp_path / "full.snapshot"
    snapshot_file.write(file, ABOUT, ENTRIES)
    content = bytearray(file.read_bytes())
    content[at] ^= 1
    file.write_bytes(content)
    with pytest.raises(DamagedSnapshot, match="not as it was written"):
        snapshot_file.read(file)


def test_a_cut_file_one_of_a_later_version_and_what_is_none_are_refused(tmp_path: Path) -> None:
    file = tmp_path / "full.snapshot"
    snapshot_file.write(file, ABOUT, ENTRIES)
    content = file.read_bytes()
    file.write_bytes(content[:-10])
    with pytest.raises(DamagedSnapshot, match="not as it was written"):
        snapshot_file.read(file)
    line, _, rest = content.partition(b"\n")
    file.write_bytes(json.dumps({**json.loads(line), "version": 2}).encode() + b"\n" + rest)
    with pytest.raises(DamagedSnapshot, match="of version 2"):
        snapshot_file.read(file)
    for other in (b"", b"[]\n", b"{}\n", b'{"kind": "kumulus-snapshot", "version": 1}\n', b"\xff" * 5000):
        file.write_bytes(other)
        with pytest.raises(DamagedSnapshot):
            snapshot_file.read(file)

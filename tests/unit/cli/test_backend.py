"""What is read from a backend of files: who works on a stack, and which stacks have a cluster."""

import gzip
import json
import os
import socket
import subprocess
import sys
import threading
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from kumulus.cli.backend import at_work, clusters, half_written, with_cluster

TAKEN = datetime.now().astimezone().isoformat()


def lock(backend: Path, **changed: Any) -> None:
    folder = backend / ".pulumi" / "locks" / "organization" / "fleet" / "dev"
    folder.mkdir(parents=True, exist_ok=True)
    content = {"pid": os.getpid(), "username": "kim", "hostname": socket.gethostname(), "timestamp": TAKEN, **changed}
    (folder / "1b0c.json").write_text(json.dumps(content))


def test_who_works_on_a_stack_is_told_while_it_lives(tmp_path: Path) -> None:
    assert at_work(tmp_path, "fleet", "dev") is None
    lock(tmp_path)
    assert at_work(tmp_path, "fleet", "dev") == f"pid {os.getpid()} (kim, since {TAKEN[11:19]})"
    assert at_work(tmp_path, "fleet", "prod") is None
    assert at_work(tmp_path, "other", "dev") is None


def test_a_lock_of_what_was_killed_or_is_elsewhere_is_pulumis_to_tell(tmp_path: Path) -> None:
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    lock(tmp_path, pid=ended.pid)
    assert at_work(tmp_path, "fleet", "dev") is None
    # By now its number is that of another process.
    lock(tmp_path, timestamp="2026-11-22T10:44:02.512345678+01:00")
    assert at_work(tmp_path, "fleet", "dev") is None
    lock(tmp_path, hostname="another")
    assert at_work(tmp_path, "fleet", "dev") is None


def test_a_lock_whose_time_cannot_be_read_is_that_of_a_process_that_runs(tmp_path: Path) -> None:
    lock(tmp_path, timestamp="soon")
    assert at_work(tmp_path, "fleet", "dev") == f"pid {os.getpid()} (kim, since )"


def test_a_damaged_packed_state_has_no_clusters(tmp_path: Path) -> None:
    file = tmp_path / ".pulumi" / "stacks" / "fleet" / "dev.json.gz"
    file.parent.mkdir(parents=True)
    packed = gzip.compress(json.dumps({"checkpoint": {}}).encode())
    file.write_bytes(packed[:10] + b"\xff" * 20 + packed[30:])
    assert clusters(tmp_path, "fleet", "dev") == []


def test_a_lock_that_is_half_written_is_passed_over(tmp_path: Path) -> None:
    lock(tmp_path)
    (file,) = (tmp_path / ".pulumi" / "locks").rglob("*.json")
    file.write_text(file.read_text()[:20])
    assert at_work(tmp_path, "fleet", "dev") is None


@pytest.mark.parametrize("left", ["", '{"user.cache_con'])
@pytest.mark.parametrize("place", ["stacks/fleet/dev.json", "locks/organization/fleet/dev/1b0c.json"])
def test_what_a_pulumi_that_was_killed_left_of_a_description_is_found(tmp_path: Path, place: str, left: str) -> None:
    for name in (place, "stacks/fleet/whole.json"):
        (tmp_path / ".pulumi" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / ".pulumi" / f"{name}.attrs").write_text('{"user.content_type": "text/plain"}')
    assert half_written(tmp_path) == []
    cut = tmp_path / ".pulumi" / f"{place}.attrs"
    cut.write_text(left)
    assert half_written(tmp_path) == [cut]


def test_a_description_that_is_just_being_written_is_no_mistake(tmp_path: Path) -> None:
    being_written = tmp_path / ".pulumi" / "stacks" / "fleet" / "dev.json.attrs"
    being_written.parent.mkdir(parents=True)
    being_written.touch()
    soon = threading.Timer(0.2, lambda: being_written.write_text("{}"))
    soon.start()
    assert half_written(tmp_path) == []
    soon.join()
    assert being_written.read_text() == "{}"


@pytest.mark.parametrize("packed", [False, True])
def test_stacks_with_a_cluster_are_found_by_their_state(tmp_path: Path, packed: bool) -> None:
    up, gone = tmp_path / "clusters" / "old", tmp_path / "clusters" / "gone"
    up.mkdir(parents=True)
    folder = tmp_path / ".pulumi" / "stacks" / "fleet"
    folder.mkdir(parents=True)
    for name, directory in {"old": up, "gone": gone, "prod": up}.items():
        resources = [
            {"type": "pulumi:pulumi:Stack"},
            {"type": "kumulus:index:Cluster", "outputs": {"directory": str(directory)}},
        ]
        text = json.dumps({"checkpoint": {"latest": {"resources": resources}}}).encode()
        file = folder / f"{name}.json{'.gz' if packed else ''}"
        file.write_bytes(gzip.compress(text) if packed else text)
    (folder / "empty.json").write_text(json.dumps({"checkpoint": {"latest": None}}))
    (folder / "old.json.bak").write_text("{}")
    assert with_cluster(tmp_path, "fleet", but=["prod"]) == {"old": up}

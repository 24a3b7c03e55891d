"""What a backend that is a directory of this machine says about the stacks in it, without asking pulumi.

Its layout is that of Pulumi's backend for files and buckets (pkg/backend/diy): `.pulumi/stacks/PROJECT/STACK.json`,
and while an update runs `.pulumi/locks/organization/PROJECT/STACK/ID.json`.
"""

import gzip
import json
import socket
import time
import zlib
from collections.abc import Iterable
from datetime import datetime
from pathlib import Path
from typing import Any

_CLUSTER = "kumulus:index:Cluster"
# How long a running pulumi gets to write the few bytes of a description.
_SECONDS_TO_WRITE = 1.0
# By how much the machine's clock may have been set since a lock was taken.
_CLOCK_SECONDS = 60.0


def at_work(backend: Path, project: str, stack: str) -> str | None:
    """The process on this machine that is working on a stack: `pid 4242 (kim, since 10:44:02)`.

    None if that process is gone, or is on another machine: pulumi itself then says `pulumi cancel`, which is right.
    """
    for file in sorted((backend / ".pulumi" / "locks" / "organization" / project / stack).glob("*.json")):
        lock = _read(file)
        pid, taken = lock.get("pid"), str(lock.get("timestamp", ""))
        if lock.get("hostname") == socket.gethostname() and isinstance(pid, int) and _took(pid, taken):
            return f"pid {pid} ({lock.get('username')}, since {taken.partition('T')[2][:8]})"
    return None


def _took(pid: int, taken: str) -> bool:
    """Whether the process that took a lock at that time still runs; since a reboot, another may have its number."""
    # The packages are there by now, which the commands' help does without.
    import psutil

    try:
        return psutil.Process(pid).create_time() <= datetime.fromisoformat(taken).timestamp() + _CLOCK_SECONDS
    except (psutil.Error, ValueError):
        return psutil.pid_exists(pid)


def half_written(backend: Path) -> list[Path]:
    """Descriptions of state files (`NAME.json.attrs`) that a killed pulumi left empty or truncated.

    Pulumi writes a file next to the old one and renames it, but writes its description (a content type and a checksum)
    in place. With a damaged one it fails for all stacks of the backend: `failed to load checkpoint: EOF`. Without the
    description it reads the state as it is.
    """

    def found() -> set[Path]:
        folders = (backend / ".pulumi" / name for name in ("stacks", "locks"))
        return {each for folder in folders for each in folder.rglob("*.attrs") if not _is_json(each)}

    there = found()
    if there:
        time.sleep(_SECONDS_TO_WRITE)
        there &= found()
    return sorted(there)


def with_cluster(backend: Path, project: str, but: Iterable[str]) -> dict[str, Path]:
    """The stacks, except those in `but`, with a recorded cluster whose directory is there; of several, the last one's.

    Python before 3.14 cannot read what Pulumi has packed as `.zst`: such a state is not seen.
    """
    left_out, found = set(but), {}
    for file in sorted((backend / ".pulumi" / "stacks" / project).glob("*.json*")):
        stack, _, ending = file.name.rpartition(".json")
        if stack in left_out or ending not in ("", ".gz"):
            continue
        for outputs in _clusters(file):
            directory = outputs.get("directory")
            if isinstance(directory, str) and Path(directory).is_dir():
                found[stack] = Path(directory)
    return found


def clusters(backend: Path, project: str, stack: str) -> list[dict[str, Any]]:
    """The recorded outputs of each of a stack's clusters; none of a state that is packed as `.zst`."""
    folder = backend / ".pulumi" / "stacks" / project
    return [found for ending in ("", ".gz") for found in _clusters(folder / f"{stack}.json{ending}")]


def _clusters(file: Path) -> list[dict[str, Any]]:
    resources = ((_read(file).get("checkpoint") or {}).get("latest") or {}).get("resources") or []
    return [each.get("outputs") or {} for each in resources if each.get("type") == _CLUSTER]


def _read(file: Path) -> dict[str, Any]:
    try:
        content = file.read_bytes()
        found = json.loads(gzip.decompress(content) if file.suffix == ".gz" else content)
    except (OSError, ValueError, EOFError, zlib.error):
        # It is being removed or written right now, is damaged, or we may not read it.
        return {}
    return found if isinstance(found, dict) else {}


def _is_json(file: Path) -> bool:
    try:
        json.loads(file.read_bytes())
    except OSError:
        # It is being removed right now, or we may not read it.
        return True
    except ValueError:
        return False
    return True

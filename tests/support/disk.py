"""A file system of limited size, for tests of a full disk."""

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from io import RawIOBase
from pathlib import Path
from typing import NoReturn

import pytest


@contextmanager
def small(place: Path, megabytes: int) -> Iterator[Path]:
    """Mount a file system of this many MiB on a directory; skips the test where that is not allowed."""
    if os.geteuid() != 0:
        pytest.skip("mounting a small file system takes root")
    options = ["-t", "tmpfs", "-o", f"size={megabytes}m"]
    mounted = subprocess.run(["mount", *options, "tmpfs", place], capture_output=True, text=True, check=False)
    if mounted.returncode != 0:
        pytest.skip(f"a small file system cannot be mounted: {mounted.stderr.strip()}")
    try:
        yield place
    finally:
        subprocess.run(["umount", "--lazy", place], check=True)


def resize(place: Path, spare: int) -> None:
    """Leave about this many bytes free on a file system of :func:`small`, which may be written to at the same time."""
    for more in range(64):
        state = os.statvfs(place)
        size = (state.f_blocks - state.f_bfree) * state.f_frsize + spare + (more << 18)
        remount = ["mount", "-o", f"remount,size={size}", str(place)]
        if subprocess.run(remount, stderr=subprocess.DEVNULL, check=False).returncode == 0:
            return
    raise AssertionError(f"{place} cannot be made smaller")


def fill(place: Path) -> None:
    """Use up all space of a file system with the file `place/filling`; removing that file frees it."""
    block = bytes(2**16)
    with (place / "filling").open("wb", buffering=0) as filling, pytest.raises(OSError, match="No space left"):
        _write_on(filling, block)


def _write_on(file: RawIOBase, block: bytes) -> NoReturn:
    while True:
        file.write(block)

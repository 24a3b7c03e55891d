"""How much memory there is, in a container and outside."""

from __future__ import annotations

from pathlib import Path

import psutil
import pytest

from kumulus.host import memory

MACHINE = psutil.virtual_memory().total


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("memory.max", "1073741824\n", 2**30),
        ("memory.max", "max\n", MACHINE),
        ("memory.max", f"{MACHINE * 4}\n", MACHINE),
        ("memory/memory.limit_in_bytes", "2147483648\n", 2**31),
        ("memory/memory.limit_in_bytes", "9223372036854771712\n", MACHINE),
    ],
)
def test_the_limit_of_a_container_counts(tmp_path: Path, name: str, text: str, expected: int) -> None:
    file = tmp_path / name
    file.parent.mkdir(exist_ok=True)
    file.write_text(text)
    assert memory.total(tmp_path) == expected


def test_without_control_groups_it_is_the_machines(tmp_path: Path) -> None:
    assert memory.total(tmp_path / "none") == MACHINE

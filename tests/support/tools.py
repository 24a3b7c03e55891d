"""Tools that not every machine has."""

import pytest

from kumulus import toolchain


def missing(*names: str) -> str:
    """Which of these tools this machine lacks first, and how to get it; empty if it has them all."""
    try:
        for name in names:
            toolchain.find(name)
    except toolchain.ToolMissing as error:
        return str(error)
    return ""


def require(*names: str) -> None:
    """Skip the test on a machine that lacks one of these tools."""
    if lacking := missing(*names):
        pytest.skip(lacking.splitlines()[0])

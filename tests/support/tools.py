"""Tools that not every machine has: a test that needs them is skipped where they are not."""

import pytest

from kumulus import toolchain


def require(*names: str) -> None:
    """Skip the test on a machine that lacks one of these tools; the message says how to get it."""
    try:
        for name in names:
            toolchain.find(name)
    except toolchain.ToolMissing as error:
        pytest.skip(str(error))

"""A project with a few tools, which tests fetch and build."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.unit.toolchain.sample import Sample


@pytest.fixture
def sample(tmp_path: Path) -> Iterator[Sample]:
    made = Sample(tmp_path)
    made.write()
    yield made
    made.close()

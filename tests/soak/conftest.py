"""One stack for all trials of a module, removed at its end."""

from collections.abc import Iterator

import pytest

from tests.soak.rig import Rig
from tests.support.project import Project


@pytest.fixture(scope="module")
def rig(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rig]:
    """A stack that is up with three nodes."""
    project = Project(tmp_path_factory.mktemp("soak"))
    try:
        made = Rig(project)
        made.become(made.wanted)
        yield made
    finally:
        project.close()

"""One stack for all trials of a module, removed at its end."""

from collections.abc import Iterator

import pytest

from tests.soak.rig import Rig
from tests.support.project import Project
from tests.support.trials import soaking

# That two clusters and two stacks do not meet, each commit sees in tests/integration/test_kwok_runtime.py and
# tests/e2e/test_many_clusters.py.
collect_ignore = [] if soaking() else ["test_side_by_side.py"]


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

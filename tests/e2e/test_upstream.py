"""Kubernetes' own end-to-end tests: of the specs that need no container, those fail that are listed, and no other."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from kumulus.testing import Cluster
from tests.support import upstream

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.timeout(3600),
    pytest.mark.skipif(
        not all(map(shutil.which, upstream.PROGRAMS)),
        reason="e2e.test is not on PATH; python -m tests.support.upstream build FOLDER makes it, in ten minutes",
    ),
]


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with upstream.cluster() as made:
        yield made


@pytest.mark.parametrize("suite", upstream.expected()["passed"])
def test_the_specs_fail_that_are_listed_and_no_other(suite: str, cluster: Cluster, tmp_path: Path) -> None:
    found = upstream.run(suite, str(cluster.kubeconfig), tmp_path)
    assert upstream.changes(suite, found) == []

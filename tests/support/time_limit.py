"""Which tests of clusters begin, and when: none after a given time, with ``--clusters-until``, which CI uses.

A machine at a third of its usual speed would otherwise need more than the 90 minutes that CI allows, and then there
would be no result of any test. Omitted tests are reported as skipped; unit tests always run. So that no file is always
among the omitted ones, the order is another one each day: see :func:`rank`. Which process begins a test is here, too.
"""

import re
import subprocess
import time
from collections.abc import Callable, Collection
from pathlib import Path

import pytest
from xdist.remote import Producer
from xdist.scheduler import LoadFileScheduling

from tests.support import versions

_START_CLUSTERS = ("e2e", "integration")
_COMMITS, _AT_ONCE = 30, 40
"""What these last commits have changed is likely to break; one that changed more files than this moved or renamed."""
_A_DAY = 86_400
_TURN = 0.382
"""By this share of the files, the first one is further on each day: then three days have begun every file, if each has
time for two fifths of them."""


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--clusters-until",
        type=float,
        metavar="SECONDS",
        help="skip tests that start clusters and would begin later than this, in seconds since 1970",
    )


def rank(files: Collection[str], changed: Collection[str], day: int) -> Callable[[str], tuple[int, int]]:
    """By what files with tests of clusters are sorted where not all have time.

    First those that the last commits changed, then those on a control plane that they share, as most take seconds, then
    those that run pulumi, from another one on each day.
    """
    last = sorted(name for name in files if name not in changed and "integration/" not in name)
    first = int(day * _TURN % 1 * len(last))
    turns = {name: (number - first) % len(last) for number, name in enumerate(last)}
    return lambda name: (2, turns[name]) if name in turns else (int(name not in changed), 0)


def changed_files(root: Path) -> set[str]:
    """What the last commits changed, relative to the repository; nothing where there is no repository."""
    line = ["git", "log", f"-{_COMMITS}", "--name-only", "--format=%x00"]
    said = subprocess.run(line, cwd=root, capture_output=True, text=True, check=False).stdout
    commits = [names.split("\n") for names in said.split("\0")]
    return {name for names in commits if len(names) <= _AT_ONCE for name in names if name}


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Put the tests of clusters, behind all others, into the order of their files' ranks."""
    until: float | None = config.getoption("clusters_until")
    if until is None:
        return
    files = {item.nodeid.partition("::")[0] for item in items if starts_clusters(item)}
    # Each of xdist's processes has to come to the same order, also at midnight.
    key = rank(files, changed_files(config.rootpath), int(until // _A_DAY))

    def place(item: pytest.Item) -> tuple[int, int]:
        file = item.nodeid.partition("::")[0]
        return key(file) if file in files else (-1, 0)

    items.sort(key=place)


def starts_clusters(item: pytest.Item) -> bool:
    return any(item.get_closest_marker(name) for name in _START_CLUSTERS)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip a test before its fixtures are made."""
    until: float | None = item.config.getoption("clusters_until")
    if until is not None and time.time() > until and starts_clusters(item):
        pytest.skip("no time is left for tests that start clusters (--clusters-until)")


class OneForAVersion(LoadFileScheduling):  # type: ignore[misc]
    """A file is for one process; so are the tests of all files on another Kubernetes version: on one control plane."""

    _others = re.compile(rf"[-\[]({'|'.join(map(re.escape, versions.on_offer()[1:]))})[]-]")

    def _split_scope(self, nodeid: str) -> str:
        version = self._others.search(nodeid)
        return version[1] if version else super()._split_scope(nodeid)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> LoadFileScheduling | None:
    return OneForAVersion(config, log) if config.getoption("dist") == "loadfile" else None

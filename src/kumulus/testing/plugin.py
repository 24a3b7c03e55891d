"""The pytest plugin: the fixtures `kumulus` and `kumulus_cluster`.

pytest imports this for everybody who has Kumulus installed, so it imports nothing of Kumulus until a fixture is used.
"""

from __future__ import annotations

import os
import sysconfig
import warnings
from collections.abc import Generator, Iterator
from contextlib import nullcontext
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from kumulus.testing import Cluster
    from kumulus.testing.wanted import Nodes

_FIXTURES = ("kumulus", "kumulus_cluster")
_SHOWN_EVENTS, _SHOWN_LINES = 20, 3
# What is left standing, in words for the user.
_KEPT = pytest.StashKey[list[str]]()
# Whether a test has failed.
_FAILED = pytest.StashKey[bool]()
# The cluster that all workers share, in the process that started it; and its folder, in the workers.
_SHARED = pytest.StashKey["Cluster"]()
_SHARED_FOLDER = "kumulus_folder"


class KumulusWarning(pytest.PytestWarning):
    """What a test has left in its cluster that had to be forced, or could not be put back."""


class _RunCluster:
    """The cluster of a run, started when a test first asks for it, and another one after a test that spoilt it.

    Where all workers of pytest-xdist share a cluster, it is a namespace of that one.
    """

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._started = 0
        self.cluster: Cluster | None = None

    def started(self) -> Cluster:
        if self.cluster is None:
            self._started += 1
            wanted = self._namespace() if _workers_share(self._config) else _cluster(self._config)
            self.cluster = _started(self._config, wanted)
        return self.cluster

    def _namespace(self) -> Cluster:
        """A namespace of the cluster that all workers share; after a test that keeps or spoils it, another one."""
        from kumulus.testing import Cluster
        from kumulus.testing.share import NamespaceShare

        worker = os.environ.get("PYTEST_XDIST_WORKER", "main")
        folder = getattr(self._config, "workerinput", {}).get(_SHARED_FOLDER) or _shared_cluster(self._config).folder
        return Cluster.of(NamespaceShare(Path(folder), f"test-{worker}-{self._started}", **_arguments(self._config)))

    def after(self, *, failed: bool) -> None:
        """Put the cluster back for the next test, unless it is to be kept as a failed test left it."""
        assert self.cluster is not None
        if failed and self._config.getoption("kumulus_keep"):
            self._end(keep=True)
            return
        from kumulus.testing import ClusterError

        try:
            done = self.cluster.reset()
        except ClusterError as error:
            warnings.warn(KumulusWarning(f"the next test has a new cluster: {error}"), stacklevel=1)
            self._end(keep=False)
            return
        if done.forced:
            warnings.warn(KumulusWarning(f"removed all the same: {', '.join(done.forced)}"), stacklevel=1)

    def end(self) -> None:
        if self.cluster is not None:
            self._end(keep=self._config.getoption("kumulus_keep") and not self._config.stash[_KEPT])

    def _end(self, *, keep: bool) -> None:
        assert self.cluster is not None
        cluster, self.cluster = self.cluster, None
        if keep and _workers_share(self._config):
            self._config.stash[_KEPT].append(f"a failed test's objects are in namespace {cluster.namespace}")
            keep = False
        _end(self._config, cluster, keep=keep)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Declare the options."""
    group = parser.getgroup("kumulus", "emulated Kubernetes clusters (kumulus)")
    group.addoption(
        "--kumulus-keep",
        action="store_true",
        help="leave a failed test's cluster standing, and say how to reach and remove it; without failure the last one",
    )
    group.addoption(
        "--kumulus-share",
        action="store_true",
        help="one cluster for all workers of pytest-xdist, in which each has a namespace of its own",
    )
    group.addoption("--kumulus-stack", metavar="FILE", help="the stack file that says what the cluster is like")
    parser.addini("kumulus_stack", "the stack file that says what the cluster is like; below the root directory")
    parser.addini("kumulus_nodes", "its nodes: a number, or numbers by machine such as h100=100 (default: 3)", "args")
    parser.addini("kumulus_share", "as --kumulus-share", "bool", default=False)
    parser.addini("kumulus_kubernetes", "its Kubernetes version, such as 1.36.4")


def pytest_configure(config: pytest.Config) -> None:
    """Declare the mark, and what is remembered for the end of the run."""
    config.addinivalue_line(
        "markers", "kumulus(**cluster): what the test's own cluster is like, as arguments of kumulus.testing.Cluster"
    )
    config.stash[_KEPT] = []


@pytest.fixture(scope="session")
def _kumulus_run(pytestconfig: pytest.Config) -> Iterator[_RunCluster]:
    found = _RunCluster(pytestconfig)
    yield found
    found.end()


@pytest.fixture
def kumulus(_kumulus_run: _RunCluster, request: pytest.FixtureRequest) -> Iterator[Cluster]:
    """An emulated cluster, one for the whole run, put back after each test to what it was at first."""
    is_marked = any(mark.name == "kumulus" for mark in request.node.own_markers)
    if is_marked and "kumulus_cluster" not in request.fixturenames:
        from kumulus.testing import ClusterError

        raise ClusterError(
            "the mark kumulus(…) says what the cluster of the fixture `kumulus_cluster` is like: take that one, or "
            "say in pytest.ini what the cluster of all tests is like (kumulus_nodes)"
        )
    yield _kumulus_run.started()
    _kumulus_run.after(failed=request.node.stash.get(_FAILED, False))


@pytest.fixture
def kumulus_cluster(request: pytest.FixtureRequest) -> Iterator[Cluster]:
    """An emulated cluster of the test's own; the mark `kumulus(nodes=…)` says what it is like."""
    from kumulus.testing import Cluster

    mark = request.node.get_closest_marker("kumulus")
    wanted = Cluster(**mark.kwargs) if mark and mark.kwargs else _cluster(request.config)
    cluster = _started(request.config, wanted)
    yield cluster
    keep = request.config.getoption("kumulus_keep") and request.node.stash.get(_FAILED, False)
    _end(request.config, cluster, keep=keep)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Add the cluster's events and its components' last lines to a failed test's report, unless Kumulus' error says it.

    Of such an error, only the test's own lines are shown, but with `--full-trace`.
    """
    # Only a fixture that was set up is among these.
    fixtures = getattr(item, "funcargs", {})
    clusters = [fixtures[name] for name in _FIXTURES if name in fixtures]
    uses_clusters = bool(clusters) or any(name in _FIXTURES for name in getattr(item, "fixturenames", []))
    # Nothing of Kumulus is imported for tests without its clusters.
    error = call.excinfo if uses_clusters else None
    if error is not None and not _is_cluster_error(error.value):
        error = None
    shortened = None if item.config.getoption("fulltrace") else error
    if shortened is not None:
        _cut(shortened.tb)
    report = yield
    if shortened is not None and not clusters:
        # The test's cluster could not be made, before the test began: no line of the test's own is in the traceback.
        path, line, _ = item.location
        report.longrepr = f"E   {shortened.value}\n\n{path}:{(line or 0) + 1}: {shortened.typename}"
    if report.failed:
        item.stash[_FAILED] = True
        if report.when == "call" and error is None:
            report.sections += [section for cluster in clusters for section in _sections(cluster)]
    return report


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Hand what is left standing to the process that shows it, from a worker of pytest-xdist; end what all shared."""
    config = session.config
    output = getattr(config, "workeroutput", None)
    if output is not None:
        output["kumulus_kept"] = config.stash[_KEPT]
    if (shared := config.stash.get(_SHARED, None)) is not None:
        _end(config, shared, keep=bool(config.stash[_KEPT]))


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """Tell a worker of pytest-xdist where the cluster is that all of them share."""
    if _workers_share(node.config):
        node.workerinput[_SHARED_FOLDER] = str(_shared_cluster(node.config).folder)


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """Take over from a worker of pytest-xdist what it has left standing."""
    node.config.stash[_KEPT] += (getattr(node, "workeroutput", None) or {}).get("kumulus_kept", [])


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    """Say what is left standing, how to reach and how to remove it."""
    for text in config.stash[_KEPT]:
        terminalreporter.section("a cluster is left standing")
        terminalreporter.line(text)


def _workers_share(config: pytest.Config) -> bool:
    return bool(config.getoption("kumulus_share") or config.getini("kumulus_share"))


def _shared_cluster(config: pytest.Config) -> Cluster:
    """The cluster that all workers share, started when it is first asked for."""
    if _SHARED not in config.stash:
        config.stash[_SHARED] = _started(config, _cluster(config))
    return config.stash[_SHARED]


def _started(config: pytest.Config, cluster: Cluster) -> Cluster:
    """Start a cluster; what is said of tools that it gets, or waits for, is shown at once, not captured."""
    capture = config.pluginmanager.getplugin("capturemanager")
    with capture.global_and_fixture_disabled() if capture else nullcontext():
        return cluster.start()


def _cluster(config: pytest.Config) -> Cluster:
    from kumulus.testing import Cluster

    return Cluster(**_arguments(config))


def _arguments(config: pytest.Config) -> dict[str, Any]:
    """What pytest's configuration says that the cluster is like, as arguments of `Cluster`."""
    version = config.getini("kumulus_kubernetes")
    sections = {"kubernetesVersion": version} if version else {}
    stack = config.getoption("kumulus_stack") or config.getini("kumulus_stack")
    if stack:
        return {"spec": config.rootpath / stack, **sections}
    return {"nodes": _nodes(config.getini("kumulus_nodes")), **sections}


def _nodes(words: list[str]) -> Nodes:
    """The nodes in pytest's configuration; raises UsageError if it cannot be read."""
    from kumulus.testing.wanted import nodes_of

    try:
        return nodes_of(words)
    except ValueError:
        raise pytest.UsageError(f"kumulus_nodes is {' '.join(words)!r}; write 30, or h100=100 l4=20") from None


def _is_cluster_error(error: BaseException) -> bool:
    from kumulus.testing import ClusterError

    return isinstance(error, ClusterError)


def _cut(traceback: TracebackType) -> None:
    """End a traceback with the last line that is neither Kumulus' nor Python's."""
    kumulus, python = str(Path(__file__).parents[1]), sysconfig.get_path("stdlib")
    last, each = traceback, traceback.tb_next
    while each is not None:
        path = each.tb_frame.f_code.co_filename
        # Other packages are installed in a folder of the standard library's.
        is_pythons = path.startswith(python) and "site-packages" not in path
        if not path.startswith(kumulus) and not is_pythons:
            last = each
        each = each.tb_next
    last.tb_next = None


def _sections(cluster: Cluster) -> Iterator[tuple[str, str]]:
    from kumulus.testing import ClusterError
    from kumulus.testing.views import last_events

    try:
        events = last_events(cluster.events(), _SHOWN_EVENTS)
        yield "the cluster's last events", "\n".join(map(str, events)) or "none"
    except ClusterError as error:
        yield "the cluster does not answer", str(error)
    yield "its components' last lines", cluster.logs(lines=_SHOWN_LINES)


def _end(config: pytest.Config, cluster: Cluster, *, keep: bool) -> None:
    if keep:
        config.stash[_KEPT].append(cluster.keep())
    cluster.stop()

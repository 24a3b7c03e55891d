"""Retry the few tests that failed in the parallel run, one at a time: ``--second-try``, which CI uses.

The tests run control planes in parallel on shared machines. A test that fails there and passes alone is reported by
name with its first failure and counted as flaky; one that fails twice, or is skipped then, is a failure. Why:
docs/decisions/second-try.md.
"""

import subprocess
import sys
from collections.abc import Collection, Generator, Sequence

import pytest
from _pytest.terminal import TerminalReporter

MOST = 5
"""With more failures than these, it is not the machine."""


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--second-try", action="store_true", help=f"try up to {MOST} failed tests once more, alone")
    parser.addoption("--again", action="append", default=[], help="run this test, which must not be skipped now")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """A test that is skipped at its second try has failed, but not one that was expected to fail."""
    report = yield
    if item.nodeid in item.config.getoption("again") and report.skipped and not hasattr(report, "wasxfail"):
        report.outcome = "failed"
    return report


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """With ``--again``, leave out all other tests, but those of their file from whose stack they go on."""
    if again := config.getoption("again"):
        kept = with_those_before(items, again)
        config.hook.pytest_deselected(items=[each for each in items if each not in kept])
        items[:] = kept


def with_those_before(items: Sequence[pytest.Item], again: Collection[str]) -> list[pytest.Item]:
    """Some tests, and where they share `module_project`, the ones before them: these share it in their order."""
    last = {item.path: place for place, item in enumerate(items) if item.nodeid in again}
    return [
        item
        for place, item in enumerate(items)
        if item.nodeid in again
        or (place < last.get(item.path, 0) and "module_project" in getattr(item, "fixturenames", ()))
    ]


def failed(reporter: TerminalReporter) -> tuple[list[str], int]:
    """The node ids of tests that failed, each once; and of how many causes, as far as can be said.

    A fixture that cannot be set up fails all tests of its file that have it: these count as one.
    """
    reports = [*reporter.stats.get("failed", []), *reporter.stats.get("error", [])]
    causes = {each.nodeid.partition("::")[0] if each.when == "setup" else each.nodeid for each in reports}
    return list(dict.fromkeys(report.nodeid for report in reports)), len(causes)


@pytest.hookimpl(tryfirst=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """Retry the failed tests; those that pass now are flaky."""
    if not session.config.getoption("second_try") or hasattr(session.config, "workerinput"):
        return
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    assert isinstance(reporter, TerminalReporter)
    again, causes = failed(reporter)
    if session.exitstatus != pytest.ExitCode.TESTS_FAILED or not 0 < causes <= MOST:
        return
    reporter.section(f"a second try, alone, of {len(again)}")
    # One that is skipped now shows nothing.
    files = dict.fromkeys(each.partition("::")[0] for each in again)
    wanted = [f"--again={each}" for each in again]
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-n", "0", *wanted, *files]
    if subprocess.run(command, cwd=session.config.rootpath, check=False).returncode:
        return
    for kind in ("failed", "error"):
        for report in reporter.stats.pop(kind, []):
            reporter.section(f"failed at first: {report.nodeid} ({report.when})", sep="_")
            reporter.write_line(report.longreprtext)
            reporter.stats.setdefault("flaky", []).append(report)
    session.exitstatus = pytest.ExitCode.OK

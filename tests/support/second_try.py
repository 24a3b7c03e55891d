"""Retry the few tests that failed in the parallel run, one at a time: ``--second-try``, which CI uses.

The tests run control planes in parallel on shared machines. A test that fails there and passes alone is reported by
name with its first failure and counted as flaky; one that fails twice, or is skipped then, is a failure, as are all
where the time of ``--clusters-until`` is long over. Why: docs/decisions/second-try.md.
"""

import subprocess
import sys
import time
from collections.abc import Generator

import pytest
from _pytest.terminal import TerminalReporter

MOST = 8
"""With more failures than these, it is not the machine."""
GRACE = 600
"""Seconds after the time of ``--clusters-until`` by which a second try has to end."""


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--second-try", action="store_true", help=f"try up to {MOST} failed tests once more, alone")
    parser.addoption("--no-skips", action="store_true", help="a skipped test is a failure")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """With ``--no-skips``, a test that is skipped has failed, but not one that was expected to fail."""
    report = yield
    if item.config.getoption("no_skips") and report.skipped and not hasattr(report, "wasxfail"):
        report.outcome = "failed"
    return report


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
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-n", "0", "--no-skips", *again]
    until: float | None = session.config.getoption("clusters_until", None)
    patience = None if until is None else max(0.0, until + GRACE - time.time())
    try:
        if subprocess.run(command, cwd=session.config.rootpath, check=False, timeout=patience).returncode:
            return
    except subprocess.TimeoutExpired:
        reporter.write_line("no time is left for a second try (--clusters-until)")
        return
    for kind in ("failed", "error"):
        for report in reporter.stats.pop(kind, []):
            reporter.section(f"failed at first: {report.nodeid} ({report.when})", sep="_")
            reporter.write_line(report.longreprtext)
            reporter.stats.setdefault("flaky", []).append(report)
    session.exitstatus = pytest.ExitCode.OK

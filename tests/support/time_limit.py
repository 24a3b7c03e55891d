"""Start no more tests that use clusters after a given time: ``--clusters-until``, which CI uses.

A machine at a third of its usual speed would otherwise need more than the 90 minutes that CI allows, and then there
would be no result of any test. Omitted tests are reported as skipped; unit tests always run.
"""

import time

import pytest

_START_CLUSTERS = ("e2e", "integration")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--clusters-until",
        type=float,
        metavar="SECONDS",
        help="skip tests that start clusters and would begin later than this, in seconds since 1970",
    )


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip a test before its fixtures are made."""
    until: float | None = item.config.getoption("clusters_until")
    if until is None or time.time() <= until:
        return
    if any(item.get_closest_marker(name) for name in _START_CLUSTERS):
        pytest.skip("no time is left for tests that start clusters (--clusters-until)")

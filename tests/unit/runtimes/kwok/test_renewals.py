"""Which leases have run out, and when that means a controller that renews none; on a real one in integration."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from kumulus.runtimes.kwok.renewals import expired

NOW = datetime(2026, 11, 23, 3, 0, tzinfo=UTC)
LASTS = 200.0


@pytest.mark.parametrize(
    ("ages", "ended"),
    [
        ([], 0),
        ([10, 60, 190], 0),
        ([10, 60, 201], 0),  # one node that is late is no controller that is stuck
        ([10, 201], 0),
        ([1, 201, 300], 2),  # of a node in the queue twice the lease is renewed all the time
        ([201, 300, 4000], 3),
    ],
)
def test_a_controller_is_suspect_when_most_leases_have_run_out(ages: list[float], ended: int) -> None:
    held = {f"n-{number}": (NOW - timedelta(seconds=age), LASTS) for number, age in enumerate(ages)}
    assert len(expired(held, NOW)) == ended

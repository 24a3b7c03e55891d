"""A program that runs alongside a test: how it ended is said where the test fails."""

import os
import sys
import time

import pytest

from kumulus.testing import AsyncCluster, ClusterError
from kumulus.testing.programs import Program, running

CRASHES = [sys.executable, "-c", "raise SystemExit('no config')"]


@pytest.mark.parametrize(("dies", "notes"), [(True, ["had ended by itself before, with exit code 3"]), (False, [])])
def test_the_error_of_a_block_says_that_its_program_was_dead_by_then(dies: bool, notes: list[str]) -> None:
    code = "raise SystemExit(3)" if dies else "import time; time.sleep(60)"

    def fails() -> None:
        with running([sys.executable, "-c", code], os.environ, []) as program:
            if dies:
                program.wait(timeout=60)
            raise AssertionError("not cordoned")

    with pytest.raises(AssertionError, match="not cordoned") as failure:
        fails()
    assert getattr(failure.value, "__notes__", []) == [f"{sys.executable} {note}" for note in notes]


def test_a_program_that_crashed_is_the_blocks_error_with_its_last_lines(capfd: pytest.CaptureFixture[str]) -> None:
    with (
        pytest.raises(ClusterError, match=r"ended by itself with exit code 1; its last lines:\n  no config"),
        running(CRASHES, os.environ, []) as program,
    ):
        program.wait(timeout=60)
    assert capfd.readouterr().err == "no config\n"


@pytest.mark.parametrize("code", ["pass", "import time; time.sleep(60)"], ids=["ends with 0", "is ended by the test"])
def test_a_program_that_came_to_a_good_end_or_that_the_test_ended_is_no_error(code: str) -> None:
    among: list[Program] = []
    with running([sys.executable, "-c", code], os.environ, among) as program:
        assert among == [program]
        if "sleep" in code:
            program.terminate()
        program.wait(timeout=60)
    assert among == []


async def test_a_wait_ends_at_once_when_a_program_has_crashed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(AsyncCluster, "env", {})
    cluster, begun = AsyncCluster(nodes=1), time.monotonic()
    while_ = "ended by itself with exit code 1, while cordons was waited for; its last lines:\n  no config"
    with pytest.raises(ClusterError, match=while_) as failure, cluster.run(*CRASHES):
        await cluster.wait(lambda: False, timeout=300, what="cordons")
    assert time.monotonic() - begun < 60
    assert not hasattr(failure.value, "__notes__")

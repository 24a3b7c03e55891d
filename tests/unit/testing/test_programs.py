"""A program that runs alongside a test: how it ended is said where the test fails."""

import os
import sys

import pytest

from kumulus.testing.programs import running


@pytest.mark.parametrize(("dies", "notes"), [(True, ["had ended by itself before, with exit code 3"]), (False, [])])
def test_the_error_of_a_block_says_that_its_program_was_dead_by_then(dies: bool, notes: list[str]) -> None:
    code = "raise SystemExit(3)" if dies else "import time; time.sleep(60)"

    def fails() -> None:
        with running([sys.executable, "-c", code], os.environ) as program:
            if dies:
                program.wait(timeout=60)
            raise AssertionError("not cordoned")

    with pytest.raises(AssertionError, match="not cordoned") as failure:
        fails()
    assert getattr(failure.value, "__notes__", []) == [f"{sys.executable} {note}" for note in notes]

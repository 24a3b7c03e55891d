"""Docker for tests of the runtime kind: whether it can be used, and running its commands.

Tests use a running engine. Without one they are skipped with a message, or fail if KUMULUS_REQUIRE_KIND is set, as in
CI. They never start one, since that changes the machine's network; engine.py does, around a test run.
"""

import os
import subprocess
from collections.abc import Mapping, Sequence

import pytest

REQUIRED = "KUMULUS_REQUIRE_KIND"
_SECONDS = 30


def require() -> None:
    """Skip the test where Docker cannot be used; fail it where Docker is required."""
    said = trouble()
    if said and os.environ.get(REQUIRED):
        pytest.fail(said)
    if said:
        pytest.skip(said)


def docker(*arguments: str, timeout: float = _SECONDS) -> str:
    """Run `docker`, which has to succeed; its output."""
    answer = _ask(arguments, timeout, None)
    assert answer.returncode == 0, answer.stderr
    return answer.stdout


def trouble(environment: Mapping[str, str] | None = None) -> str:
    """Why Docker cannot be used; empty when it can."""
    try:
        answer = _ask(["version", "--format", "{{.Server.Version}}"], _SECONDS, environment)
    except FileNotFoundError:
        return "there is no docker on PATH"
    except subprocess.TimeoutExpired:
        return f"Docker's engine says nothing within {_SECONDS} s"
    return "" if answer.returncode == 0 else (answer.stderr.strip().splitlines() or ["docker says nothing"])[-1]


def _ask(
    arguments: Sequence[str], timeout: float, environment: Mapping[str, str] | None
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["docker", *arguments],
        capture_output=True,
        text=True,
        errors="replace",
        stdin=subprocess.DEVNULL,
        timeout=timeout,
        env=environment,
        check=False,
    )

"""The `docker` command, and whether its engine answers."""

import shutil
import subprocess
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from kumulus.toolchain import progress
from kumulus.toolchain.errors import ToolchainError
from kumulus.toolchain.progress import ToolLine

_SECONDS: float = 30
# A busy Docker takes a while to remove gigabytes.
_REMOVAL_SECONDS: float = 300


def require() -> None:
    """Make sure that Docker can be used.

    Raises:
        ToolchainError: there is no `docker`, or its engine does not answer; with what to do.
    """
    if shutil.which("docker") is None:
        raise ToolchainError("there is no docker on PATH\n  On Debian and Ubuntu: apt install docker.io")
    if trouble := _trouble():
        raise _unanswered(trouble)


def label(image: str, name: str) -> str | None:
    """A label of an image; None when there is no such image, or it has none of that name."""
    try:
        answer = _ask("image", "inspect", "--format", f'{{{{index .Config.Labels "{name}"}}}}', image)
    except subprocess.TimeoutExpired:
        raise _unanswered(f"nothing within {_SECONDS:g} s") from None
    return answer.stdout.strip() or None if answer.returncode == 0 else None


def run(arguments: Sequence[str], step: ToolLine, log: Path, *, stdin: Path | None = None) -> None:
    """Run `docker` to its end.

    Args:
        log: is appended to.
        stdin: a file to read from.
    """
    try:
        if stdin is None:
            progress.run(["docker", *arguments], step, log)
        else:
            with stdin.open("rb") as file:
                progress.run(["docker", *arguments], step, log, stdin=file)
    except progress.Failed as failure:
        raise ToolchainError(f"docker {arguments[0]} failed:\n{failure.tail}\n  The whole log: {log}") from failure


def remove(kind: str, name: str) -> None:
    """Remove a container or an image, if there is one of that name; one that stays is removed by the next run.

    Args:
        kind: "container" or "image".
    """
    volumes = ["--volumes"] if kind == "container" else []
    with suppress(subprocess.TimeoutExpired):
        _ask(kind, "rm", "--force", *volumes, name, seconds=_REMOVAL_SECONDS)


def _unanswered(trouble: str) -> ToolchainError:
    return ToolchainError(
        f"Docker's engine does not answer: {trouble}"
        "\n  Start it (systemctl start docker), or set DOCKER_HOST to where it listens;"
        " for its socket a user needs the group docker."
    )


def _trouble() -> str:
    try:
        answer = _ask("version", "--format", "{{.Server.Version}}")
    except subprocess.TimeoutExpired:
        return f"nothing within {_SECONDS:g} s"
    return "" if answer.returncode == 0 else (answer.stderr.strip().splitlines() or ["it says nothing"])[-1]


def _ask(*arguments: str, seconds: float | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["docker", *arguments],
        capture_output=True,
        text=True,
        errors="replace",
        stdin=subprocess.DEVNULL,
        timeout=_SECONDS if seconds is None else seconds,
        check=False,
    )

"""Start a private Docker engine around a command, where none is running:

    python -m tests.support.engine COMMAND…

The engine ends with the command and leaves nothing behind: no container, no network, no firewall rule.
"""

import ctypes
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from tests.support import network
from tests.support.docker import trouble

_SECONDS = 30
_PR_SET_PDEATHSIG = 1
# Docker commands that list things tests may have left, and those that remove them.
_LEFT = (
    ("ps --all --quiet", "rm --force --volumes"),
    ("network ls --quiet --filter type=custom", "network rm"),
)


class NoEngine(Exception):
    """There is no engine and none can be started; the message says why."""


@contextmanager
def engine() -> Iterator[str]:
    """The address of an engine: the running one, or a private one that ends with the block and leaves nothing.

    Raises:
        NoEngine: there is neither; the message says why.
    """
    if not trouble():
        yield os.environ.get("DOCKER_HOST", "")
        return
    if os.geteuid() != 0 or shutil.which("dockerd") is None:
        lacking = "only root can start one" if os.geteuid() != 0 else "dockerd is not installed (Debian: docker.io)"
        raise NoEngine(f"no Docker engine answers, and {lacking}")
    with tempfile.TemporaryDirectory(prefix="kumulus-docker-", ignore_cleanup_errors=True) as folder, network.kept():
        host = f"unix://{folder}/docker.sock"
        process = _start(Path(folder), host)
        try:
            _await(process, host, Path(folder) / "log")
            yield host
        finally:
            _stop(process, host)


def _start(folder: Path, host: str) -> subprocess.Popen[bytes]:
    # Independent of the settings of this machine's own engine.
    settings = folder / "daemon.json"
    settings.write_text("{}")
    roots = [f"--data-root={folder}/data", f"--exec-root={folder}/exec", f"--pidfile={folder}/pid", f"--host={host}"]
    with (folder / "log").open("wb") as log:
        return subprocess.Popen(
            ["dockerd", *roots, f"--config-file={settings}"],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            # Ctrl-C is for the command; the engine ends after it.
            start_new_session=True,
            preexec_fn=_end_with_parent,  # noqa: PLW1509 - there are no threads here
        )


def _await(process: subprocess.Popen[bytes], host: str, log: Path) -> None:
    give_up = time.monotonic() + _SECONDS
    while trouble({**os.environ, "DOCKER_HOST": host}):
        if process.poll() is not None or time.monotonic() > give_up:
            last = "\n".join(f"  {line}" for line in log.read_text(errors="replace").splitlines()[-5:])
            raise NoEngine(f"no Docker engine answers, and dockerd does not start:\n{last}")
        time.sleep(0.1)


def _stop(process: subprocess.Popen[bytes], host: str) -> None:
    environment = {**os.environ, "DOCKER_HOST": host}
    # Ending the engine would only stop these, not remove them.
    for listing, removal in _LEFT:
        listed = subprocess.run(
            ["docker", *listing.split()], env=environment, capture_output=True, text=True, check=False
        )
        if ids := listed.stdout.split():
            subprocess.run(["docker", *removal.split(), *ids], env=environment, capture_output=True, check=False)
    process.terminate()
    try:
        process.wait(timeout=_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def _end_with_parent() -> None:
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)


def main(command: list[str]) -> int:
    """Run a command with an engine, and without one when there is none; its exit code."""
    try:
        with engine() as host:
            return _run(command, {**os.environ, **({"DOCKER_HOST": host} if host else {})})
    except NoEngine as error:
        print(error, file=sys.stderr, flush=True)
        return _run(command, dict(os.environ))


def _run(command: list[str], environment: dict[str, str]) -> int:
    process = subprocess.Popen(command, env=environment)
    # The signal is passed on: the engine ends after the command, however that ends.
    signal.signal(signal.SIGTERM, lambda *_: process.terminate())
    while True:
        # On Ctrl-C the terminal has sent the signal to the command as well.
        with suppress(KeyboardInterrupt):
            return process.wait()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

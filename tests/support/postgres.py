"""A private PostgreSQL server for a test, from Debian's packages or from PATH."""

import os
import pwd
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from kumulus.host import ports

REQUIRED = "KUMULUS_REQUIRE_POSTGRES"
_PASSWORD = "only-for-this-test"
# PostgreSQL refuses to run as root.
_UNPRIVILEGED = "postgres"
_SECONDS_TO_START = 60.0


def programs() -> Path:
    """The directory of the server's programs; skips the test where there is none, or fails it in CI."""
    debian = sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=lambda path: int(path.parent.name))
    found = shutil.which("initdb")
    if found is not None:
        return Path(found).resolve().parent
    if debian and _user() is not None:
        return debian[-1]
    reason = "needs PostgreSQL (Debian: apt install postgresql) and, for root, a user called postgres"
    if os.environ.get(REQUIRED):
        pytest.fail(f"{reason}; {REQUIRED} is set")
    pytest.skip(reason)


def _user() -> str | None:
    """The user that the server runs as: the current one, or for root another one; None where that one is missing."""
    if os.geteuid() != 0:
        return pwd.getpwuid(os.geteuid()).pw_name
    try:
        return pwd.getpwnam(_UNPRIVILEGED).pw_name
    except KeyError:
        return None


@contextmanager
def running() -> Iterator[str]:
    """Run a server on 127.0.0.1; yields the URL of an empty database, in the form of a Pulumi backend."""
    folder, user = programs(), _user()
    # Not in pytest's directory, which only its owner, here root, may enter.
    home = Path(tempfile.mkdtemp(prefix="kumulus-postgres-"))
    secret = home / "password"
    secret.write_text(_PASSWORD)
    if user:
        for path in (home, secret):
            shutil.chown(path, user)
    try:
        _run(user, folder / "initdb", "-D", home / "data", "-U", "pulumi", f"--pwfile={secret}", "-A", "scram-sha-256")
        with _server(folder / "postgres", user, home) as port:
            yield f"postgres://pulumi:{_PASSWORD}@127.0.0.1:{port}/postgres?sslmode=disable"
    finally:
        shutil.rmtree(home, ignore_errors=True)


@contextmanager
def _server(program: Path, user: str | None, home: Path) -> Iterator[int]:
    with ports.Claims() as claims, (home / "log").open("wb") as log:
        port = claims.take()
        settings = {"listen_addresses": "127.0.0.1", "port": port, "unix_socket_directories": "", "fsync": "off"}
        options = [part for key, value in settings.items() for part in ("-c", f"{key}={value}")]
        command = [str(program), "-D", str(home / "data"), *map(str, options)]
        server = subprocess.Popen(command, user=user, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        try:
            _await(server, home / "log")
            yield port
        finally:
            server.terminate()
            server.wait(30)


def _run(user: str | None, *command: str | Path) -> None:
    answer = subprocess.run(command, user=user, cwd="/", capture_output=True, text=True, check=False, timeout=120)
    assert answer.returncode == 0, answer.stdout + answer.stderr


def _await(server: subprocess.Popen[bytes], log: Path) -> None:
    give_up = time.monotonic() + _SECONDS_TO_START
    while "ready to accept connections" not in log.read_text():
        assert server.poll() is None, log.read_text()
        assert time.monotonic() < give_up, log.read_text()
        time.sleep(0.05)

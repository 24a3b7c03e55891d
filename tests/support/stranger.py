"""Another user of this machine: runs programs as `nobody`, with no group and no capability of the tests' own."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import pytest

UID = 65534
# Sends each request, over TLS with any certificate or in plain HTTP; status 0 where that fails.
_ASK = """
import http.client, json, ssl, sys
trusting = ssl.create_default_context()
trusting.check_hostname, trusting.verify_mode = False, ssl.CERT_NONE
answers = []
for scheme, port, verb, path, headers in json.load(sys.stdin):
    if scheme == "https":
        connection = http.client.HTTPSConnection("127.0.0.1", port, context=trusting, timeout=20)
    else:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
    try:
        connection.request(verb, path, headers=headers)
        answer = connection.getresponse()
        told = {name.lower(): value for name, value in answer.getheaders()}
        answers.append([answer.status, told, answer.read().decode(errors="replace")])
    except (OSError, http.client.HTTPException) as error:
        answers.append([0, {}, repr(error)])
json.dump(answers, sys.stdout)
"""
# Imports as the tests' user, whose packages others may be unable to read, and then becomes the other one.
_CALL = """
import grpc, os, sys
identity, port, method = int(sys.argv[1]), *sys.argv[2:]
with grpc.insecure_channel(f"127.0.0.1:{port}") as channel:
    # It connects with its first call.
    called = channel.unary_unary(method)
    os.setgroups([])
    os.setresgid(identity, identity, identity)
    os.setresuid(identity, identity, identity)
    try:
        called(sys.stdin.buffer.read(), timeout=60)
        print("OK")
    except grpc.RpcError as error:
        print(error.code().name)
"""


class Question(NamedTuple):
    """A request to a port of 127.0.0.1."""

    port: int
    path: str
    scheme: str = "https"
    verb: str = "GET"
    headers: tuple[tuple[str, str], ...] = ()


class Answer(NamedTuple):
    """The answer; the status 0 stands for no answer at all, with the reason in the text."""

    status: int
    headers: dict[str, str]
    text: str


def run(command: Sequence[str], stdin: str = "") -> subprocess.CompletedProcess[str]:
    """Run a program as another user; skips the test unless it runs as root, which this needs."""
    return subprocess.run(
        _become(command),
        input=stdin,
        capture_output=True,
        text=True,
        cwd="/",
        env={"PATH": "/usr/bin:/bin"},
        check=False,
        timeout=120,
    )


@contextmanager
def connected(port: int) -> Iterator[int]:
    """Its own port, while another user has a connection to a port of 127.0.0.1, by which it has sent a byte."""
    code = f"import socket; s = socket.create_connection(('127.0.0.1', {port})); s.send(b'x')"
    command = _become([_python(), "-I", "-c", f"{code}; print(s.getsockname()[1], flush=True); input()"])
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd="/") as process:
        assert process.stdout is not None
        try:
            yield int(process.stdout.readline())
        finally:
            process.kill()


def call(port: int, method: str, request: bytes) -> str:
    """Call a gRPC method of a port of 127.0.0.1 as another user; returns the status code's name."""
    _require()
    done = subprocess.run(
        [sys.executable, "-c", _CALL, str(UID), str(port), method],
        input=request,
        capture_output=True,
        check=False,
        timeout=120,
        env={"PATH": "/usr/bin:/bin", "no_grpc_proxy": "127.0.0.1"},
    )
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout.decode().strip()


def send(port: int, data: bytes) -> None:
    """Send bytes to a port of 127.0.0.1 as another user, whose process ends at once."""
    code = f"import socket, sys; socket.create_connection(('127.0.0.1', {port})).sendall(sys.stdin.buffer.read())"
    subprocess.run(_become([_python(), "-I", "-c", code]), input=data, cwd="/", check=True, timeout=120)


def ask(questions: Sequence[Question]) -> list[Answer]:
    """Send requests as another user of this machine."""
    asked = [[each.scheme, each.port, each.verb, each.path, dict(each.headers)] for each in questions]
    done = run([_python(), "-I", "-c", _ASK], json.dumps(asked))
    assert done.returncode == 0, done.stderr
    found: list[Any] = json.loads(done.stdout)
    return [Answer(*each) for each in found]


def _become(command: Sequence[str]) -> list[str]:
    _require()
    become = ["setpriv", f"--reuid={UID}", f"--regid={UID}", "--clear-groups", "--bounding-set=-all"]
    return [*become, "--no-new-privs", *command]


def _require() -> None:
    if os.geteuid() or not shutil.which("setpriv"):
        pytest.skip("another local user can be tried by root with setpriv (util-linux) only")


def can_read(file: Path) -> bool:
    """Whether that user can read a file's content."""
    return run(["/bin/cat", "--", str(file)]).returncode == 0


def _python() -> str:
    # The interpreter of the tests may be in a home directory that other users cannot read.
    for candidate in ("/usr/bin/python3", sys.executable):
        if Path(candidate).exists() and run([candidate, "-I", "-c", ""]).returncode == 0:
            return candidate
    pytest.skip("no Python that another user can run")

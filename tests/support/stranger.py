"""Another user of this machine: runs programs as `nobody`, with no group and no capability of the tests' own."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pytest

_NOBODY = "65534"
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
    if os.geteuid() or not shutil.which("setpriv"):
        pytest.skip("another local user can be tried by root with setpriv (util-linux) only")
    become = ["setpriv", f"--reuid={_NOBODY}", f"--regid={_NOBODY}", "--clear-groups", "--bounding-set=-all"]
    return subprocess.run(
        [*become, "--no-new-privs", *command],
        input=stdin,
        capture_output=True,
        text=True,
        cwd="/",
        env={"PATH": "/usr/bin:/bin"},
        check=False,
        timeout=120,
    )


def ask(questions: Sequence[Question]) -> list[Answer]:
    """Send requests as another user of this machine."""
    asked = [[each.scheme, each.port, each.verb, each.path, dict(each.headers)] for each in questions]
    done = run([_python(), "-I", "-c", _ASK], json.dumps(asked))
    assert done.returncode == 0, done.stderr
    found: list[Any] = json.loads(done.stdout)
    return [Answer(*each) for each in found]


def can_read(file: Path) -> bool:
    """Whether that user can read a file's content."""
    return run(["/bin/cat", "--", str(file)]).returncode == 0


def _python() -> str:
    # The interpreter of the tests may be in a home directory that other users cannot read.
    for candidate in ("/usr/bin/python3", sys.executable):
        if Path(candidate).exists() and run([candidate, "-I", "-c", ""]).returncode == 0:
            return candidate
    pytest.skip("no Python that another user can run")

"""One shell for a page's commands, so that variables and the directory carry over from one to the next."""

import os
import secrets
import select
import signal
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path


class Shell:
    """A bash that takes commands one after the other."""

    def __init__(self, directory: Path, environment: Mapping[str, str]) -> None:
        self._mark = f"end-{secrets.token_hex(8)}"
        self._process = subprocess.Popen(
            ["bash", "--noprofile", "--norc"],
            cwd=directory,
            env=dict(environment),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )

    def run(self, command: str, timeout: float) -> tuple[int, str]:
        """Run a command; returns its exit code and what it wrote, errors included.

        Raises:
            TimeoutError: it has not ended within the timeout (seconds).
        """
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        # Braces keep the command in this shell and let its input be redirected: it would read the next command.
        script = f"{{ {command}\n}} </dev/null\nprintf '\\n%s %s\\n' {self._mark} $?\n"
        self._process.stdin.write(script.encode())
        self._process.stdin.flush()
        until, said = time.monotonic() + timeout, b""
        end = f"\n{self._mark} ".encode()
        while end not in said or not said.endswith(b"\n"):
            ready, _, _ = select.select([self._process.stdout], [], [], max(0.0, until - time.monotonic()))
            if not ready:
                raise TimeoutError(f"not done after {timeout:g} s: {command}\n{said.decode(errors='replace')}")
            piece = os.read(self._process.stdout.fileno(), 65536)
            if not piece:
                raise AssertionError(f"the shell ended in: {command}\n{said.decode(errors='replace')}")
            said += piece
        text, _, code = said.rpartition(end)
        return int(code), text.decode(errors="replace")

    def close(self) -> None:
        """End the shell and the commands that are still running in it."""
        for stream in (self._process.stdin, self._process.stdout):
            if stream is not None:
                stream.close()
        try:
            self._process.wait(timeout=2)
        except subprocess.TimeoutExpired:
            # Control planes that commands have started are in sessions of their own and are not affected.
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()

"""A sandbox as the kubelet has it: its first process, the connection to that, and the ways into it and out of it."""

from __future__ import annotations

import asyncio
import contextlib
import json
import socket
import subprocess
import sys
from collections import deque
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from kumulus.extras.processes import sandbox
from kumulus.host.files import last_lines

Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]
_STARTS_WITHIN = 20.0


class SandboxError(Exception):
    """A sandbox cannot be made, or has ended."""


class Sandbox:
    """The namespaces of one pod; made by :meth:`start`, ended with everything in them by :meth:`close`."""

    def __init__(self, process: subprocess.Popen[bytes], control: socket.socket, address: str) -> None:
        self.address = address
        self._process = process
        self._control = control
        self._answers: deque[asyncio.Future[Any]] = deque()
        self._codes: dict[int, asyncio.Future[int]] = {}
        self._server: asyncio.Server | None = None
        asyncio.get_running_loop().add_reader(control, self._received)

    @classmethod
    async def start(cls, log: Path, address: str, api: tuple[str, int], name: str) -> Sandbox:
        """Make a sandbox, in which the API server answers at its own port of 127.0.0.1; ``log`` takes what it says.

        Raises:
            SandboxError: the kernel makes no namespaces for this user, or the like.
        """
        made = cls(*_started(log, address, api[1], name), address)
        try:
            listening = await asyncio.wait_for(made._answer(), _STARTS_WITHIN)
        except (SandboxError, TimeoutError):
            made.close()
            raise SandboxError(
                f"no namespaces can be made for a pod: {last_lines(log, 1).strip() or 'the kernel does not answer'}; "
                "see sysctl kernel.apparmor_restrict_unprivileged_userns and user.max_user_namespaces"
            ) from None
        made._server = await asyncio.start_server(
            lambda *streams: _relayed(streams, asyncio.open_connection(*api)), sock=listening
        )
        return made

    async def run(self, asked: Mapping[str, Any]) -> int:
        """Start a process; returns its pid in the sandbox."""
        answer = await self._ask({"do": "start", **asked})
        return int(answer["pid"])

    async def ended(self, pid: int) -> int:
        """Wait until a process has ended; returns its exit code, 128 and the signal's number for a killed one."""
        return await asyncio.shield(self._code(pid))

    def signal(self, pid: int, number: int) -> None:
        """Send a process a signal; one that has ended gets none."""
        if not self._code(pid).done():
            self._send({"do": "signal", "pid": pid, "signal": int(number)})

    async def connect(self, port: int) -> Streams:
        """Connect to a port of the pod's address.

        Raises:
            OSError: nothing listens there.
        """
        made: socket.socket = await self._ask({"do": "socket"})
        try:
            made.setblocking(False)
            await asyncio.get_running_loop().sock_connect(made, (self.address, port))
            return await asyncio.open_connection(sock=made)
        except BaseException:
            made.close()
            raise

    def close(self) -> None:
        """End every process of the pod."""
        if self._server:
            self._server.close()
        asyncio.get_running_loop().remove_reader(self._control)
        self._control.close()
        self._process.kill()
        # Not awaited, as whoever waits may be cancelled: a killed process is gone in no time.
        self._process.wait()
        self._lost()

    async def _ask(self, message: Mapping[str, Any]) -> Any:
        self._send(message)
        return await self._answer()

    def _send(self, message: Mapping[str, Any]) -> None:
        try:
            self._control.send(json.dumps(message).encode())
        except OSError as error:
            raise SandboxError(f"the pod's first process has ended: {error.strerror}") from None

    def _answer(self) -> asyncio.Future[Any]:
        future = asyncio.get_running_loop().create_future()
        self._answers.append(future)
        return future

    def _code(self, pid: int) -> asyncio.Future[int]:
        return self._codes.setdefault(pid, asyncio.get_running_loop().create_future())

    def _received(self) -> None:
        try:
            text, descriptors, _, _ = socket.recv_fds(self._control, 1 << 16, 1)
        except OSError:
            text, descriptors = b"", []
        if not text:
            asyncio.get_running_loop().remove_reader(self._control)
            self._lost()
            return
        message = json.loads(text)
        if "ended" in message:
            if not (code := self._code(message["ended"])).done():
                code.set_result(message["code"])
            return
        if "started" in message:
            # The kernel may give a process the number of an earlier one.
            self._codes.pop(message["pid"], None)
        if (waiting := self._answers.popleft()).cancelled():
            for each in descriptors:
                socket.close(each)
        else:
            waiting.set_result(socket.socket(fileno=descriptors[0]) if descriptors else message)

    def _lost(self) -> None:
        for future in self._answers:
            if not future.done():
                future.set_exception(SandboxError("the pod's first process has ended"))
        for code in self._codes.values():
            if not code.done():
                code.set_result(137)


def _started(log: Path, address: str, port: int, name: str) -> tuple[subprocess.Popen[bytes], socket.socket]:
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    ours.setblocking(False)
    program = [sys.executable, "-I", "-S", sandbox.__file__, str(theirs.fileno()), address, str(port), name]
    with theirs, log.open("wb") as errors:
        return subprocess.Popen(program, pass_fds=[theirs.fileno()], stdin=subprocess.DEVNULL, stderr=errors), ours


async def _relayed(ours: Streams, opening: Any) -> None:
    try:
        theirs = await opening
    except OSError:
        ours[1].close()
        return
    await relay(ours, theirs)


async def relay(one: Streams, other: Streams) -> None:
    """Pass bytes on both ways until both have ended, and close both."""

    async def copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(1 << 16):
            writer.write(data)
            await writer.drain()
        if writer.can_write_eof():
            writer.write_eof()

    try:
        with contextlib.suppress(OSError):
            await asyncio.gather(copy(one[0], other[1]), copy(other[0], one[1]))
    finally:
        for _, writer in (one, other):
            writer.close()

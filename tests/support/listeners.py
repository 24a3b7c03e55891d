"""Which programs listen, and where, while commands run: by the kernel's list of sockets, not by what they say."""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import NamedTuple

import psutil

from tests.support.processes import HOME_VARIABLE

_EVERY_SECONDS = 0.05
# As /proc/net/tcp names them: a listener; of UDP, a socket without another end.
_STATES = {"tcp": "0A", "tcp6": "0A", "udp": "07", "udp6": "07"}


class Listener(NamedTuple):
    """A program, as the process table names it, and an address that it listens on."""

    program: str
    protocol: str
    address: str


class Watch:
    """Notes every listener of the programs that belong to a KUMULUS_HOME, until the block ends.

    Args:
        home: the KUMULUS_HOME. Components are started below it; other programs have it in their environment.
    """

    def __init__(self, home: Path) -> None:
        self._home = str(home)
        self._known: set[int] = set()
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="listeners")
        self.found: set[Listener] = set()

    def __enter__(self) -> Watch:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ended.set()
        self._thread.join()

    def programs(self) -> set[str]:
        """The programs that have listened so far."""
        return {each.program for each in self.found}

    def _run(self) -> None:
        while not self._ended.wait(_EVERY_SECONDS):
            self._look()
        self._look()

    def _look(self) -> None:
        new = {inode: place for inode, place in _sockets().items() if inode not in self._known}
        if not new:
            return
        self._known |= new.keys()
        for pid in psutil.pids():
            with suppress(OSError, psutil.Error):
                mine = _inodes(pid) & new.keys()
                if mine and (program := self._program(psutil.Process(pid))):
                    self.found |= {Listener(program, *new[inode]) for inode in mine}

    def _program(self, process: psutil.Process) -> str:
        """A process's name in the table of docs/security.md; empty for one that belongs to another home."""
        command = process.cmdline()
        if command[0].startswith(f"{self._home}/"):
            return Path(command[0]).name
        if process.environ().get(HOME_VARIABLE) != self._home:
            return ""
        if "-m" in command:
            return command[command.index("-m") + 1]
        return Path(command[0]).name


def _sockets() -> dict[int, tuple[str, str]]:
    """Protocol and address of each listener of this machine, by inode."""
    return {inode: place for protocol in _STATES for inode, place in _rows(protocol)}


def _rows(protocol: str) -> Iterator[tuple[int, tuple[str, str]]]:
    for line in Path("/proc/net", protocol).read_text().splitlines()[1:]:
        _, local, _, state, *_, inode = line.split()[:10]
        if state == _STATES[protocol]:
            yield int(inode), (protocol[:3], _address(local.partition(":")[0]))


def _address(digits: str) -> str:
    words = [int(digits[at : at + 8], 16).to_bytes(4, "little") for at in range(0, len(digits), 8)]
    address = socket.inet_ntop(socket.AF_INET6 if len(words) > 1 else socket.AF_INET, b"".join(words))
    # gRPC listens by an IPv6 socket on IPv4's address.
    return address.removeprefix("::ffff:")


def _inodes(pid: int) -> set[int]:
    found = set()
    for descriptor in os.scandir(f"/proc/{pid}/fd"):
        with suppress(OSError):
            target = os.readlink(descriptor.path)
            if target.startswith("socket:["):
                found.add(int(target[8:-1]))
    return found

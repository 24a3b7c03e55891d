"""Which programs listen, and where, while commands run: by the kernel's list of sockets, not by what they say.

The table in docs/security.md has every one of them; :func:`amiss` names those that it lacks.
"""

from __future__ import annotations

import ipaddress
import os
import re
import socket
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import NamedTuple

import psutil

from tests.support.processes import HOME_VARIABLE

_PAGE = Path(__file__).parents[2] / "docs" / "security.md"
_HEADING = "## Every listener\n"
_EVERY_S = 0.05
# As /proc/net/tcp names them: a listener; of UDP, a socket without another end.
_STATES = {"tcp": "0A", "tcp6": "0A", "udp": "07", "udp6": "07"}
# The kernel lists listeners before connections, of which a busy machine has a thousand: they would take it 4 ms a look.
_LISTENERS_FIRST = ("tcp", "tcp6")


class Listener(NamedTuple):
    """A program, as the process table names it, and where it listens."""

    program: str
    protocol: str
    address: str
    port: int


def of(pids: Iterable[int]) -> set[Listener]:
    """What processes listen on."""
    sockets = _sockets()
    return {
        Listener(_name(psutil.Process(pid).cmdline()), *sockets[inode])
        for pid in pids
        for inode in _inodes(pid) & sockets.keys()
    }


def listed() -> set[str]:
    """The programs of the table in docs/security.md."""
    table = _PAGE.read_text().partition(_HEADING)[2].partition("\n## ")[0]
    first = [line.split("|")[1] for line in table.splitlines() if line.startswith("| ")]
    return {name for cell in first for name in re.findall(r"`([^`]+)`", cell)}


def amiss(found: Iterable[Listener]) -> list[str]:
    """Programs that the table lacks, and those that another machine can reach, each with its address."""
    known = listed()
    return sorted(
        {
            f"{each.program} on {each.address}"
            for each in found
            if each.program not in known or not ipaddress.ip_address(each.address).is_loopback
        }
    )


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
        while not self._ended.wait(_EVERY_S):
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
                if mine and self._is_mine(process := psutil.Process(pid)):
                    self.found |= {Listener(_name(process.cmdline()), *new[inode]) for inode in mine}

    def _is_mine(self, process: psutil.Process) -> bool:
        # One that has just ended has no command any more.
        ours = any(word.startswith(f"{self._home}/") for word in process.cmdline()[:1])
        return ours or process.environ().get(HOME_VARIABLE) == self._home


@contextmanager
def none_amiss(home: Path) -> Iterator[None]:
    """Watch a KUMULUS_HOME until the block ends; fails if something listens that :func:`amiss` names."""
    with Watch(home) as watch:
        yield
    assert amiss(watch.found) == []


def _name(command: list[str]) -> str:
    """A program's name in the table; for Python, the module's or script's that it runs."""
    name = Path(command[0]).name
    if not name.startswith("python") or len(command) < 2:
        return name
    return command[command.index("-m") + 1] if "-m" in command else Path(command[1]).name


def _sockets() -> dict[int, tuple[str, str, int]]:
    """Protocol, address and port of each listener of this machine, by inode."""
    return {inode: place for protocol in _STATES for inode, place in _rows(protocol)}


def _rows(protocol: str) -> Iterator[tuple[int, tuple[str, str, int]]]:
    with Path("/proc/net", protocol).open() as rows:
        next(rows)
        for row in rows:
            _, local, _, state, *_, inode = row.split()[:10]
            if state == _STATES[protocol]:
                digits, _, port = local.partition(":")
                yield int(inode), (protocol[:3], _address(digits), int(port, 16))
            elif protocol in _LISTENERS_FIRST:
                return


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

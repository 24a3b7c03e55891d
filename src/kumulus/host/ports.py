"""Gives each cluster local ports of its own, also when several are made at the same time.

kwokctl looks for unused ports by itself, but two runs at once can find the same ones before either listens. So a
port is claimed first, by a Unix socket with an abstract name, unix(7): it is in no folder, it is seen where the port is
seen (in one network namespace, by all users), and the kernel drops it when its holder ends, however it ends.

It also says which user's process is at the other end of a connection within this machine: the kernel is asked, by
sock_diag(7). /proc/net/tcp says the same, but lists every connection of the machine: with 200 of them, 4 ms each time.
"""

from __future__ import annotations

import errno
import os
import random
import socket
import struct
from types import TracebackType

# Below Linux's ephemeral range (32768-60999), so that no outgoing connection takes a port before it is used.
_RANGE = range(20000, 32768)


class NoFreePort(Exception):
    """Not enough free ports in the range."""


def in_use(port: int) -> bool:
    """Whether something listens on that port of 127.0.0.1."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return True
    return False


class Claims:
    """Ports claimed until the context ends: long enough for the components to listen on them.

    Args:
        avoid: ports that stopped clusters will want back.
    """

    def __init__(self, avoid: set[int] | None = None) -> None:
        self._avoid = avoid or set()
        self._held: list[socket.socket] = []

    def __enter__(self) -> Claims:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        while self._held:
            self._held.pop().close()

    def take(self) -> int:
        """Claim a free port."""
        for port in random.sample(_RANGE, min(500, len(_RANGE))):
            if port not in self._avoid and self.claim(port) and not in_use(port):
                return port
        raise NoFreePort(f"no free port between {_RANGE.start} and {_RANGE.stop - 1} on 127.0.0.1")

    def claim(self, port: int) -> bool:
        """Claim one particular port against other Kumulus runs; False when another run has it."""
        held = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        try:
            held.bind(f"\0kumulus-port-{port}")
        except OSError as error:
            held.close()
            if error.errno != errno.EADDRINUSE:
                raise
            return False
        self._held.append(held)
        return True


# linux/netlink.h, linux/sock_diag.h, linux/inet_diag.h and the states of linux/tcp_states.h.
_SOCK_DIAG, _BY_FAMILY, _REQUEST = 4, 20, 1
_HEADER = struct.Struct("=IHHII")
_QUESTION = struct.Struct("=BBBxI")
_PORTS = struct.Struct("!HH")
_ANSWER = struct.Struct("=BB2x48x12xII")
_ESTABLISHED = 1
_ANY_SOCKET = b"\0" * 4 + b"\xff" * 8
_MOST_BYTES = 4096


def user_of(theirs: tuple[str, int], ours: tuple[str, int]) -> int | None:
    """The id of the user whose process has the other end of a connection; None if none has, or it is not known.

    Args:
        theirs: the IPv4 address and port of the other end.
        ours: those of this end.
    """
    source, target = (socket.inet_aton(address).ljust(16, b"\0") for address, _ in (theirs, ours))
    place = _PORTS.pack(theirs[1], ours[1]) + source + target + _ANY_SOCKET
    # An IPv6 socket with mapped addresses (::ffff:127.0.0.1) is found by its IPv4 addresses, too.
    question = _QUESTION.pack(socket.AF_INET, socket.IPPROTO_TCP, 0, 1 << _ESTABLISHED) + place
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW | socket.SOCK_CLOEXEC, _SOCK_DIAG) as kernel:
        kernel.send(_HEADER.pack(_HEADER.size + len(question), _BY_FAMILY, _REQUEST, 0, 0) + question)
        answer = kernel.recv(_MOST_BYTES)
    if _HEADER.unpack_from(answer)[1] != _BY_FAMILY:
        return None
    _, state, owner, inode = _ANSWER.unpack_from(answer, _HEADER.size)
    # Kernels before 6.17 show a socket that its process has closed as root's; such a socket has no inode.
    return owner if state == _ESTABLISHED and inode else None


def users_are_known() -> bool:
    """Whether this system says whose a connection is: Linux does, unless a sandbox forbids to ask it."""
    try:
        with socket.create_server(("127.0.0.1", 0)) as server, socket.create_connection(server.getsockname()) as caller:
            return user_of(caller.getsockname(), server.getsockname()) == os.geteuid()
    except (OSError, AttributeError):
        return False

"""Whose process is at the other end of a connection within this machine: the kernel is asked, by sock_diag(7).

/proc/net/tcp says the same, but lists every connection of the machine: with 200 of them, 4 ms for each question.
"""

from __future__ import annotations

import os
import socket
import struct

# linux/netlink.h, linux/sock_diag.h, linux/inet_diag.h and the states of linux/tcp_states.h.
_SOCK_DIAG, _BY_FAMILY, _REQUEST = 4, 20, 1
_HEADER = struct.Struct("=IHHII")
_QUESTION = struct.Struct("=BBBxI")
_PORTS = struct.Struct("!HH")
_ANSWER = struct.Struct("=BB2x48x12xII")
_ESTABLISHED = 1
_ANY_SOCKET = b"\0" * 4 + b"\xff" * 8
_LONGEST = 4096


def user(theirs: tuple[str, int], ours: tuple[str, int]) -> int | None:
    """The id of the user whose process has a connection to this one; None if no process has it, or it is not known.

    Args:
        theirs: the IPv4 address and the port of the other end.
        ours: those of this end.
    """
    source, target = (socket.inet_aton(address).ljust(16, b"\0") for address, _ in (theirs, ours))
    place = _PORTS.pack(theirs[1], ours[1]) + source + target + _ANY_SOCKET
    # An IPv6 socket with mapped addresses (::ffff:127.0.0.1) is found by its IPv4 addresses, too.
    question = _QUESTION.pack(socket.AF_INET, socket.IPPROTO_TCP, 0, 1 << _ESTABLISHED) + place
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW | socket.SOCK_CLOEXEC, _SOCK_DIAG) as kernel:
        kernel.send(_HEADER.pack(_HEADER.size + len(question), _BY_FAMILY, _REQUEST, 0, 0) + question)
        answer = kernel.recv(_LONGEST)
    if _HEADER.unpack_from(answer)[1] != _BY_FAMILY:
        return None
    _, state, owner, inode = _ANSWER.unpack_from(answer, _HEADER.size)
    # Kernels before 6.17 show a socket that its process has closed as root's; such a socket has no inode.
    return owner if state == _ESTABLISHED and inode else None


def are_known() -> bool:
    """Whether this system says whose a connection is: Linux does, unless a sandbox forbids to ask it."""
    try:
        with socket.create_server(("127.0.0.1", 0)) as server, socket.create_connection(server.getsockname()) as caller:
            return user(caller.getsockname(), server.getsockname()) == os.geteuid()
    except (OSError, AttributeError):
        return False

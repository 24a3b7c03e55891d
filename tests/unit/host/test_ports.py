"""Ports that are claimed, and whose process is at the other end of a connection, as the kernel says."""

import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from kumulus.host import ports
from kumulus.host.ports import Claims, NoFreePort, in_use
from tests.support import sandbox, stranger
from tests.support.processes import occupied

HOST = "127.0.0.1"
MAPPED = f"::ffff:{HOST}"


CLAIMING = """
import sys
from kumulus.host.ports import Claims
with Claims() as claims:
    print(claims.take(), flush=True)
    sys.stdin.read()
"""


def test_a_claimed_port_is_nobody_elses_until_it_is_given_back() -> None:
    with Claims() as mine, Claims() as others:
        port = mine.take()
        assert not others.claim(port)
        assert not in_use(port)
    with Claims() as others:
        assert others.claim(port)


def test_a_claim_ends_with_its_process_and_was_no_file(tmp_path: Path) -> None:
    folders = {"HOME": str(tmp_path), "TMPDIR": str(tmp_path), "PYTHONPATH": os.pathsep.join(sys.path)}
    with subprocess.Popen(
        [sys.executable, "-c", CLAIMING], env=folders, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as holder:
        assert holder.stdout is not None
        port = int(holder.stdout.readline())
        with Claims() as others:
            assert not others.claim(port)
        holder.kill()
    with Claims() as others:
        assert others.claim(port)
    assert list(tmp_path.iterdir()) == []


def test_a_port_to_avoid_or_in_use_is_not_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    with occupied() as port:
        monkeypatch.setattr("kumulus.host.ports._RANGE", range(port, port + 1))
        with Claims() as claims, pytest.raises(NoFreePort, match=f"no free port between {port} and {port}"):
            claims.take()
    with Claims(avoid={port}) as claims, pytest.raises(NoFreePort):
        claims.take()
    with Claims() as claims:
        assert claims.take() == port


@pytest.fixture(params=[(socket.AF_INET, HOST), (socket.AF_INET6, MAPPED)], ids=["IPv4", "mapped"])
def server(request: pytest.FixtureRequest) -> Iterator[socket.socket]:
    """A listener, also as gRPC makes one: an IPv6 socket with a mapped address."""
    family, address = request.param
    with socket.socket(family) as made:
        made.bind((address, 0))
        made.listen()
        yield made


def port(of: socket.socket) -> int:
    return int(of.getsockname()[1])


def user(caller: int, server: socket.socket) -> int | None:
    return ports.user_of((HOST, caller), (HOST, port(server)))


@pytest.mark.parametrize(("family", "address"), [(socket.AF_INET, HOST), (socket.AF_INET6, MAPPED)])
def test_a_connection_of_ones_own_is_known(server: socket.socket, family: int, address: str) -> None:
    with socket.socket(family) as caller:
        caller.connect((address, port(server)))
        assert user(port(caller), server) == os.geteuid()


def test_a_connection_of_another_user_is_known(server: socket.socket) -> None:
    with stranger.connected(port(server)) as caller:
        assert user(caller, server) == stranger.UID


def test_a_connection_that_its_process_has_closed_is_nobodys_and_not_roots(server: socket.socket) -> None:
    with stranger.connected(port(server)) as caller:
        taken, _ = server.accept()
    with taken:
        # Its process has ended; what it sent can still be read here.
        assert taken.recv(1) == b"x"
        assert user(caller, server) is None


def test_what_is_not_connected_is_nobodys(server: socket.socket) -> None:
    with socket.socket() as other:
        other.bind((HOST, 0))
        assert user(port(other), server) is None


def test_here_it_is_known_whose_connections_are() -> None:
    assert ports.users_are_known()


def test_without_sock_diag_it_is_said_that_it_is_not_known() -> None:
    code = f"{sandbox.WITHOUT_NETLINK}\nfrom kumulus.host import ports; print(ports.users_are_known())"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("False\n", "")

"""Where ports are claimed: in a folder of this user's own, whoever was there first."""

import os
import socket
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from kumulus.host import ports
from kumulus.host.ports import Claims
from tests.support import sandbox, stranger

HOST = "127.0.0.1"
MAPPED = f"::ffff:{HOST}"


def linked(folder: Path) -> None:
    (folder.parent / "elsewhere").mkdir()
    folder.symlink_to(folder.parent / "elsewhere")


def of_another_user(folder: Path) -> None:
    if os.getuid():
        pytest.skip("only root can make a folder for another user")
    folder.mkdir()
    os.chown(folder, 65534, 65534)


def open_to_all(folder: Path) -> None:
    folder.mkdir()
    folder.chmod(0o777)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    shared = tmp_path / "tmp"
    shared.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(shared))
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    return shared / f"kumulus-ports-{os.getuid()}"


@pytest.mark.parametrize("prepared", [linked, of_another_user, open_to_all], ids=lambda each: str(each.__name__))
def test_a_folder_that_somebody_else_has_prepared_is_not_used(
    folder: Path, tmp_path: Path, prepared: Callable[[Path], None]
) -> None:
    prepared(folder)
    with Claims() as claims:
        port = claims.take()
        assert claims.path(port).is_relative_to(tmp_path / "home")
        assert list(folder.iterdir()) == []


def test_claims_are_in_one_place_whatever_home_is(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with Claims() as claims:
        port = claims.take()
        assert claims.path(port).parent == folder
        monkeypatch.setenv("HOME", "/nonexistent")
        with Claims() as others:
            assert not others.claim(port)


def test_a_claim_is_no_way_to_write_elsewhere(folder: Path, tmp_path: Path) -> None:
    with Claims() as claims:
        (folder / "20000").symlink_to(tmp_path / "made")
        with pytest.raises(OSError, match="symbolic links"):
            claims.claim(20000)
    assert not (tmp_path / "made").exists()


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

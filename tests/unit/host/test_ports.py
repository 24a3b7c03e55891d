"""Where ports are claimed: in a folder of this user's own, whoever was there first."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest

from kumulus.host.ports import Claims


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

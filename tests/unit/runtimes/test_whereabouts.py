"""Where a recorded cluster is: what a state says is compared with this machine, and with where the project is now."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from kumulus.host.machine import HostMachine
from kumulus.runtimes.place import identified, identity_of, owner, same_owner
from kumulus.runtimes.whereabouts import Away, Here, away

LAPTOP, SERVER = HostMachine("a" * 32, "laptop"), HostMachine("b" * 32, "server")
URN = "urn:pulumi:dev::kumulus::kumulus:index:KwokCluster$kumulus:index:Cluster::dev-control-plane"
ONE, TWO = "1" * 32, "2" * 32
OLDER = owner("dev", URN, "/home/me/kumulus")


def project(root: Path, *, inside: bool = True) -> Path:
    """A Pulumi project whose state lies in it, or beside it."""
    root.mkdir(parents=True)
    url = "file://./.pulumi-state" if inside else f"file://{root.parent / 'shared'}"
    (root / "Pulumi.yaml").write_text(f"name: fleet\nruntime: python\nbackend:\n  url: {url}\n")
    if inside:
        state = root / ".pulumi-state" / ".pulumi" / "stacks" / "fleet"
        state.mkdir(parents=True)
        (state / "dev.json").write_text("{}")
    return root


def up(root: Path, home: Path | None = None) -> dict[str, Any]:
    """What is recorded of a cluster that the project has on the laptop; with its files."""
    owner = json.dumps({"stack": "dev", "program": str(root)})
    directory = (home or root / ".kumulus") / "clusters" / "dev"
    directory.mkdir(parents=True)
    (directory / "kumulus.json").write_text(json.dumps({"owner": owner}))
    machine = {"id": LAPTOP.id, "name": LAPTOP.name}
    return {"name": "dev", "directory": str(directory), "owner": owner, "machine": machine}


def seen(outputs: dict[str, Any], root: Path, machine: HostMachine = LAPTOP) -> Away | None:
    return away(outputs, Here.of(machine, root))


def elsewhere(outputs: dict[str, Any], root: Path, machine: HostMachine = LAPTOP) -> Away:
    found = seen(outputs, root, machine)
    assert found is not None
    return found


def test_where_it_was_made_it_is_here(tmp_path: Path) -> None:
    root = project(tmp_path / "fleet")
    assert seen(up(root), root) is None
    assert seen({}, root) is None


def test_on_another_machine_its_name_and_both_ways_out_are_said(tmp_path: Path) -> None:
    root = project(tmp_path / "fleet")
    outputs = up(root)
    shutil.rmtree(outputs["directory"])
    found = elsewhere(outputs, root, SERVER)
    assert not found.taken_up
    for words in ("machine laptop", "nothing was changed", "Work on it there", "kumulus:moveHere true", "pods, Jobs"):
        assert words in found.refusal, words


def test_two_machines_of_the_same_name_are_told_apart(tmp_path: Path) -> None:
    root = project(tmp_path / "fleet")
    found = elsewhere(up(root), root, HostMachine("c" * 32, LAPTOP.name))
    assert "aaaaaaaa" in found.refusal
    assert "cccccccc" in found.refusal


def test_one_whose_files_came_along_to_another_machine_can_be_taken_up(tmp_path: Path) -> None:
    root = project(tmp_path / "fleet")
    found = elsewhere(up(root), root, SERVER)
    assert found.taken_up
    assert "starts it here with all that is in it" in found.refusal


def test_a_moved_project_is_told_where_it_was(tmp_path: Path) -> None:
    root = project(tmp_path / "fleet")
    outputs = up(root)
    now = root.rename(tmp_path / "moved")
    found = elsewhere(outputs, now)
    assert found.files == now / ".kumulus" / "clusters" / "dev"
    assert "ends the old one" in found.refusal
    assert f"was at {root}" in found.refusal
    assert "Move it back" in found.refusal


def test_a_project_that_moved_away_from_a_cluster_elsewhere_goes_on_with_it(tmp_path: Path) -> None:
    root = project(tmp_path / "fleet")
    outputs = up(root, tmp_path / "home")
    assert seen(outputs, root.rename(tmp_path / "moved")) is None


@pytest.mark.parametrize("home", ["inside", "elsewhere"])
def test_a_copy_leaves_the_cluster_to_the_original(tmp_path: Path, home: str) -> None:
    root = project(tmp_path / "fleet")
    outputs = up(root, None if home == "inside" else tmp_path / "home")
    copy = shutil.copytree(root, tmp_path / "copy")
    found = elsewhere(outputs, copy)
    assert not found.moving
    assert f"copy of the one at {root}" in found.refusal
    assert seen(outputs, root) is None


def test_two_checkouts_with_one_backend_share_the_stack(tmp_path: Path) -> None:
    outputs = up(project(tmp_path / "one", inside=False))
    assert seen(outputs, project(tmp_path / "two", inside=False)) is None


def test_a_cluster_that_is_gone_with_its_files_is_no_obstacle_after_a_move(tmp_path: Path) -> None:
    root = project(tmp_path / "fleet")
    outputs = up(root)
    shutil.rmtree(root / ".kumulus")
    assert seen(outputs, root.rename(tmp_path / "moved")) is None


@pytest.mark.parametrize("owner", ["", "me", "[]", '{"program": 1}'])
def test_a_record_that_says_nothing_of_its_place_is_no_obstacle(tmp_path: Path, owner: str) -> None:
    root = project(tmp_path / "fleet")
    outputs = {**up(root), "owner": owner, "machine": None}
    assert seen(outputs, root.rename(tmp_path / "moved")) is None


@pytest.mark.parametrize(
    ("one", "other", "alike"),
    [
        # A project that moved, and a stack that was renamed.
        (owner("dev", URN, "/home/me/kumulus", ONE), owner("other", "urn", "/srv/kumulus", ONE), True),
        # Another checkout where everything is called alike.
        (owner("dev", URN, "/home/me/kumulus", ONE), owner("dev", URN, "/home/me/kumulus", TWO), False),
        # Without an identity, all else decides.
        (OLDER, owner("dev", URN, "/home/me/kumulus", ONE), True),
        (OLDER, owner("dev", URN, "/home/you/kumulus", ONE), False),
        ("the tests", "the tests", True),
        ("the tests", "others", False),
        ("[]", "{", False),
    ],
)
def test_who_is_the_same_owner(one: str, other: str, alike: bool) -> None:
    assert same_owner(one, other) is alike


def test_the_identity_is_put_into_an_owner_without_one() -> None:
    assert identified(OLDER, ONE) == owner("dev", URN, "/home/me/kumulus", ONE)
    assert identity_of(identified(OLDER, ONE)) == ONE
    assert (identified(OLDER, ""), identity_of(OLDER)) == (OLDER, "")
    assert (identified("the tests", ONE), identity_of("the tests")) == ("the tests", "")

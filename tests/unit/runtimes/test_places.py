"""Where clusters are kept: what is somebody else's is refused before anything is done, and never removed."""

import asyncio
import dataclasses
import json
import os
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from kumulus.host import version
from kumulus.nodes.errors import ProviderError
from kumulus.runtimes import directories
from kumulus.runtimes.base import Observed, RecordedControlPlane, Runtime, WantedControlPlane
from kumulus.runtimes.directories import exclusive
from kumulus.runtimes.existing.source import CopyPlace
from kumulus.runtimes.kind.place import KindPlace
from kumulus.runtimes.kind.runtime import KindRuntime
from kumulus.runtimes.kwok.layout import Layout
from kumulus.runtimes.kwok.runtime import KwokRuntime
from kumulus.runtimes.place import Place, owner
from tests.support.said import Said

PLACES: dict[str, type[Place]] = {"kwok": Layout, "kind": KindPlace, "existing": CopyPlace}
Occupy = Callable[[Path], object]


def made(path: Path, text: str = "mine\n") -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def linked(path: Path) -> None:
    made(path.parent.parent.parent / "elsewhere" / "precious")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.symlink_to(path.parent.parent.parent / "elsewhere")


def made_with_our_note(path: Path) -> None:
    made(path / "kumulus.json", '{"owner": "me"}')
    made(path / "values.yaml")


OCCUPIED: dict[str, tuple[Occupy, list[str]]] = {
    "another project's files": (lambda at: made(at / "deployment.yaml"), ["not this stack's (deployment.yaml)"]),
    "a kubeconfig of the user's": (lambda at: made(at / "kubeconfig.yaml"), ["not this stack's (kubeconfig.yaml)"]),
    "folders of common names": (lambda at: made(at / "logs" / "a.log"), ["not this stack's (logs)"]),
    "another program's note": (lambda at: made(at / "kumulus.json", '{"name": "x"}'), ["(kumulus.json)"]),
    "our note among another's files": (
        made_with_our_note,
        ["not this stack's (values.yaml)"],
    ),
    "another stack's cluster": (
        lambda at: made(at / "kumulus.json", '{"owner": "you"}'),
        ["that this stack did not make", "made by you"],
    ),
    "a link": (linked, ["is a symbolic link to", "elsewhere"]),
    "a link above": (lambda at: linked(at.parent), ["clusters is a symbolic link to"]),
    "a file": (made, ["is not a directory"]),
    "a file above": (lambda at: made(at.parent), ["is not a directory"]),
}


def tree(folder: Path) -> dict[str, tuple[int, bytes]]:
    """Everything below a folder: modes and contents."""
    return {
        str(path.relative_to(folder)): (
            path.lstat().st_mode,
            os.readlink(path).encode() if path.is_symlink() else path.read_bytes() if path.is_file() else b"",
        )
        for path in sorted(folder.rglob("*"))
    }


def asked(home: Path, owner: str = "me") -> WantedControlPlane:
    return WantedControlPlane("dev", owner, str(home), "v1.35.4", {})


@pytest.mark.parametrize("case", OCCUPIED)
@pytest.mark.parametrize("runtime", [KwokRuntime(), KindRuntime()], ids=["kwok", "kind"])
def test_a_place_that_is_taken_is_refused_and_nothing_is_changed(runtime: Runtime, case: str, tmp_path: Path) -> None:
    occupy, words = OCCUPIED[case]
    home = tmp_path / "home"
    occupy(home / "clusters" / "dev")
    before = tree(tmp_path)
    with pytest.raises(ProviderError) as caught:
        asyncio.run(runtime.create(asked(home), Said(), asyncio.Event()))
    for word in words:
        assert word in str(caught.value)
    if case != "another stack's cluster":
        # In a preview it may be the cluster that is to be replaced.
        with pytest.raises(ProviderError) as foretold:
            asyncio.run(runtime.examine(asked(home, owner=""), None, Said()))
        assert str(foretold.value) == str(caught.value)
    assert tree(tmp_path) == before


def test_a_stacks_own_cluster_of_another_runtime_is_no_obstacle_in_a_preview(tmp_path: Path) -> None:
    there = tmp_path / "clusters" / "dev"
    made(there / "kumulus.json", '{"owner": "me"}')
    for name in Layout.FILES - {"kumulus.json"}:
        made(there / name)
    directories.require_free(KindPlace(there), "me", preview=True)
    with pytest.raises(ProviderError, match="not this stack's"):
        directories.require_free(KindPlace(there), "me")
    made(there / "values.yaml")
    with pytest.raises(ProviderError, match=r"\(values.yaml\)"):
        directories.require_free(KindPlace(there), "me", preview=True)


@pytest.mark.parametrize("place", PLACES.values(), ids=PLACES)
@pytest.mark.parametrize("where", ["home", "home/clusters", "home/clusters/dev"])
def test_another_users_folder_is_refused(
    place: type[Place], where: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mine, home = os.geteuid(), tmp_path / "home"
    (home / "clusters" / "dev").mkdir(parents=True)
    taken, real = tmp_path / where, Path.stat

    def stat(self: Path, **options: Any) -> os.stat_result:
        found = real(self, **options)
        if self != taken:
            return found
        fields = list(found)
        fields[4] = mine + 4242
        return os.stat_result(fields)

    # To give a folder away takes an administrator.
    monkeypatch.setattr(Path, "stat", stat)
    with pytest.raises(ProviderError, match=rf"{taken} belongs to the user {mine + 4242}; set"):
        directories.require_free(place.of(str(home), "dev"), "me")
    if where == "home/clusters/dev":
        with pytest.raises(ProviderError, match="it is left alone"):
            directories.remove(place.of(str(home), "dev"))
        assert taken.is_dir()


@pytest.mark.parametrize("place", PLACES.values(), ids=PLACES)
def test_what_a_killed_run_left_is_no_obstacle(place: type[Place], tmp_path: Path) -> None:
    here = place.of(str(tmp_path), "dev")
    directories.require_free(here, "me")
    here.directory.mkdir(parents=True)
    directories.require_free(here, "me")
    (here.directory / ".kumulus.json.kumulus.tmp").touch()
    directories.require_free(here, "me")
    here.write_note({"owner": "me"})
    for name in here.FILES - {"kumulus.json"}:
        (here.directory / name).touch()
    directories.require_free(here, "me")
    assert directories.remove(here) == []
    assert not here.directory.exists()


@pytest.mark.parametrize("place", PLACES.values(), ids=PLACES)
def test_removal_leaves_what_is_not_the_clusters(place: type[Place], tmp_path: Path) -> None:
    here = place.of(str(tmp_path), "dev")
    made(here.directory / "notes.txt")
    made(here.directory / "values" / "dev.yaml")
    for name in here.FILES:
        made(here.directory / name)
    assert directories.remove(here) == ["notes.txt", "values"]
    assert {str(path.relative_to(here.directory)) for path in here.directory.rglob("*")} == {
        "notes.txt",
        "values",
        "values/dev.yaml",
    }


@pytest.mark.parametrize("place", PLACES.values(), ids=PLACES)
def test_the_note_goes_last(place: type[Place], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    here = place.of(str(tmp_path), "dev")
    for name in here.FILES:
        made(here.directory / name)
    gone: list[str] = []
    real = Path.unlink

    def unlink(self: Path, missing_ok: bool = False) -> None:
        gone.append(self.name)
        real(self, missing_ok=missing_ok)

    monkeypatch.setattr(Path, "unlink", unlink)
    directories.remove(here)
    assert gone[-1] == "kumulus.json"
    assert set(gone) == here.FILES


def test_a_link_in_a_cluster_is_removed_and_not_followed(tmp_path: Path) -> None:
    here = Layout.of(str(tmp_path / "home"), "dev")
    made(tmp_path / "elsewhere" / "precious")
    here.directory.mkdir(parents=True)
    (here.directory / "etcd").symlink_to(tmp_path / "elsewhere")
    assert directories.remove(here) == []
    assert (tmp_path / "elsewhere" / "precious").exists()


def recorded(home: Path) -> RecordedControlPlane:
    seen = Observed("uid", "", "", str(home / "clusters" / "dev"), {})
    return RecordedControlPlane.of(asked(home), seen)


@pytest.mark.parametrize("case", ["a link", "another project's files", "folders of common names"])
async def test_destroy_leaves_what_took_the_clusters_place(case: str, tmp_path: Path) -> None:
    at = tmp_path / "home" / "clusters" / "dev"
    OCCUPIED[case][0](at)
    if case == "folders of common names":
        made(at / "README.md")
    before = tree(tmp_path)
    with pytest.raises(ProviderError, match="it is left alone: remove it by hand"):
        await KwokRuntime().delete(recorded(tmp_path / "home"), Said())
    assert tree(tmp_path) == before


def mine(tmp_path: Path) -> Layout:
    """The folder of a cluster that is noted as the stack's."""
    here = Layout.of(str(tmp_path / "home"), "dev")
    here.directory.mkdir(parents=True)
    here.write_note({"owner": "me"})
    return here


@asynccontextmanager
async def waiting_destroy(here: Layout, said: Said) -> AsyncIterator[None]:
    """A destroy waits for another run, which this is, and ends after it."""
    async with exclusive(here):
        destroy = asyncio.create_task(KwokRuntime().delete(recorded(here.home), said))
        await asyncio.sleep(0.2)
        yield
    await destroy


async def test_destroy_says_what_it_leaves_in_the_clusters_folder(tmp_path: Path) -> None:
    here = mine(tmp_path)
    made(here.directory / "notes.txt")
    said = Said()
    await KwokRuntime().delete(recorded(tmp_path / "home"), said)
    assert said.messages == [f"{here.directory} has files that are not the cluster's (notes.txt); they are left alone"]
    assert tree(here.directory).keys() == {"notes.txt"}
    with pytest.raises(ProviderError, match="is not"):
        await KwokRuntime().delete(dataclasses.replace(recorded(tmp_path / "home"), directory=__file__), said)


async def test_destroy_leaves_what_another_stack_made_while_it_waited(tmp_path: Path) -> None:
    here = mine(tmp_path)
    said = Said()
    async with waiting_destroy(here, said):
        # The run that holds the lock removes the cluster; the one after it is another stack's.
        here.write_note({"owner": "you"})
        made(here.kwok_file)
    assert said.statuses[0] == "waiting for another run, which changes cluster dev"
    assert said.messages == [f"{here.directory} now belongs to you; it is left alone"]
    assert here.kwok_file.exists()


@pytest.mark.parametrize("make", [True, False], ids=["create", "destroy"])
async def test_a_lock_that_cannot_be_had_is_said_with_what_to_do(make: bool, tmp_path: Path) -> None:
    here = Layout.of(str(tmp_path / "home"), "dev") if make else mine(tmp_path)
    lock = directories.lock_file(here)
    lock.mkdir(parents=True)
    remedy = "KUMULUS_HOME can name another directory" if make else "put that right, and run `pulumi up --refresh`"
    create = KwokRuntime().create(asked(tmp_path / "home"), Said(), asyncio.Event())
    delete = KwokRuntime().delete(recorded(tmp_path / "home"), Said())
    work, other = (create, delete) if make else (delete, create)
    other.close()
    with pytest.raises(ProviderError) as raised:
        await work
    assert str(raised.value) == f"{lock}: Is a directory; {remedy}"


async def test_destroy_of_what_another_destroy_removed_meanwhile_is_done(tmp_path: Path) -> None:
    here = mine(tmp_path)
    said = Said()
    async with waiting_destroy(here, said):
        directories.remove(here)
    assert said.messages == []
    assert not (tmp_path / "home").exists()


@pytest.mark.parametrize("preview", [True, False])
def test_another_checkouts_cluster_of_the_same_names_is_refused_in_a_preview_too(tmp_path: Path, preview: bool) -> None:
    place = Layout(tmp_path / "clusters" / "dev")
    theirs, ours = (owner("dev", "urn", "/home/me/kumulus", identity * 32) for identity in "12")
    made(place.note_file, json.dumps({"owner": theirs}))
    with pytest.raises(ProviderError, match="a cluster named 'dev' that this stack did not make"):
        directories.require_free(place, ours, preview=preview)
    directories.require_free(place, theirs, preview=preview)


@pytest.mark.parametrize("runtime", sorted(PLACES))
def test_files_of_a_later_form_are_refused_with_both_versions(runtime: str, tmp_path: Path) -> None:
    place = PLACES[runtime].of(str(tmp_path), "dev")
    place.directory.mkdir(parents=True)
    note = {"owner": owner("dev", "urn", "/p", "a" * 32)}
    place.write_note(note)
    assert place.note() == note
    assert place.too_new() == ""
    directories.require_free(place, note["owner"])
    written = {**json.loads(place.note_file.read_text()), "version": "9.8.7", "form": str(version.FORM + 1)}
    place.note_file.write_text(json.dumps(written))
    assert place.note() == note
    with pytest.raises(ProviderError, match=rf"9\.8\.7.*{version.VERSION}.*nothing was changed"):
        directories.require_free(place, note["owner"])

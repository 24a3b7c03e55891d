"""The existing runtime: where a cluster is, whose it is, and what is refused before anything is done there."""

import asyncio
import json
import os
import re
import stat
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from kumulus.nodes.errors import ProviderError
from kumulus.runtimes.base import Observed, RecordedControlPlane, WantedControlPlane
from kumulus.runtimes.existing import FAULTS, NEEDS, NODES, section, source
from kumulus.runtimes.existing import source as sources
from kumulus.runtimes.existing.kwok import find_kwok
from kumulus.runtimes.existing.permissions import needed
from kumulus.runtimes.existing.runtime import ExistingRuntime
from kumulus.runtimes.existing.source import ContextSource, CopyPlace
from tests.support.apiserver import listening
from tests.support.said import Said

SECRET = "c2VjcmV0LXRva2Vu"


def document(server: str = "https://one.example:6443", token: str = SECRET) -> dict[str, Any]:
    return {
        "current-context": "dev",
        "contexts": [
            {"name": "dev", "context": {"cluster": "one", "user": "me"}},
            {"name": "prod", "context": {"cluster": "two", "user": "me", "namespace": "team"}},
        ],
        "clusters": [
            {"name": "one", "cluster": {"server": server}},
            {"name": "two", "cluster": {"server": "https://two.example:6443", "certificate-authority": "pki/ca.crt"}},
        ],
        "users": [{"name": "me", "user": {"token": token}}],
    }


def written(folder: Path, content: Mapping[str, Any]) -> Path:
    file = folder / "config"
    file.write_text(json.dumps(content))
    return file


class Cluster:
    """An API server that knows who it is, what its user may do, and nothing else."""

    def __init__(self) -> None:
        self.identity = "uid-1"
        self.refused: set[tuple[str, str]] = set()
        self.status = 200
        self.page = b""
        self.asked = 0

    async def handle(self, request: web.Request) -> web.StreamResponse:
        self.asked += 1
        if self.page:
            return web.Response(body=self.page, content_type="text/html")
        if self.status != 200:
            return web.json_response({"kind": "Status", "message": "no", "reason": "No"}, status=self.status)
        if request.path == "/api/v1/namespaces/kube-system":
            return web.json_response({"metadata": {"uid": self.identity}})
        if request.path == "/apis/apps/v1/deployments":
            return web.json_response({"items": []})
        if request.path.startswith("/apis/apiextensions.k8s.io/"):
            return web.json_response({"kind": "Status", "message": "no", "reason": "NotFound"}, status=404)
        asked = (await request.json())["spec"]["resourceAttributes"]
        what = "/".join(filter(None, (asked["resource"], asked.get("subresource"))))
        return web.json_response({"status": {"allowed": (asked["verb"], what) not in self.refused}})


def text_of(file: str) -> str:
    return Path(file).read_text()


class Existing:
    """The runtime on a fake cluster, with a kubeconfig of the user's and a home of its own."""

    def __init__(self, folder: Path, cluster: Cluster, server: str) -> None:
        self.runtime, self.cluster, self.home = ExistingRuntime(), cluster, folder / "home"
        self.config = written(folder, document(server))
        self.messages = Said()
        self.server = server

    def wanted(self, owner: str = "me", **options: Any) -> WantedControlPlane:
        return WantedControlPlane("demo", owner, str(self.home), "", {"kubeconfig": str(self.config), **options})

    async def create(self, **options: Any) -> Observed:
        return await self.runtime.create(self.wanted(**options), self.messages, asyncio.Event())

    def recorded(self, seen: Observed, **options: Any) -> RecordedControlPlane:
        return RecordedControlPlane.of(self.wanted(**options), seen)


@pytest.fixture
async def existing(tmp_path: Path) -> AsyncIterator[Existing]:
    cluster = Cluster()
    async with listening(cluster.handle) as server:
        yield Existing(tmp_path, cluster, server)


# --- the copy --------------------------------------------------------------------------------------------------------


def test_a_copy_has_one_context_alone_and_absolute_paths(tmp_path: Path) -> None:
    given = document()
    given["users"].append({"name": "other", "user": {"token": "of-nobody-else's-business"}})
    source = ContextSource.of({"kubeconfig": str(written(tmp_path, given)), "context": "prod"})
    place = CopyPlace.of(str(tmp_path / "home"), "demo")
    sources.write(place, source, "me")
    found = json.loads(place.kubeconfig.read_text())
    assert found["current-context"] == "prod"
    assert found["contexts"] == [{"name": "prod", "context": {"cluster": "two", "user": "me", "namespace": "team"}}]
    assert found["clusters"][0]["cluster"]["certificate-authority"] == str(tmp_path / "pki/ca.crt")
    assert "nobody" not in place.kubeconfig.read_text()
    assert stat.S_IMODE(place.kubeconfig.stat().st_mode) == 0o600
    assert stat.S_IMODE(place.directory.stat().st_mode) == 0o700


def test_a_copy_keeps_a_date_as_text(tmp_path: Path) -> None:
    content = json.dumps(document(), indent=1).replace(f'"{SECRET}"', f'"{SECRET}", "expiry": 2026-02-28')
    source = ContextSource.of({"kubeconfig": content})
    assert json.loads(source.text)["users"][0]["user"]["expiry"] == "2026-02-28"


def test_a_copy_takes_over_new_credentials_but_no_other_cluster(tmp_path: Path) -> None:
    config = written(tmp_path, document())
    place = CopyPlace.of(str(tmp_path / "home"), "demo")
    sources.write(place, ContextSource.of({"kubeconfig": str(config)}), "me")
    written(tmp_path, document(token="renewed"))
    sources.refresh(str(place.kubeconfig))
    assert "renewed" in place.kubeconfig.read_text()
    written(tmp_path, document(server="https://elsewhere.example:6443", token="another"))
    sources.refresh(str(place.kubeconfig))
    assert "elsewhere" not in place.kubeconfig.read_text()
    assert "renewed" in place.kubeconfig.read_text()
    before = config.read_text()
    sources.refresh(str(config))
    assert config.read_text() == before, "it is no copy"
    config.unlink()
    sources.refresh(str(place.kubeconfig))
    assert "renewed" in place.kubeconfig.read_text()


def test_the_note_and_not_a_files_name_tells_that_a_cluster_outlives_its_stack(tmp_path: Path) -> None:
    place = CopyPlace.of(str(tmp_path / "home"), "demo")
    sources.write(place, ContextSource.of({"kubeconfig": str(written(tmp_path, document()))}), "me")
    assert sources.outlives_by_note(place.directory / "called-otherwise")
    place.write_note({"owner": "me", "runtime": "kwok"})
    assert not sources.outlives_by_note(place.kubeconfig)


CONTENT = json.dumps(document(), indent=1)
UNUSABLE = CONTENT.replace('"server"', f'"certificate-authority-data": "{SECRET}", "server"')
# FOLDER and FILE are a folder and a kubeconfig in it.
MISTAKES: dict[str, tuple[dict[str, Any], str, str]] = {
    "wrong context": (
        {"kubeconfig": "FILE", "context": "produ"},
        "context",
        r"/config has no context 'produ'.*it has: dev, prod",
    ),
    "missing file": ({"kubeconfig": "FOLDER/nowhere"}, "kubeconfig", "/nowhere does not exist.*check its path"),
    "several files": ({"kubeconfig": "FOLDER/a:FOLDER/b"}, "kubeconfig", "names several files.*write the one"),
    "content that is no YAML": (
        {"kubeconfig": f"users: []\ntoken: [{SECRET}"},
        "kubeconfig",
        r"content \(existing.kubeconfig\) is not YAML.*in line 3",
    ),
    "content that is no kubeconfig": (
        {"kubeconfig": f"- token\n- {SECRET}\n"},
        "kubeconfig",
        r"content \(existing.kubeconfig\) is not a kubeconfig",
    ),
    "content without the context": (
        {"kubeconfig": CONTENT, "context": "x"},
        "context",
        r"content \(existing.kubeconfig\) has no context 'x'.*it has: dev, prod",
    ),
    "content with an unusable entry": (
        {"kubeconfig": UNUSABLE, "context": "dev"},
        "kubeconfig",
        r"content \(existing.kubeconfig\)",
    ),
    "nothing": ({}, "kubeconfig", "is required"),
    "one of several contexts": (
        {"kubeconfig": "FILE"},
        "context",
        r"is left out.*2 contexts \(dev, prod\).*write the one that is meant, such as dev",
    ),
    "one of several contexts in content": (
        {"kubeconfig": CONTENT},
        "context",
        r"content \(existing.kubeconfig\) has 2 contexts",
    ),
    "an unknown need": (
        {"kubeconfig": "FILE", "context": "dev", "needs": ["gold"]},
        "needs",
        "is not a list of: nodes, ",
    ),
}


def test_the_one_context_need_not_be_written(tmp_path: Path) -> None:
    alone = {**document(), "contexts": document()["contexts"][:1]}
    assert ExistingRuntime().problems({"kubeconfig": str(written(tmp_path, alone))}) == {}
    assert ExistingRuntime().problems({"kubeconfig": str(written(tmp_path, document())), "context": "dev"}) == {}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_is_told_with_its_place_and_remedy_and_without_keys(tmp_path: Path, mistake: str) -> None:
    options, key, words = MISTAKES[mistake]
    setting = str(options.get("kubeconfig", "")).replace("FILE", str(written(tmp_path, document())))
    found = ExistingRuntime().problems({**options, "kubeconfig": setting.replace("FOLDER", str(tmp_path))})
    assert list(found) == [key]
    assert re.search(words, found[key])
    assert SECRET not in found[key]


# --- the cluster -----------------------------------------------------------------------------------------------------


async def test_a_cluster_is_looked_at_and_left_as_it_is(existing: Existing) -> None:
    seen = await existing.create(needs=[NODES])
    assert (seen.identity, seen.server, seen.health) == ("uid-1", existing.server, "running")
    assert await existing.runtime.read(existing.recorded(seen), existing.messages) == seen
    await existing.runtime.delete(existing.recorded(seen), existing.messages)
    assert not existing.home.exists()
    assert existing.config.exists()


async def test_another_cluster_behind_the_context_is_refused(existing: Existing) -> None:
    seen = await existing.create()
    existing.cluster.identity = "uid-2"
    words = r"leads to another cluster: .* is uid-2, and was uid-1 at the last update; nothing was changed"
    with pytest.raises(ProviderError, match=words):
        await existing.runtime.examine(existing.wanted(), seen.identity, existing.messages)
    with pytest.raises(ProviderError, match=words):
        await existing.runtime.read(existing.recorded(seen), existing.messages)
    with pytest.raises(ProviderError, match=words):
        await existing.runtime.repair(existing.wanted(), seen.identity, existing.messages)


async def test_another_way_to_the_same_cluster_is_taken_and_to_another_one_is_not(
    existing: Existing, tmp_path: Path
) -> None:
    seen = await existing.create()
    before = text_of(seen.kubeconfig)
    async with listening(existing.cluster.handle) as server:
        written(tmp_path, document(server))
        existing.cluster.identity = "uid-2"
        with pytest.raises(ProviderError, match="leads to another cluster"):
            await existing.runtime.examine(existing.wanted(), seen.identity, existing.messages)
        assert text_of(seen.kubeconfig) == before
        existing.cluster.identity = "uid-1"
        await existing.runtime.examine(existing.wanted(), seen.identity, existing.messages)
        assert server in text_of(seen.kubeconfig)


async def test_missing_permissions_are_told_all_at_once(existing: Existing) -> None:
    existing.cluster.refused = {("create", "nodes"), ("patch", "nodes/status"), ("delete", "nodes"), ("get", "leases")}
    with pytest.raises(ProviderError) as raised:
        await existing.create(needs=[NODES, FAULTS])
    assert (
        "the user 'me' lacks permissions that this stack needs: nodes: create, delete; nodes/status: patch; "
        "leases.coordination.k8s.io in kube-node-lease: get. docs/clusters.md" in str(raised.value)
    )
    assert not existing.home.exists()


@pytest.mark.parametrize(
    ("status", "words"),
    [
        (401, "does not accept the credentials of the user 'me' .401 Unauthorized.: they may have expired; renew them"),
        (403, "the user 'me' lacks permissions that this stack needs: namespaces: get"),
        (404, "404 .*; nothing was changed"),
    ],
)
async def test_a_server_that_refuses_is_told_with_a_remedy(existing: Existing, status: int, words: str) -> None:
    existing.cluster.status = status
    with pytest.raises(ProviderError, match=words) as raised:
        await existing.create()
    assert SECRET not in str(raised.value)
    assert not existing.home.exists()


@pytest.mark.parametrize("page", [b"<html>please sign in</html>", b'"text"', b"[]", b"{}", b'{"metadata": 1}'])
async def test_a_page_in_place_of_the_api_server_is_told(existing: Existing, page: bytes) -> None:
    existing.cluster.page = page
    with pytest.raises(ProviderError, match="this is no answer of an API server; is something else between it and us"):
        await existing.create()
    assert not existing.home.exists()


async def test_an_unreachable_server_is_told_soon(
    existing: Existing, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert sources._PATIENCE_S <= 10
    monkeypatch.setattr(sources, "_PATIENCE_S", 1.0)
    written(tmp_path, document("http://127.0.0.1:1"))
    with pytest.raises(ProviderError, match=r"is not reachable: .*refused; nothing was changed\. When it answers"):
        await asyncio.wait_for(existing.create(), 5)


# --- whether KWOK is there -------------------------------------------------------------------------------------------

NO_KWOK = {"controller": "", "stages": False}


@pytest.mark.parametrize(
    ("status", "words"),
    [
        (200, ""),
        # The permission check lists what is missing.
        (403, ""),
        (401, "does not accept the credentials of the user 'me'"),
        (404, "404 No: no; nothing was changed"),
    ],
)
async def test_a_cluster_that_does_not_say_whether_kwok_is_there_is_not_one_without(
    existing: Existing, status: int, words: str
) -> None:
    existing.cluster.status = status
    found = await find_kwok({"kubeconfig": str(existing.config), "context": "dev", "release": "mine"})
    assert {key: found[key] for key in NO_KWOK} == NO_KWOK
    assert ("problem" in found) == bool(words)
    assert words in found.get("problem", "")


async def test_kwok_in_a_cluster_that_is_out_of_reach_is_told_as_the_runtime_tells_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(source, "_PATIENCE_S", 0.5)
    config = written(tmp_path, document("http://127.0.0.1:1"))
    found = await find_kwok({"kubeconfig": str(config), "context": "dev"})
    assert f"context 'dev' of kubeconfig {config}: the Kubernetes API server" in found["problem"]
    assert "nothing was changed. When it answers, run this again" in found["problem"]


async def test_a_kubeconfig_that_cannot_be_used_is_the_clusters_own_problem(tmp_path: Path) -> None:
    assert await find_kwok({"kubeconfig": str(tmp_path / "nowhere"), "context": "dev"}) == NO_KWOK


async def test_another_stacks_cluster_of_that_name_is_left_alone(existing: Existing) -> None:
    await existing.create()
    with pytest.raises(ProviderError, match="that this stack did not make"):
        await existing.runtime.create(existing.wanted(owner="you"), existing.messages, asyncio.Event())


def damage(path: str) -> None:
    Path(path).write_bytes(b"\xff\xfe")


async def test_a_damaged_copy_is_written_again(existing: Existing) -> None:
    seen = await existing.create()
    damage(seen.kubeconfig)
    await existing.runtime.read(existing.recorded(seen), existing.messages)
    assert SECRET in text_of(seen.kubeconfig)


async def test_content_is_written_where_it_is_missing(existing: Existing) -> None:
    content = json.dumps(document(existing.server), indent=1)
    seen = await existing.create(kubeconfig=content)
    recorded = existing.recorded(seen, kubeconfig=content)
    os.unlink(seen.kubeconfig)
    await existing.runtime.read(recorded, existing.messages)
    assert SECRET in text_of(seen.kubeconfig)


def test_every_need_has_permissions() -> None:
    for need in NEEDS:
        assert needed([need])
    assert len(needed(NEEDS)) == len(set(needed(NEEDS)))


def test_a_kubeconfig_below_a_home_that_nobody_has_is_looked_for_as_it_is_written(tmp_path: Path) -> None:
    written = section.Existing(kubeconfig="~nosuchuser/config")
    assert written.options(tmp_path) == {"kubeconfig": str(tmp_path / "~nosuchuser" / "config")}

"""Which control planes' storage new nodes are written to, and what is said of the others."""

import asyncio
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from kumulus import toolchain
from kumulus.host import processes
from kumulus.nodes.errors import ProviderError
from kumulus.nodes.pools.through_storage import NotThroughStorage
from kumulus.runtimes.kwok import configuration, etcd_space
from kumulus.runtimes.kwok.etcd_keys import EtcdKeys
from kumulus.runtimes.kwok.layout import Layout, dump
from kumulus.runtimes.kwok.storage import Storages
from tests.support.apiserver import serving
from tests.support.said import Said

VERSION = f"v{toolchain.kubernetes_versions()[-1]}"


def cluster(home: Path, flags: Sequence[str] = (), options: Any = None) -> Layout:
    """The files of a control plane."""
    layout = Layout.of(str(home), "dev")
    (layout.directory / "pki").mkdir(parents=True)
    for name in ("ca.crt", "admin.crt", "admin.key"):
        (layout.directory / "pki" / name).write_text("-----BEGIN")
    components = [
        {"name": "etcd", "args": ["--client-cert-auth=true"]},
        {"name": "kube-apiserver", "args": ["--etcd-prefix=/registry", *flags]},
    ]
    settings = {"kind": "KwokctlConfiguration", "options": {"etcdPort": 1}, "components": components}
    layout.kwok_file.write_text(dump([settings]))
    if options is not None:
        layout.declared_file.write_text(json.dumps(options))
    return layout


async def answer(request: web.Request) -> web.StreamResponse:
    """A server of the version, without webhooks and policies."""
    return web.json_response({"gitVersion": VERSION} if request.path == "/version" else {"items": []})


async def why_not(layout: Layout) -> str:
    """Why nodes of a cluster are posted; empty when they are written."""
    async with serving() as server:
        server.answers = [answer]
        client, found = server.client(), Storages()
        try:
            if (known := await found.of(str(layout.kubeconfig), client)) is not None:
                assert await found.of(str(layout.kubeconfig), client) is known
                await known.connection.close()
                return ""
        except NotThroughStorage as reason:
            # It is said once.
            assert await found.of(str(layout.kubeconfig), client) is None
            return str(reason)
        finally:
            await client.close()
    return "not a cluster of this runtime"


@pytest.mark.parametrize("options", [None, {"options": {"createThrough": "storage"}}, {"options": {}}, {}, [], "x"])
async def test_a_control_plane_as_it_is_made_is_written_to(tmp_path: Path, options: Any) -> None:
    assert await why_not(cluster(tmp_path, options=options)) == ""


async def test_who_asks_for_posts_gets_them(tmp_path: Path) -> None:
    found = cluster(tmp_path, options={"options": {"createThrough": "api"}})
    assert await why_not(found) == "kwok.createThrough is api"


@pytest.mark.parametrize(
    "flag",
    [
        "--encryption-provider-config=/x",
        "--enable-admission-plugins=A,B",
        "--admission-control-config-file=/x",
        "--storage-media-type=application/json",
        "--etcd-servers-overrides=/nodes#https://127.0.0.1:1",
        "--audit-policy-file=/x",
    ],
)
async def test_an_api_server_that_stores_otherwise_gets_posts(tmp_path: Path, flag: str) -> None:
    assert await why_not(cluster(tmp_path, [flag])) == f"the API server has {flag.partition('=')[0]}"


async def test_another_prefix_of_its_keys_gets_posts(tmp_path: Path) -> None:
    layout = cluster(tmp_path)
    layout.kwok_file.write_text(layout.kwok_file.read_text().replace("/registry", "/elsewhere"))
    assert await why_not(layout) == "the API server has --etcd-prefix"


async def test_a_version_that_was_not_tried_gets_posts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(toolchain, "kubernetes_versions", lambda: [VERSION.removeprefix("v") + "1"])
    assert f"Kubernetes {VERSION} is not known" in await why_not(cluster(tmp_path))


async def test_a_cluster_without_its_certificates_gets_posts(tmp_path: Path) -> None:
    layout = cluster(tmp_path)
    (layout.directory / "pki" / "admin.key").unlink()
    assert "admin.key: No such file" in await why_not(layout)


async def test_a_cluster_whose_port_of_etcd_is_not_known_gets_posts_with_that_reason(tmp_path: Path) -> None:
    layout = cluster(tmp_path)
    layout.kwok_file.write_text(layout.kwok_file.read_text().replace("etcdPort: 1", "etcdPort: 0"))
    assert await why_not(layout) == f"{layout.kwok_file} has no port of etcd"
    with pytest.raises(ProviderError, match=f"^{layout.kwok_file} has no port of etcd; "):
        EtcdKeys(layout)


async def test_other_runtimes_have_no_storage_of_ours(tmp_path: Path) -> None:
    assert await why_not(Layout.of(str(tmp_path), "none")) == "not a cluster of this runtime"


@pytest.fixture
def ended(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    found: list[int] = []
    monkeypatch.setattr(processes, "running", lambda _: {"etcd": [11], "kube-apiserver": [12]})
    monkeypatch.setattr(processes, "end", found.extend)
    return found


@pytest.fixture
def layout(tmp_path: Path) -> Layout:
    found = Layout.of(str(tmp_path), "dev")
    found.directory.mkdir(parents=True)
    components: list[dict[str, Any]] = [
        {"name": "etcd", "args": ["--name=node0", "--quota-backend-bytes=8589934592", "--data-dir=x"]},
        {"name": "kube-apiserver", "args": ["--quota-backend-bytes=1"]},
    ]
    found.write_documents([{"kind": "KwokctlConfiguration", "components": components}, {"kind": "Stage"}])
    return found


def arguments(layout: Layout) -> list[list[str]]:
    return [each["args"] for each in layout.settings()["components"]]


def test_another_quota_restarts_etcd_alone(layout: Layout, ended: list[int]) -> None:
    assert etcd_space.change_quota(layout, {"etcdQuota": "16Mi"})
    wanted = ["--name=node0", "--data-dir=x", "--quota-backend-bytes=16777216"]
    assert arguments(layout) == [wanted, ["--quota-backend-bytes=1"]]
    assert ended == [11]
    assert len(layout.documents()) == 2


@pytest.mark.parametrize("options", [{}, {"etcdQuota": None}, {"etcdQuota": "8Gi"}, {"etcdQuota": "8192Mi"}])
def test_the_same_quota_changes_nothing(layout: Layout, ended: list[int], options: dict[str, Any]) -> None:
    before = layout.kwok_file.read_text()
    assert not etcd_space.change_quota(layout, options)
    assert (layout.kwok_file.read_text(), ended) == (before, [])


def test_neither_a_quota_nor_stages_as_objects_take_a_new_cluster() -> None:
    assert {"etcdQuota", "stageObjects"}.isdisjoint(configuration.REPLACED_BY)


def test_an_etcd_that_does_not_answer_is_not_taken_for_full(layout: Layout) -> None:
    said = Said()
    assert not asyncio.run(etcd_space.is_full(layout))
    assert not asyncio.run(etcd_space.relieve(layout, said))
    assert not asyncio.run(etcd_space.relieve_cluster("/nowhere/kubeconfig.yaml", said))

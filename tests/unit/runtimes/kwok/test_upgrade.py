"""Another Kubernetes version in place: what may become what, and what is written when."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from kumulus import toolchain
from kumulus.host import processes
from kumulus.nodes.errors import ProviderError
from kumulus.runtimes.kwok import api, upgrade
from kumulus.runtimes.kwok.layout import Layout
from tests.support.apiserver import serving
from tests.support.said import Said

CHANGED = ("kube-apiserver", "kube-controller-manager", "kube-scheduler")
NAMES = ("etcd", *CHANGED, "kwok-controller")


@pytest.mark.parametrize(
    ("old", "new", "possible"),
    [
        ("v1.34.1", "v1.34.3", True),
        ("v1.34.3", "v1.34.1", True),
        ("v1.34.1", "v1.35.4", True),
        ("v1.33.0", "v1.35.4", False),
        ("v1.35.4", "v1.34.1", False),
        ("v1.35.4", "v2.36.0", False),
        ("", "v1.35.4", False),
        ("latest", "v1.35.4", False),
        ("1", "2", False),
        ("v1.35", "v1.35.4", False),
    ],
)
def test_kubernetes_goes_by_one_minor_version_at_a_time_and_not_back(old: str, new: str, possible: bool) -> None:
    assert upgrade.in_place(old, new) is possible


@pytest.fixture
def layout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Layout:
    """A cluster of Kubernetes 1.34.1, of which nothing runs."""
    found = Layout.of(str(tmp_path), "dev")
    (found.directory / "bin").mkdir(parents=True)
    for name in NAMES:
        (found.directory / "bin" / name).symlink_to(f"/tools/1.34.1/{name}")
    settings: dict[str, Any] = {
        "kind": "KwokctlConfiguration",
        "options": {"kubeVersion": "v1.34.1", "etcdPort": 20002},
        "components": [{"name": name, "version": "1.34.1", "args": ["--flag"]} for name in NAMES],
    }
    found.write_documents([settings, {"kind": "KwokConfiguration"}])
    monkeypatch.setattr(processes, "running", lambda _: {})
    monkeypatch.setattr(toolchain, "find", lambda name, version: Path(f"/tools/{version}/{name}"))
    return found


def links(layout: Layout) -> dict[str, str]:
    return {file.name: str(file.readlink()) for file in (layout.directory / "bin").iterdir()}


def test_the_programs_are_exchanged_and_etcd_and_kwok_stay(layout: Layout) -> None:
    assert upgrade.exchange(layout, "v1.35.4", Said())
    wanted = {name: f"/tools/v1.35.4/{name}" for name in CHANGED}
    assert links(layout) == {"etcd": "/tools/1.34.1/etcd", "kwok-controller": "/tools/1.34.1/kwok-controller", **wanted}
    settings = layout.settings()
    versions = {each["name"]: each["version"] for each in settings["components"]}
    assert versions == {name: "1.35.4" if name in CHANGED else "1.34.1" for name in NAMES}
    assert settings["options"]["kubeVersion"] == "v1.35.4"
    assert settings["options"]["kubeApiserverBinary"] == wanted["kube-apiserver"]
    assert (settings["options"]["etcdPort"], len(layout.documents())) == (20002, 2)


def test_the_version_that_is_there_changes_nothing(layout: Layout) -> None:
    before = layout.kwok_file.read_text()
    assert not upgrade.exchange(layout, "v1.34.1", Said())
    assert not upgrade.exchange(layout, "", Said())
    assert layout.kwok_file.read_text() == before


def test_a_run_that_is_killed_before_the_version_is_written_is_done_again(
    layout: Layout, monkeypatch: pytest.MonkeyPatch
) -> None:
    def killed(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(Layout, "write_documents", killed)
        with pytest.raises(KeyboardInterrupt):
            upgrade.exchange(layout, "v1.35.4", Said())
    assert layout.settings()["options"]["kubeVersion"] == "v1.34.1"
    assert upgrade.exchange(layout, "v1.35.4", Said())


def test_a_version_that_is_not_there_ends_nothing(layout: Layout, monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(*_: object) -> Path:
        raise toolchain.ToolMissing("kube-apiserver v1.35.4 is not there")

    ended: list[int] = []
    monkeypatch.setattr(toolchain, "find", missing)
    monkeypatch.setattr(processes, "running", lambda _: {"kube-apiserver": [1]})
    monkeypatch.setattr(processes, "end", ended.extend)
    with pytest.raises(toolchain.ToolMissing, match="is not there"):
        upgrade.exchange(layout, "v1.35.4", Said())
    assert ended == []


def test_a_way_that_kubernetes_does_not_go_ends_nothing(layout: Layout) -> None:
    with pytest.raises(ProviderError, match="one minor version at a time"):
        upgrade.exchange(layout, "v1.33.0", Said())
    assert links(layout)["kube-apiserver"] == "/tools/1.34.1/kube-apiserver"


GROUP = "/apis/scheduling.k8s.io/v1alpha2"
WORKLOADS = {"resources": [{"name": "workloads"}, {"name": "podgroups"}, {"name": "podgroups/status"}]}


@pytest.fixture
def at_1_36(layout: Layout) -> Layout:
    """The cluster at 1.36, with the API of workloads of that version."""
    flags = ["--runtime-config=scheduling.k8s.io/v1alpha2=true"]
    settings = layout.settings()
    settings["options"]["kubeVersion"] = "v1.36.3"
    for each in settings["components"]:
        each["args"] = flags if each["name"] == "kube-apiserver" else []
    layout.write_documents([settings])
    return layout


async def fits(
    layout: Layout, monkeypatch: pytest.MonkeyPatch, version: str, answers: Mapping[str, list[str]] | None
) -> tuple[list[str], list[str]]:
    """What is asked of the API server about another version, and what is said.

    It has these objects, by the resource of the API version that ends; without answers, it does not answer.
    """
    said = Said()

    async def answer(request: web.Request) -> web.StreamResponse:
        _, _, resource = request.path.rpartition("/")
        if answers is None:
            return web.json_response({"kind": "Status", "reason": "Gone", "message": "no"}, status=410)
        if request.path == GROUP:
            return web.json_response(WORKLOADS if answers else {"kind": "Status"}, status=200 if answers else 404)
        return web.json_response({"items": [{"metadata": {"name": name}} for name in answers[resource]]})

    async with serving() as server:
        server.answers = [answer]
        monkeypatch.setattr(api, "client", lambda layout, patience: server.client())
        await upgrade.require_readable(layout, version, said)
        return [each.path for each in server.seen], said.messages


async def test_objects_that_a_version_cannot_read_have_to_go_first(
    at_1_36: Layout, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(ProviderError) as refused:
        await fits(at_1_36, monkeypatch, "v1.37.2", {"workloads": ["a"], "podgroups": ["b", "c"]})
    assert str(refused.value) == (
        "cluster dev has objects of scheduling.k8s.io/v1alpha2 (workloads: 1, podgroups: 2), which Kubernetes v1.37.2 "
        "cannot read; remove them first: kubectl delete workloads.v1alpha2.scheduling.k8s.io,"
        "podgroups.v1alpha2.scheduling.k8s.io --all --all-namespaces"
    )


@pytest.mark.parametrize("answers", [{}, {"workloads": [], "podgroups": []}], ids=["not served", "none"])
async def test_a_cluster_without_such_objects_gets_the_next_version(
    at_1_36: Layout, monkeypatch: pytest.MonkeyPatch, answers: dict[str, list[str]]
) -> None:
    asked, warned = await fits(at_1_36, monkeypatch, "v1.37.2", answers)
    assert asked[0] == GROUP
    assert warned == []


@pytest.mark.parametrize("version", ["v1.36.3", "v1.36.9", "v1.35.4", "v1.38.0", ""])
async def test_of_any_other_version_nothing_is_asked(
    at_1_36: Layout, monkeypatch: pytest.MonkeyPatch, version: str
) -> None:
    assert await fits(at_1_36, monkeypatch, version, {"workloads": ["a"], "podgroups": []}) == ([], [])


async def test_an_api_server_that_does_not_say_is_warned_of_if_it_could_have_such_objects(
    at_1_36: Layout, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, warned = await fits(at_1_36, monkeypatch, "v1.37.2", None)
    assert len(warned) == 1
    assert warned[0].startswith(
        "whether cluster dev has objects of scheduling.k8s.io/v1alpha2, which Kubernetes v1.37.2 cannot read, is not "
    )
    settings = at_1_36.settings()
    for each in settings["components"]:
        each["args"] = []
    at_1_36.write_documents([settings])
    assert (await fits(at_1_36, monkeypatch, "v1.37.2", None))[1] == []

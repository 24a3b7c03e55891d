"""Files of a cluster that were cut off, by a full disk or a loss of power: damaged, and never taken for running."""

import asyncio
import os
import stat
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from kumulus.host import processes
from kumulus.nodes.errors import ProviderError
from kumulus.provider.connections import Connections
from kumulus.provider.resources.cluster import ClusterResource
from kumulus.provider.resources.cluster_place import UNSHOWN
from kumulus.provider.resources.diffing import PropertyDifference
from kumulus.runtimes import apiserver
from kumulus.runtimes.base import Observed, RecordedControlPlane, WantedControlPlane
from kumulus.runtimes.kwok import addition, api, etcd_space, hung, kept, starting, upgrade
from kumulus.runtimes.kwok.layout import Layout, dump
from kumulus.runtimes.kwok.runtime import KwokRuntime
from kumulus.runtimes.place import owner
from tests.support.said import Said

NAMES = ("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kwok-controller")
DOCUMENTS: list[dict[str, Any]] = [
    {
        "kind": "KwokctlConfiguration",
        "options": {"kubeApiserverPort": 20001, "etcdPort": 20002},
        "components": [{"name": name, "args": [f"--data-dir=/tmp/{name}", "--flag"]} for name in NAMES],
    },
    {"kind": "KwokConfiguration", "options": {"cidr": "10.0.0.0/16"}},
    {"kind": "Stage", "metadata": {"name": "node-ready"}, "spec": {"next": {"delete": False}}},
]

KUBECONFIG = {
    "clusters": [{"name": "dev", "cluster": {"server": "https://127.0.0.1:20001"}}],
    "users": [{"name": "dev", "user": {"client-key": "pki/admin.key"}}],
    "contexts": [{"name": "dev", "context": {"cluster": "dev", "user": "dev"}}],
    "current-context": "dev",
}
PEM = "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n"


@pytest.fixture
def layout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Layout:
    """A cluster as it was left, whose processes all run."""
    found = Layout.of(str(tmp_path), "dev")
    found.directory.mkdir(parents=True)
    found.write_documents(DOCUMENTS)
    found.write_note({"owner": "me", "configuration": "x"})
    found.kubeconfig.write_text(dump([KUBECONFIG]))
    (found.directory / "pki").mkdir()
    for name in ("ca.crt", "admin.key"):
        (found.directory / "pki" / name).write_text(PEM)
    kept.keep(found)
    monkeypatch.setattr(processes, "running", lambda _: {name: [1] for name in NAMES})
    monkeypatch.setattr(processes, "orphaned", lambda *_: set())
    monkeypatch.setattr(apiserver, "identity", partial(_asked_once, apiserver.identity))
    return found


async def _asked_once(identity: Callable[..., Awaitable[str]], kubeconfig: Path, *, patience: float) -> str:
    """No API server is there in these tests: nobody waits until it comes."""
    return await identity(kubeconfig, patience=0.0)


def wanted(layout: Layout) -> WantedControlPlane:
    return WantedControlPlane("dev", "me", str(layout.home), "v1.35.4", {})


def recorded(layout: Layout) -> RecordedControlPlane:
    return RecordedControlPlane.of(
        wanted(layout), Observed("uid", str(layout.kubeconfig), "", str(layout.directory), {})
    )


def observed(layout: Layout, said: Said | None = None) -> Observed:
    found = asyncio.run(KwokRuntime().read(recorded(layout), said or Said()))
    assert found is not None
    return found


def repaired(layout: Layout) -> Said:
    said = Said()
    KwokRuntime()._mend(layout, wanted(layout), said)
    return said


@pytest.mark.parametrize("cut", [*range(0, len(dump(DOCUMENTS)), 29), len(dump(DOCUMENTS)) - 1])
def test_wherever_the_file_is_cut_it_is_damaged_and_comes_back(layout: Layout, cut: int) -> None:
    whole = layout.kwok_file.read_text()
    layout.kwok_file.write_text(whole[:cut])
    found = observed(layout)
    assert found.components["kwok.yaml"] == "damaged"
    assert set(NAMES) < set(found.components)
    assert found.health == "degraded"
    assert found.server == "https://127.0.0.1:20001"
    said = repaired(layout)
    assert layout.kwok_file.read_text() == whole
    assert said.messages == [f"{layout.kwok_file} was damaged and is restored from its copy"]
    assert stat.S_IMODE(layout.kwok_file.stat().st_mode) == 0o600


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\x00" * 400,
        b"\xff\xfe\x00half",
        b"[" * 200_000,
        b"kind: KwokctlConfiguration\ncomponents: [1, etcd]",
        b"kind: KwokctlConfiguration\noptions: [1]\ncomponents: {}",
        b"kind: KwokctlConfiguration\noptions: {etcdPort: [1]}\ncomponents: [{name: etcd, ports: 3}]",
    ],
)
def test_whatever_the_file_has_become_it_is_damaged(layout: Layout, content: bytes) -> None:
    layout.kwok_file.write_bytes(content)
    # Asked by every cluster beside it, too.
    assert isinstance(Layout.of(str(layout.home), "other").taken_ports(), set)
    assert observed(layout).health == "degraded"
    repaired(layout)
    assert layout.documents() == DOCUMENTS


@pytest.mark.parametrize("copy", [None, "half: ["])
def test_without_a_whole_copy_it_is_told_and_only_a_new_cluster_helps(layout: Layout, copy: str | None) -> None:
    layout.kept_file.unlink()
    if copy:
        layout.kept_file.write_text(copy)
    layout.kwok_file.write_text("half: [")
    found = observed(layout)
    assert found.components == {"kwok.yaml": "missing"}
    assert found.health == "incomplete"
    with pytest.raises(ProviderError, match="damaged and has no copy") as caught:
        repaired(layout)
    assert "--refresh` replaces it" in str(caught.value)
    assert layout.kwok_file.read_text() == "half: ["


def test_a_cluster_without_its_copy_gets_one_when_it_is_looked_at(layout: Layout) -> None:
    layout.kept_file.unlink()
    observed(layout)
    assert layout.kept_file.read_text() == layout.kwok_file.read_text()
    assert stat.S_IMODE(layout.kept_file.stat().st_mode) == 0o600


@pytest.mark.parametrize("content", ["", "{", '{"owner": ', "[]", "\x00\x00"])
def test_a_note_that_cannot_be_read_is_written_anew_with_its_owner(layout: Layout, content: str) -> None:
    layout.note_file.write_text(content)
    assert layout.damaged()
    # Its settings count as changed: so the next update repairs it.
    assert observed(layout).configuration == ""
    repaired(layout)
    assert layout.note() == {"owner": "me"}
    assert not layout.damaged()


def test_a_whole_file_is_not_damaged_nor_one_that_a_change_of_settings_shortens(layout: Layout) -> None:
    assert "kwok.yaml" not in observed(layout).components
    assert not kept.restore(layout)
    layout.write_documents(DOCUMENTS[:2])
    assert not kept.restore(layout)


@pytest.mark.parametrize("cut", [*range(0, len(dump([KUBECONFIG])), 23), len(dump([KUBECONFIG])) - 1, None])
def test_wherever_the_kubeconfig_is_cut_it_is_damaged_and_comes_back(layout: Layout, cut: int | None) -> None:
    whole = layout.kubeconfig.read_text()
    if cut is None:
        layout.kubeconfig.unlink()
    else:
        layout.kubeconfig.write_text(whole[:cut])
    assert observed(layout).components["kubeconfig.yaml"] == "damaged"
    assert repaired(layout).messages == [f"{layout.kubeconfig} was damaged and is restored from its copy"]
    assert layout.kubeconfig.read_text() == whole
    assert stat.S_IMODE(layout.kubeconfig.stat().st_mode) == 0o600
    assert kept.lost(layout) == []


def test_a_file_that_is_gone_comes_back_from_its_copy_and_the_cluster_is_not_taken_for_removed(layout: Layout) -> None:
    layout.kwok_file.unlink()
    assert not layout.removed()
    assert observed(layout).components["kwok.yaml"] == "damaged"
    repaired(layout)
    assert layout.documents() == DOCUMENTS


def test_a_cluster_whose_note_is_gone_is_replaced_only_with_consent_and_is_given_one(
    layout: Layout, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(UNSHOWN, "1")
    answers(monkeypatch, "uid")
    cluster = ClusterResource({"kwok": KwokRuntime()}, Connections())
    inputs = cluster.check({}, {"name": "dev", "runtime": "kwok", "home": str(layout.home)}, "/").inputs
    place = {"directory": str(layout.directory), "kubeconfig": str(layout.kubeconfig), "identity": "uid"}
    old = {**inputs, **place, "configuration": KwokRuntime().configuration(wanted(layout)), "owner": "me"}
    layout.note_file.unlink()
    assert not layout.removed()
    assert asyncio.run(cluster.compare(old, inputs)) == [PropertyDifference("configuration", "update")]
    with pytest.raises(ProviderError, match="would be replaced"):
        asyncio.run(cluster.compare({**old, "options": {"apiServerPort": 7000}}, inputs))
    for file in (layout.kwok_file, layout.kept_file):
        file.unlink()
    assert asyncio.run(cluster.compare(old, inputs)) == [PropertyDifference("status", "update-replace")]


@pytest.mark.parametrize("content", ["", PEM[:20], PEM[:-8], "\x00" * 60])
def test_a_damaged_key_is_told_and_only_a_new_cluster_helps(layout: Layout, content: str) -> None:
    (layout.directory / "pki" / "admin.key").write_text(content)
    said = Said()
    found = observed(layout, said)
    assert (found.health, found.components["pki/admin.key"]) == ("incomplete", "missing")
    assert "pki/admin.key is damaged and has no copy" in said.messages[0]
    assert "`pulumi up --refresh` replaces it, without the objects in it" in said.messages[0]
    with pytest.raises(ProviderError, match=r"pki/admin\.key is damaged and has no copy"):
        repaired(layout)


def test_what_kwokctl_has_written_is_synced_when_a_cluster_is_made(
    layout: Layout, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[str] = []
    monkeypatch.setattr(os, "fsync", lambda handle: synced.append(os.readlink(f"/proc/self/fd/{handle}")))
    kept.sync(layout)
    names = ("kwok.yaml", "kubeconfig.yaml", "pki/ca.crt", "pki/admin.key", "pki")
    assert {str(layout.directory / name) for name in names} | {str(layout.directory)} <= set(synced)


def explained(layout: Layout, monkeypatch: pytest.MonkeyPatch, ended: str, *log: str) -> str:
    """What is said of a component that has ended, and of etcd's log, if it is etcd or etcd runs."""
    logs = layout.directory / "logs"
    logs.mkdir(exist_ok=True)
    (logs / "kube-apiserver.log").write_text("F1122 instance.go:233] Error creating leases\n")
    (logs / "etcd.log").write_text("".join(f"{line}\n" for line in log))
    monkeypatch.setattr(processes, "running", lambda _: {} if ended == "etcd" else {"etcd": [1]})
    return api.explain(layout, f"{ended} of cluster dev ended")


@pytest.mark.parametrize(
    ("said", "lost"),
    [
        ('{"level":"fatal","msg":"failed to read WAL","error":"walpb: crc mismatch"}', True),
        ("panic: freepages: failed to get all reachable pages (page 3: multiple references)", True),
        ('{"level":"warn","msg":"rejected connection","error":"unexpected EOF"}', False),
        ('{"level":"fatal","msg":"listen tcp 127.0.0.1:20002: bind: address already in use"}', False),
    ],
)
def test_of_an_etcd_that_cannot_read_its_data_it_is_said_what_is_lost_and_what_to_do(
    layout: Layout, monkeypatch: pytest.MonkeyPatch, said: str, lost: bool
) -> None:
    told = explained(layout, monkeypatch, "etcd", said)
    assert told.startswith("etcd of cluster dev ended\n  ")
    assert ("what was in the cluster is lost" in told) is lost
    assert (f"Remove {layout.directory}, and `pulumi up --refresh` makes" in told) is lost


def test_of_an_etcd_that_found_no_room_nothing_is_said_to_be_lost(
    layout: Layout, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It has given back what it had taken when the disk is looked at."""
    last = '{"level":"fatal","msg":"failed to read WAL, cannot be repaired","error":"no space left on device"}'
    told = explained(layout, monkeypatch, "etcd", last)
    assert f"\n  no disk space left at {layout.home}; free some, and run `pulumi up --refresh`\n" in told
    assert "lost" not in told
    assert "Remove" not in told


def test_of_an_etcd_whose_log_has_lost_its_end_it_is_said_that_it_takes_nothing_and_what_to_do(
    layout: Layout, monkeypatch: pytest.MonkeyPatch
) -> None:
    stuck = '{"msg":"failed to publish local member to cluster through raft"}'
    told = explained(layout, monkeypatch, "kube-apiserver", stuck)
    assert f"etcd runs and takes nothing, as when the end of its log in {layout.directory}/etcd is gone" in told
    assert f"what was in the cluster is lost: remove {layout.directory}" in told
    published = '{"msg":"published local member to cluster through raft"}'
    assert "takes nothing" not in explained(layout, monkeypatch, "kube-apiserver", stuck, published)


@pytest.mark.parametrize(
    ("ended", "why"),
    [("kube-controller-manager", ": ended, as the API server was slow to answer"), ("kube-apiserver", "")],
)
async def test_a_component_that_gave_up_is_started_again_with_the_reason(
    layout: Layout, monkeypatch: pytest.MonkeyPatch, ended: str, why: str
) -> None:
    async def answering(*_: object) -> str:
        return "uid"

    async def start(_: Layout) -> None:
        monkeypatch.setattr(processes, "running", lambda _: {name: [1] for name in NAMES})

    monkeypatch.setattr(api, "answering", answering)
    monkeypatch.setattr(starting, "start_components", start)
    monkeypatch.setattr(processes, "running", lambda _: {name: [1] for name in NAMES if name != ended})
    said = Said()
    assert await starting.all_running(layout, said) == "uid"
    assert said.statuses == [f"starting {ended} again{why}"]


# --- another stack's cluster in the place of a recorded one ----------------------------------------------------------

OTHER = owner("b", "urn:b", "/work/b", "b" * 32)


@pytest.mark.parametrize("running", [{}, {"etcd": [1]}, {name: [1] for name in NAMES}])
def test_a_cluster_that_another_stack_made_in_its_place_is_left_alone(
    layout: Layout, monkeypatch: pytest.MonkeyPatch, running: dict[str, list[int]]
) -> None:
    monkeypatch.setattr(processes, "running", lambda _: running)
    layout.write_note({"owner": OTHER, "configuration": "x"})
    said = Said()
    assert asyncio.run(KwokRuntime().read(recorded(layout), said)) is None
    asyncio.run(KwokRuntime().delete(recorded(layout), said))
    assert said.messages == [f"{layout.directory} now belongs to the stack b of /work/b; it is left alone"] * 2
    assert layout.note()["owner"] == OTHER


def test_a_cluster_that_answers_as_recorded_is_the_same_whatever_its_note_says(
    layout: Layout, monkeypatch: pytest.MonkeyPatch
) -> None:
    # An imported cluster, if its first update has changed the note's owner and was killed.
    answers(monkeypatch, "uid")
    layout.write_note({"owner": OTHER, "configuration": "x"})
    assert observed(layout).identity == "uid"


def answers(monkeypatch: pytest.MonkeyPatch, uid: str) -> None:
    """Let an API server answer with that identity."""

    async def identity(*_: object, **__: object) -> str:
        return uid

    monkeypatch.setattr(apiserver, "identity", identity)


@pytest.fixture
def repairable(layout: Layout, monkeypatch: pytest.MonkeyPatch) -> Layout:
    """A cluster whose repair finds nothing to start."""

    async def nothing(*_: object, **__: object) -> None: ...

    for module, name in ((hung, "end_hung"), (hung, "end_stuck"), (etcd_space, "relieve"), (starting, "start")):
        monkeypatch.setattr(module, name, nothing)

    def end(pids: list[int]) -> None:
        assert not pids

    monkeypatch.setattr(etcd_space, "change_quota", lambda *_: None)
    monkeypatch.setattr(upgrade, "exchange", lambda *_: False)
    monkeypatch.setattr(processes, "end", end)
    layout.write_note({"owner": OTHER, "configuration": KwokRuntime().configuration(wanted(layout))})
    return layout


def test_a_repair_writes_the_owner_down_once_the_cluster_has_answered(
    repairable: Layout, monkeypatch: pytest.MonkeyPatch
) -> None:
    answers(monkeypatch, "uid")
    assert asyncio.run(KwokRuntime().repair(wanted(repairable), "uid", Said())).identity == "uid"
    assert repairable.note()["owner"] == "me"


def test_a_repair_that_finds_another_cluster_says_so_and_does_not_take_it_over(
    repairable: Layout, monkeypatch: pytest.MonkeyPatch
) -> None:
    answers(monkeypatch, "uid-of-b")
    with pytest.raises(ProviderError, match=r"^another cluster \(identity uid-of-b\) answers in place of dev; "):
        asyncio.run(KwokRuntime().repair(wanted(repairable), "uid", Said()))
    assert repairable.note()["owner"] == OTHER


class _Refused(addition.Addition):
    """An addition that cannot do its part, as the API server has ended."""

    def require_space(self, layout: Layout, dead: Sequence[str]) -> None:
        raise ProviderError("the API server does not take its kinds")


def test_what_an_addition_fails_of_is_said_with_the_log_of_what_has_ended(
    layout: Layout, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(addition, "every", lambda: [_Refused()])
    monkeypatch.setattr(processes, "running", lambda _: {name: [1] for name in NAMES if name != "kube-apiserver"})
    (layout.directory / "logs").mkdir()
    (layout.directory / "logs" / "kube-apiserver.log").write_text("out of memory\n")
    with pytest.raises(ProviderError, match=r"(?s)does not take its kinds.*out of memory"):
        asyncio.run(starting.start(layout, wanted(layout), Said(), changed=False, dead=["kube-apiserver"]))

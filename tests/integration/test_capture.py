"""A capture of a real control plane: by the rights it asks for and no more, put back, captured again, cut off."""

import asyncio
import dataclasses
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import grpc
import pytest
import yaml

from kumulus.cli.main import main
from kumulus.extras.capture import live, writing
from kumulus.extras.capture.kinds import KINDS, ROLE, cluster_role
from kumulus.extras.capture.live import Expired, Reader
from kumulus.extras.capture.putting import put
from kumulus.extras.capture.spool import Spool
from kumulus.extras.capture.words import Words
from kumulus.kube import ApiError, Client, Connection, load_kubeconfig
from kumulus.kube.bulk import for_each
from kumulus.kube.codecs import JSON
from kumulus.kube.message_tables import classes_of
from kumulus.kube.namespaces import NAMESPACES
from kumulus.runtimes.kwok.access import ETCD
from kumulus.runtimes.kwok.layout import Layout
from tests.integration.conftest import NODES, Plane, Pools, remove_namespaces
from tests.support import captured, processes

_WITHIN = 120.0
pytestmark = pytest.mark.integration
ZONE = "eu-acme-1"
COUNT = 120
ROLES, BINDINGS = (f"/apis/rbac.authorization.k8s.io/v1/{each}" for each in ("clusterroles", "clusterrolebindings"))
REVIEWS = "/apis/authorization.k8s.io/v1/subjectaccessreviews"


def save(layout: Layout, file: Path) -> None:
    """Write it to a file."""
    pki = layout.directory / "pki"
    authority, key, certificate = ((pki / name).read_bytes() for name in ("ca.crt", "admin.key", "admin.crt"))
    credentials = grpc.ssl_channel_credentials(authority, key, certificate)
    parts = classes_of({"SnapshotResponse": {"blob": (3, "bytes")}})["SnapshotResponse"]
    with grpc.secure_channel(f"127.0.0.1:{layout.ports()[ETCD]}", credentials) as channel:
        call = channel.unary_stream("/etcdserverpb.Maintenance/Snapshot", lambda raw: raw, parts.FromString)
        with file.open("wb") as to:
            for part in call(b"", timeout=_WITHIN):
                to.write(part.blob)


def connection(plane: Plane, user: str = "") -> Connection:
    """Of the plane, as another user where one is named."""
    found = load_kubeconfig(plane.observed.kubeconfig)
    return dataclasses.replace(found, headers={**found.headers, **({"Impersonate-User": user} if user else {})})


async def read(plane: Plane, directory: Path, rate: float = 1000, user: str = "") -> tuple[Spool, Reader]:
    spool = Spool(directory, "source")
    async with Client(connection(plane, user), patience=5) as client:
        reader = Reader(client, spool, rate, lambda kind, count: None)
        await reader.read()
    return spool, reader


def files(directory: Path) -> dict[str, str]:
    return {file.name: file.read_text() for file in directory.iterdir() if file.is_file()}


async def waits_for(plane: Plane, count: int) -> None:
    """Until as many pods are bound as can be."""
    bound: list[Any] = []
    for _ in range(600):
        bound = [pod for pod in plane.api.list("/api/v1/pods") if pod["spec"].get("nodeName")]
        if len(bound) >= count:
            return
        await asyncio.sleep(0.1)
    raise AssertionError(f"{len(bound)} of {count} pods were bound")


@pytest.fixture
async def source(plane: Plane, pools: Pools) -> AsyncIterator[dict[str, Any]]:
    """Nodes and pods as a company has them; gone again afterwards."""
    labels = {"topology.kubernetes.io/zone": ZONE, "acme.example/floor": "3"}
    nodes: list[dict[str, Any]] = [
        {"name": f"acme-{index}", "labels": {"acme.example/rack": f"r{index}"}} for index in range(4)
    ]
    nodes[3]["unschedulable"] = True
    capacity = {"cpu": "64", "memory": "256Gi", "pods": "110"}
    inputs = pools.inputs(4, pools.name(), nodes=nodes, labels=labels, taints=[], capacity=capacity)
    await pools.create(inputs)
    try:
        await _fill(plane)
        yield inputs
    finally:
        await clear(plane)


async def _fill(plane: Plane) -> None:
    """Create the company's objects and pods, and wait until those that fit run."""
    made = [*captured.objects(), *captured.devices(4), *captured.with_volumes(COUNT, ZONE)]
    async with Client(connection(plane)) as client:
        for path, body in made:
            await client.write("POST", path, body)
        await asyncio.gather(*(account(client, namespace) for namespace in captured.NAMESPACES))
        listed = captured.pods(COUNT, ZONE)
        outcome = await for_each(listed, lambda pod: client.write("POST", _pods(pod), pod), workers=16)
        assert outcome.complete, outcome.failed[:1]
    waiting = sum(pod["metadata"]["name"].startswith(("huge-", "gated-")) for pod in captured.pods(COUNT, ZONE))
    await waits_for(plane, COUNT - waiting)


async def account(client: Client, namespace: str) -> None:
    for _ in range(300):
        try:
            await client.get(f"/api/v1/namespaces/{namespace}/serviceaccounts/default")
            return
        except ApiError:
            await asyncio.sleep(0.1)


async def clear(plane: Plane) -> None:
    """Take everything but nodes away again."""
    for pod in plane.api.list("/api/v1/pods"):
        plane.api.delete(f"{_pods(pod)}/{pod['metadata']['name']}?gracePeriodSeconds=0")
    made = [*captured.objects(), *captured.devices(4), *captured.with_volumes(COUNT, ZONE)]
    paths = [f"{path}/{body['metadata']['name']}" for path, body in made if path != NAMESPACES]
    for path in reversed(paths):
        plane.api.delete(path)
    remove_namespaces(plane, *captured.NAMESPACES)
    for collection in {path.rpartition("/")[0] for path in paths}:
        removed = {name for at, _, name in (path.rpartition("/") for path in paths) if at == collection}
        plane.api.until(collection, removed.isdisjoint)


def _pods(pod: dict[str, Any]) -> str:
    return f"/api/v1/namespaces/{pod['metadata']['namespace']}/pods"


async def test_what_is_captured_put_back_and_captured_again_is_the_same_file(
    plane: Plane, source: dict[str, Any], tmp_path: Path
) -> None:
    spool, reader = await read(plane, tmp_path / "one")
    assert reader.requests <= 2 * len(KINDS)
    writing.write(spool, tmp_path / "one", None)
    first = files(tmp_path / "one")
    kept = yaml.safe_load(first["stack.yaml"])["config"]["kumulus:cluster"]["nodeGroups"]
    assert [node["name"] for group in kept for node in group["placement"][0]["nodes"]] == [
        f"acme-{n}" for n in range(4)
    ]
    assert kept[0]["placement"][0]["nodes"][3] == {
        "name": "acme-3",
        "labels": {"acme.example/rack": "r3"},
        "unschedulable": True,
    }

    await clear(plane)
    async with Client(connection(plane)) as client:
        done = await put(client, tmp_path / "one" / "workload.yaml", lambda kind, count: None)
    assert (done.refused, done.unserved, done.made["Pod"]) == ({}, {}, COUNT)
    assert (done.made["ResourceSlice"], done.made["DeviceClass"]) == (4, 1)
    uids = {node["metadata"]["name"]: node["metadata"]["uid"] for node in plane.api.list(NODES)}
    for each in plane.api.list("/apis/resource.k8s.io/v1/resourceslices"):
        # It goes with its node.
        assert each["metadata"]["ownerReferences"][0]["uid"] == uids[each["spec"]["nodeName"]]
    await waits_for(plane, sum('"node"' in line for line in first["workload.yaml"].splitlines() if line[:2] == "- "))
    spool, _ = await read(plane, tmp_path / "two")
    writing.write(spool, tmp_path / "two", None)
    assert files(tmp_path / "two") == first


@pytest.mark.every_version
async def test_in_json_and_of_a_snapshot_of_its_etcd_the_capture_is_the_same_file(
    plane: Plane, source: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    saved = tmp_path / "snapshot.db"
    save(Layout(plane.directory), saved)
    assert saved.stat().st_size % 512 == 32, "it has the sum that etcd puts there"
    assert main(["capture", "--from", str(saved), "--to", str(tmp_path / "saved")]) == 0
    for name, form in (("protobuf", live.ACCEPT), ("json", JSON)):
        monkeypatch.setattr(live, "ACCEPT", form)
        spool, _ = await read(plane, tmp_path / name)
        writing.write(spool, tmp_path / name, None)
        spool.remove()
    found = files(tmp_path / "protobuf")
    assert files(tmp_path / "json") == found
    assert files(tmp_path / "saved") == found
    assert "ResourceSlice: 4" in found["left-out.md"]


def allowed(plane: Plane, group: str, resource: str) -> bool:
    """Whether the API server lets the reader list a resource: it hears of a changed role a moment later."""
    asked = {"user": "reader", "resourceAttributes": {"verb": "list", "group": group, "resource": resource}}
    return bool(plane.api.create(REVIEWS, {"spec": asked})["status"]["allowed"])


async def test_the_role_is_enough_and_a_missing_right_is_named_while_the_rest_goes_on(
    plane: Plane, source: dict[str, Any], tmp_path: Path
) -> None:
    role = yaml.safe_load(cluster_role())
    binding = {
        "metadata": {"name": ROLE},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": ROLE},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "reader"}],
    }
    plane.api.create(ROLES, role)
    plane.api.create(BINDINGS, binding)
    try:
        processes.await_that(lambda: allowed(plane, "", "pods"), 60, "the API server has seen the role")
        spool, _ = await read(plane, tmp_path / "allowed", user="reader")
        assert [kind.name for kind in KINDS if spool.note(kind.name)] == []
        assert sum(1 for _ in spool.items("Pod")) == COUNT
        fewer = [rule for rule in role["rules"] if "storageclasses" not in rule["resources"]]
        plane.api.merge(f"{ROLES}/{ROLE}", {"rules": fewer})
        processes.await_that(lambda: not allowed(plane, "storage.k8s.io", "storageclasses"), 60, "and the smaller one")
        spool, _ = await read(plane, tmp_path / "less", user="reader")
        done = writing.write(spool, tmp_path / "less", None)
        missing = "forbidden: the right to list storageclasses of storage.k8s.io is missing"
        assert done.missing["StorageClass"] == missing
        assert f"- StorageClass: {missing}" in (tmp_path / "less" / "left-out.md").read_text()
        assert done.counts["Pod"] == COUNT
    finally:
        plane.api.delete(f"{BINDINGS}/{ROLE}")
        plane.api.delete(f"{ROLES}/{ROLE}")


async def test_a_capture_that_is_cut_off_goes_on_and_comes_to_the_same(
    plane: Plane, source: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kumulus.extras.capture.live.PAGE", 25)
    whole, reader = await read(plane, tmp_path / "whole")
    writing.write(whole, tmp_path / "whole", None)

    (tmp_path / "cut").mkdir()
    spool = Spool(tmp_path / "cut", "source")

    def cut(kind: str, count: int) -> None:
        if (kind, count) == ("pods", 50):
            raise KeyboardInterrupt

    async with Client(connection(plane), patience=5) as client:
        with pytest.raises(KeyboardInterrupt):
            await Reader(client, spool, 1000, cut).read()
    again, rest = await read(plane, tmp_path / "cut")
    # Nothing but the pages of pods that are missing was asked for again.
    assert 0 < rest.requests < 6 < reader.requests
    writing.write(again, tmp_path / "cut", None)
    assert files(tmp_path / "cut") == files(tmp_path / "whole")


async def test_credentials_that_are_not_taken_end_it_with_what_was_read_kept(plane: Plane, tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    bare = dataclasses.replace(connection(plane), headers={"Authorization": "Bearer expired"}, tls=None)
    certified = dataclasses.replace(bare, tls=_without_certificate(plane))
    async with Client(certified, patience=2) as client:
        with pytest.raises(Expired):
            await Reader(client, Spool(tmp_path / "out", "source"), 1000, lambda kind, count: None).read()


def _without_certificate(plane: Plane) -> Any:
    import ssl

    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    return context


async def test_no_name_of_the_cluster_is_in_an_anonymised_capture(
    plane: Plane, source: dict[str, Any], tmp_path: Path
) -> None:
    spool, _ = await read(plane, tmp_path / "out")
    words = Words()
    writing.write(spool, tmp_path / "out", words)
    spool.remove()
    text = "".join(files(tmp_path / "out").values())
    for name in ("acme", "hunter", "secret/", "shop", "search", "train-", "infer", "data-", "pv-", source["name"]):
        assert name not in text, name
    assert words.back(text).count("acme-0") > 1


async def test_it_keeps_to_the_rate(plane: Plane, pools: Pools, tmp_path: Path) -> None:
    started = asyncio.get_running_loop().time()
    _, reader = await read(plane, tmp_path / "out", rate=20)
    took = asyncio.get_running_loop().time() - started
    # Never more than the rate allows, however fast the machine is.
    assert reader.requests - 1 <= took * 20 + 0.5
    assert reader.requests >= len(KINDS), "so many that the rate was the limit"

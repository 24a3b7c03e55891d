"""Nodes that are written where the API server keeps them are, to everybody, nodes that were posted."""

import asyncio
import json
import os
import random
import re
import signal
import uuid
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from datetime import datetime
from functools import partial
from typing import Any

import grpc
import psutil
import pytest

from kumulus import toolchain
from kumulus.kube import Client, load_kubeconfig
from kumulus.kube.codecs import PROTOBUF
from kumulus.kube.message_tables import classes_of
from kumulus.kube.stored import StoredLeases, lease_key, node_key
from kumulus.model.pool_form import pool_from_properties
from kumulus.model.pools import POOL_LABEL, Pool
from kumulus.nodes.errors import PartialFailure
from kumulus.nodes.faults.leases import HOLDER, LEASES
from kumulus.nodes.faults.new_pods import BEHIND_S
from kumulus.nodes.pools.single import Bodies, create_node
from kumulus.nodes.pools.through_storage import FEWEST, Post, Writer, prepared_writer
from kumulus.provider.connections import Connections
from kumulus.provider.resources.node_pool import NodePool
from kumulus.runtimes.kwok.layout import Layout
from kumulus.runtimes.kwok.storage import OwnEtcd, Storages
from tests.integration.conftest import NODES, Faults, Plane, Pools, operation, ready
from tests.support import processes
from tests.support.pods import PODS, is_running
from tests.support.said import Said

pytestmark = pytest.mark.integration
HOOKS = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"
POLICIES = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies"
# All 500 take two minutes; CI draws the first of them.
DRAWS = int(os.environ.get("KUMULUS_DRAWS", "60"))
# The soak asks for more.
KILLS = int(os.environ.get("KUMULUS_KILLS", "3"))
VICTIMS = (("etcd",), ("kube-apiserver",), ("etcd", "kube-apiserver"))
MANY = 60
# Nodes that are posted for each plugin, to learn what their leases are like.
LEARNED = 1
POD = {"containers": [{"name": "main", "image": "none"}], "tolerations": [{"operator": "Exists"}]}
_RANGE = classes_of(
    {
        "RangeRequest": {"key": (1, "bytes")},
        "KeyValue": {"key": (1, "bytes"), "mod_revision": (3, "int64"), "value": (5, "bytes")},
        "RangeResponse": {"kvs": (2, "*KeyValue")},
        "PutRequest": {"key": (1, "bytes"), "value": (2, "bytes")},
        "RequestOp": {"request_put": (2, "PutRequest")},
        "TxnRequest": {"success": (2, "*RequestOp")},
    }
)


@contextmanager
def etcd(plane: Plane) -> Iterator[grpc.Channel]:
    pki, port = plane.directory / "pki", Layout(plane.directory).ports()["etcd"]
    authority, key, certificate = ((pki / name).read_bytes() for name in ("ca.crt", "admin.key", "admin.crt"))
    with grpc.secure_channel(f"127.0.0.1:{port}", grpc.ssl_channel_credentials(authority, key, certificate)) as channel:
        yield channel


def kept(plane: Plane, key: bytes) -> bytes:
    """The bytes that etcd has of an object."""
    with etcd(plane) as channel:
        answer: bytes = channel.unary_unary("/etcdserverpb.KV/Range")(
            _RANGE["RangeRequest"](key=key).SerializeToString(), timeout=20
        )
    (found,) = _RANGE["RangeResponse"].FromString(answer).kvs
    return bytes(found.value)


def drawn(numbers: random.Random, pools: Pools) -> Pool:
    """A pool with any of what a pool can have."""

    def some(count: int) -> range:
        return range(numbers.randrange(count))

    def word() -> str:
        return "".join(numbers.choices("abcxyz019", k=numbers.randint(1, 20)))

    def text() -> str:
        return "".join(numbers.choices('aZ9 "\\\n\tüß→🙂é', k=numbers.randint(0, 80)))

    def quantity(key: str) -> str:
        if key == "hugepages-2Mi":
            return "2Gi"
        if key == "pods" or "/" in key:
            return str(numbers.choice([0, 1, 110, 12345678]))
        return numbers.choice(["0", "1", "1500m", "96", "16Gi", "1360Gi", "3Ti", "12345678901", "100k", "2E", "1.5Gi"])

    resources = ["cpu", "memory", "ephemeral-storage", "pods", "hugepages-2Mi", "nvidia.com/gpu", "example.com/x"]
    had = {key: quantity(key) for key in numbers.sample(resources, numbers.randint(1, len(resources)))}
    # No key twice, as no node has one twice.
    taints = {(f"example.com/{word()}", numbers.choice(["NoSchedule", "PreferNoSchedule"])): word() for _ in some(4)}
    name = f"d{uuid.UUID(int=numbers.getrandbits(128)).hex[:8]}-{word()}"
    plain: dict[str, Any] = {
        "name": name,
        "replicas": FEWEST + numbers.randrange(200),
        "labels": {
            "kumulus.io/cluster": "test",
            "kumulus.io/pool": name,
            **{f"example.com/{word()}": word() for _ in some(6)},
            **({"kubernetes.io/os": "linux", "kubernetes.io/arch": "arm64"} if numbers.random() < 0.7 else {}),
        },
        "annotations": {f"example.com/{word()}": text() for _ in some(5)},
        "taints": [{"key": key, "value": value, "effect": effect} for (key, effect), value in taints.items()],
        "capacity": had,
        "allocatable": {key: had[key] for key in numbers.sample(sorted(had), numbers.randint(0, len(had)))},
        "nodeInfo": {"architecture": "arm64", "operatingSystem": "windows", "kubeletVersion": word()},
    }
    if numbers.random() < 0.3:
        del plain["nodeInfo"]
    if numbers.random() < 0.3:
        plain["topology"] = {"rack": {"label": "example.com/rack", "nodes": 4}, "block": {"label": "b", "nodes": 16}}
    if numbers.random() < 0.3:
        plain["shards"] = numbers.randint(2, 5)
    if numbers.random() < 0.2:
        keys = [f"own.example.com/{word()}" for _ in some(3)]
        plain["nodes"] = [
            {"name": f"{word()}.{word()}-{ordinal}", "labels": {key: word() for key in keys}}
            for ordinal in range(plain["replicas"])
        ]
    return pool_from_properties(plain)


def without_time(node: dict[str, Any]) -> dict[str, Any]:
    """A node but for its UID, its version and the times."""
    metadata = {key: value for key, value in node["metadata"].items() if key not in ("uid", "resourceVersion")}
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", metadata.pop("creationTimestamp"))
    for entry in metadata["managedFields"]:
        assert entry.pop("time")
        assert entry["manager"] == "kumulus"
    return {**node, "metadata": metadata}


@asynccontextmanager
async def written(plane: Plane, pool: Pool) -> AsyncIterator[tuple[Client, Writer]]:
    async with Client(load_kubeconfig(plane.observed.kubeconfig)) as client:
        found = await Storages().of(plane.observed.kubeconfig, client)
        assert found is not None
        made = await prepared_writer(client, found, pool, range(pool.replicas), Bodies(pool))
        assert made is not None, pool
        yield client, made
        await found.connection.close()


@pytest.mark.every_version
async def test_what_is_written_of_drawn_pools_is_what_is_stored_of_a_post(plane: Plane, pools: Pools) -> None:
    numbers = random.Random(21)
    for _ in range(DRAWS):
        pool = drawn(numbers, pools)
        ordinal = numbers.randrange(pool.replicas)
        name = pool.node_name(ordinal)
        async with written(plane, pool) as (client, writes):
            uid = await writes.create(ordinal)
            through = await client.get(f"{NODES}/{name}")
            bytes_through = kept(plane, node_key(name))
            await client.delete(f"{NODES}/{name}")
            assert through["metadata"]["uid"] == uid
            assert uuid.UUID(uid).version == 4
            await create_node(client, pool, ordinal, writes.bodies.of(ordinal))
            posted = await client.get(f"{NODES}/{name}")
            bytes_posted = kept(plane, node_key(name))
            await client.delete(f"{NODES}/{name}")
        assert without_time(through) == without_time(posted)
        # Not only to who reads them through the server: they are the very bytes that it would have written.
        assert len(bytes_through) == len(bytes_posted)
        if through["metadata"]["creationTimestamp"] == posted["metadata"]["creationTimestamp"]:
            mine, other = (
                raw.replace(found["metadata"]["uid"].encode(), b"")
                for raw, found in ((bytes_through, through), (bytes_posted, posted))
            )
            assert mine == other


@pytest.mark.every_version
async def test_a_lease_that_is_written_is_what_its_controller_would_have_made(plane: Plane, pools: Pools) -> None:
    inputs = pools.inputs(FEWEST - 1)
    await pools.create(inputs)
    uids = {name: node["metadata"]["uid"] for name, node in pools.nodes(inputs).items()}
    made = plane.api.until(LEASES, lambda found: set(uids) <= set(found))
    compared = 0
    async with Client(load_kubeconfig(plane.observed.kubeconfig)) as client:
        model, *others = sorted(uids)
        answer = await client.request("GET", f"{LEASES}/{model}", accept=PROTOBUF, decode=bytes)
        like = StoredLeases(answer)
        assert like.is_new
        assert like.holder == made[model]["spec"]["holderIdentity"]
        for name in others:
            metadata, spec = made[name]["metadata"], made[name]["spec"]
            assert made[name]["spec"].keys() == made[model]["spec"].keys()
            renewed = datetime.fromisoformat(spec["renewTime"])
            if metadata["creationTimestamp"] != renewed.strftime("%Y-%m-%dT%H:%M:%SZ"):
                continue
            # A float holds more than microseconds of a time of this century: half of one is for its rounding.
            now = renewed.timestamp() + 5e-7
            assert like.of(name, uids[name], metadata["uid"], now) == kept(plane, lease_key(name))
            compared += 1
    assert compared > len(others) / 2


async def test_a_written_node_has_its_lease_at_once(plane: Plane, pools: Pools) -> None:
    inputs = pools.inputs(MANY)
    await pools.create(inputs)
    nodes, leases = pools.nodes(inputs), {each["metadata"]["name"]: each for each in plane.api.list(LEASES)}
    assert set(nodes) <= set(leases)
    holders = {leases[name]["spec"]["holderIdentity"] for name in nodes}
    assert len(holders) == 1
    assert not holders & {"", HOLDER}
    for name, node in nodes.items():
        (owner,) = leases[name]["metadata"]["ownerReferences"]
        assert (owner["name"], owner["uid"]) == (name, node["metadata"]["uid"])


async def test_pods_that_are_bound_the_moment_a_node_is_there_run(
    plane: Plane, pools: Pools, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While kwok-controller is behind, as it is with thousands of nodes: it hears of a node and of its pod at once.

    It does so after we have looked at the pods several times.
    """
    inputs, bound, binding = pools.inputs(300), f"bound-{uuid.uuid4().hex[:8]}", list[asyncio.Task[Any]]()
    create, leases, controller = OwnEtcd.create, OwnEtcd.leases, plane.processes()["kwok-controller"][0]
    done, every = list[str](), asyncio.Event()
    async with Client(load_kubeconfig(plane.observed.kubeconfig)) as client:

        async def bind(name: str) -> None:
            metadata = {"name": f"{bound}-{name}", "labels": {"test": bound}}
            await client.create(PODS, {"metadata": metadata, "spec": {**POD, "nodeName": name}})
            done.append(name)
            if len(done) == 300 - LEARNED:
                every.set()

        async def creates(self: OwnEtcd, *objects: tuple[bytes, bytes]) -> bool:
            created = await create(self, *objects)
            if created:
                binding.append(asyncio.ensure_future(bind(objects[0][0].decode().removeprefix(node_key("").decode()))))
            return created

        async def learns(self: OwnEtcd, client: Client, post: Post) -> StoredLeases | None:
            learned = await leases(self, client, post)
            os.kill(controller, signal.SIGSTOP)
            return learned

        monkeypatch.setattr(OwnEtcd, "create", creates)
        monkeypatch.setattr(OwnEtcd, "leases", learns)

        async def goes_on() -> None:
            await every.wait()
            await asyncio.sleep(5 * BEHIND_S)
            assert psutil.Process(controller).status() == psutil.STATUS_STOPPED
            os.kill(controller, signal.SIGCONT)

        going_on = asyncio.ensure_future(goes_on())
        # Otherwise so many nodes are not waited for.
        waits = {"metadata": {"name": bound}, "spec": {**POD, "nodeSelector": {"nobody": "has"}}}
        await client.create(PODS, waits)
        try:
            await asyncio.gather(pools.create(inputs), going_on)
        finally:
            os.kill(controller, signal.SIGCONT)
            await client.delete(f"{PODS}/{bound}")
    assert len(binding) == 300 - LEARNED
    try:
        plane.api.until(
            PODS,
            lambda pods: len(pods) == len(binding) and all(map(is_running, pods.values())),
            labelSelector=f"test={bound}",
        )
    finally:
        plane.api.delete(f"{PODS}?labelSelector=test={bound}")


async def posts(plane: Plane) -> int:
    """How many nodes the API server was asked to make and keep, since its start."""
    async with Client(load_kubeconfig(plane.observed.kubeconfig)) as client:
        lines = str(await client.get("/metrics")).splitlines()
    found = 0
    for line in lines:
        if line.startswith("apiserver_request_total{") and 'resource="nodes"' in line and 'verb="POST"' in line:
            found += 0 if 'dry_run="All"' in line else int(float(line.rpartition(" ")[2]))
    return found


async def test_a_pool_is_made_without_a_post_and_every_node_has_a_version_of_its_own(
    plane: Plane, pools: Pools
) -> None:
    before, inputs, said = await posts(plane), pools.inputs(MANY), Said()
    assert await pools.create(inputs, said) == inputs
    assert await posts(plane) == before + LEARNED
    assert not said.messages
    made = pools.nodes(inputs)
    assert len(made) == MANY
    assert all(map(ready, made.values()))
    assert len({node["metadata"]["resourceVersion"] for node in made.values()}) == MANY
    assert len({node["metadata"]["uid"] for node in made.values()}) == MANY
    assert not await pools.drift(inputs)
    more = pools.inputs(2 * MANY, inputs["name"])
    await pools.update(more, inputs)
    assert await posts(plane) == before + LEARNED
    assert pools.uids(more).items() >= pools.uids(inputs).items()


async def test_a_written_node_owns_its_slice(plane: Plane, pools: Pools) -> None:
    gpus = {"driver": "gpu.nvidia.com", "count": 2, "attributes": {"type": {"string": "gpu"}}}
    before, inputs = await posts(plane), pools.inputs(MANY, resourceSlices=gpus)
    assert await pools.create(inputs) == inputs
    assert await posts(plane) == before + LEARNED
    uids = pools.uids(inputs)
    path = "/apis/resource.k8s.io/v1/resourceslices"
    slices = plane.api.list(path, labelSelector=f"{POOL_LABEL}={inputs['name']}")
    owners = {each["spec"]["nodeName"]: each["metadata"]["ownerReferences"][0]["uid"] for each in slices}
    assert owners == uids
    assert not await pools.drift(inputs)


async def test_of_a_pool_with_faults_those_nodes_are_posted(plane: Plane, pools: Pools, faults: Faults) -> None:
    inputs = pools.inputs(FEWEST)
    await pools.create(inputs)
    name = str(inputs["name"])
    await faults.begin(faults.inputs("tired", {name: f"0-3,{MANY - 1}"}, "not-ready"))
    before, more = await posts(plane), pools.inputs(MANY, name)
    for ordinal in (0, 1):
        plane.api.delete(f"{NODES}/{name}-{ordinal}")
    await pools.update(more, inputs)
    assert await posts(plane) == before + 3
    made = pools.nodes(more)
    assert len(made) == MANY
    faulted = {f"{name}-{ordinal}" for ordinal in (0, 1, 2, 3, MANY - 1)}
    assert {each for each, node in made.items() if not ready(node)} == faulted
    await faults.end("tired")
    assert all(map(ready, pools.nodes(more).values()))


async def test_of_two_nodes_at_one_version_a_watch_that_goes_on_tells_one(plane: Plane, pools: Pools) -> None:
    """Why there is one transaction for each node; were this to fail, there could be fewer."""
    plain = pools.inputs(FEWEST)
    pool = pool_from_properties({key: plain[key] for key in plain if key not in _PLACE})
    first, second = pool.node_name(0), pool.node_name(1)
    async with written(plane, pool) as (client, writes):
        values = [writes.stored.of(writes.bodies.manifest(ordinal), str(uuid.uuid4()), 1) for ordinal in (0, 1)]
        puts = [
            _RANGE["RequestOp"](request_put=_RANGE["PutRequest"](key=node_key(name), value=value))
            for name, value in zip((first, second), values, strict=True)
        ]
        with etcd(plane) as channel:
            request = _RANGE["TxnRequest"](success=puts).SerializeToString()
            channel.unary_unary("/etcdserverpb.KV/Txn")(request, timeout=20)
        versions = {(await client.get(f"{NODES}/{name}"))["metadata"]["resourceVersion"] for name in (first, second)}
        (version,) = versions
        # Who has seen one of them and was cut off goes on from its version; what comes next is all that is missing.
        await create_node(client, pool, 2, writes.bodies.of(2))
        selector = f"{POOL_LABEL}={pool.name}"
        event = next(plane.api.events(NODES, version, 20, labelSelector=selector))
        assert event["object"]["metadata"]["name"] == pool.node_name(2)
        await client.delete(f"{NODES}/{pool.node_name(2)}")
        for name in (first, second):
            await client.delete(f"{NODES}/{name}")


_PLACE = ("kubeconfig", "clusterIdentity", "clusterName")


async def test_a_node_of_that_name_is_not_touched_and_the_error_is_that_of_a_post(plane: Plane, pools: Pools) -> None:
    real = {"status": {"nodeInfo": {"containerRuntimeVersion": "containerd://2.0.0"}}}
    said = {}
    for storage_of in (Storages().of, None):
        connections = Connections()
        inputs = pools.inputs(MANY, "collides-z")
        pools.made["collides-z"] = inputs
        pool = pool_from_properties({key: inputs[key] for key in inputs if key not in _PLACE})
        plane.api.create(NODES, {"metadata": {"name": pool.node_name(7)}, **real})
        uid = plane.api.get(f"{NODES}/{pool.node_name(7)}")["metadata"]["uid"]
        resource = NodePool(connections, storage_of=storage_of)
        with pytest.raises(PartialFailure) as failed:
            await resource.create(operation(), inputs)
        said[storage_of] = str(failed.value)
        assert plane.api.get(f"{NODES}/{pool.node_name(7)}")["metadata"]["uid"] == uid
        plane.api.delete(f"{NODES}/{pool.node_name(7)}")
        await pools.delete(inputs)
        await connections.close()
    assert len(set(said.values())) == 1


async def test_who_comes_first_with_a_name_keeps_it(plane: Plane, pools: Pools) -> None:
    plain = pools.inputs(FEWEST)
    pool = pool_from_properties({key: plain[key] for key in plain if key not in _PLACE})
    async with written(plane, pool) as (client, writes):
        key, others_lease = node_key(pool.node_name(3)), lease_key(pool.node_name(4))
        await create_node(client, pool, 3, writes.bodies.of(3))
        there = kept(plane, key)
        assert await writes.create(3) == ""
        assert kept(plane, key) == there
        # Nor is a node written whose lease somebody has, whoever that is.
        leases = await writes.storage.leases(client, partial(_named, pool.node_name(3)))
        assert leases is not None
        writes.leases = leases
        plane.api.create(LEASES, {"metadata": {"name": pool.node_name(4)}, "spec": {"holderIdentity": "somebody"}})
        there = kept(plane, others_lease)
        assert await writes.create(4) == ""
        assert kept(plane, others_lease) == there
        assert pool.node_name(4) not in {node["metadata"]["name"] for node in plane.api.list(NODES)}
        await client.delete(f"{LEASES}/{pool.node_name(4)}")
        await client.delete(f"{NODES}/{pool.node_name(3)}")


async def _named(name: str) -> str:
    """As if a node had just been posted."""
    return name


def hook(name: str, **rule: Any) -> dict[str, Any]:
    rules = [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["nodes"], **rule}]
    return {
        "metadata": {"name": name},
        "webhooks": [
            {
                "name": "nodes.example.com",
                "rules": rules,
                "clientConfig": {"url": "https://127.0.0.1:9/"},
                "failurePolicy": "Ignore",
                "timeoutSeconds": 1,
                "sideEffects": "None",
                "admissionReviewVersions": ["v1"],
            }
        ],
    }


async def made_by(plane: Plane, pools: Pools, nodes: int = FEWEST) -> tuple[int, list[str]]:
    """How many nodes of a new pool were posted, and what was said; two pools, since it is said once."""
    before, said = await posts(plane), Said()
    for _ in range(2):
        await pools.create(pools.inputs(nodes), said)
    return await posts(plane) - before, said.messages


@pytest.mark.parametrize("kind", ["webhook", "leases", "policy"])
async def test_where_others_have_a_say_in_nodes_they_are_posted(plane: Plane, pools: Pools, kind: str) -> None:
    if kind == "webhook":
        path, body = HOOKS, hook("nobody")
        said = "webhook nodes.example.com of nobody is about nodes"
    elif kind == "leases":
        rule = {"apiGroups": ["coordination.k8s.io"], "resources": ["leases"]}
        path, body = HOOKS, hook("nobody", **rule)
        said = "webhook nodes.example.com of nobody is about leases"
    else:
        rules = hook("nobody", apiVersions=["*"], resources=["*"])["webhooks"][0]["rules"]
        spec = {"matchConstraints": {"resourceRules": rules}, "validations": [{"expression": "true"}]}
        path, body = POLICIES, {"metadata": {"name": "nobody"}, "spec": spec}
        said = "policy nobody is about nodes"
    plane.api.create(path, body)
    try:
        found, messages = await made_by(plane, pools)
    finally:
        plane.api.delete(f"{path}/nobody")
    assert found == 2 * FEWEST
    assert messages == [f"nodes are posted, not written to the API server's storage: {said}"]
    assert (await made_by(plane, pools))[0] == LEARNED


async def test_a_webhook_about_something_else_changes_nothing(plane: Plane, pools: Pools) -> None:
    plane.api.create(HOOKS, hook("pods", resources=["pods", "nodes/status"]))
    try:
        assert await made_by(plane, pools) == (LEARNED, [])
    finally:
        plane.api.delete(f"{HOOKS}/pods")


async def test_a_stack_can_ask_for_posts(plane: Plane, pools: Pools) -> None:
    declared = Layout(plane.directory).declared_file
    declared.write_text(json.dumps({"options": {"createThrough": "api"}}))
    try:
        found, messages = await made_by(plane, pools)
    finally:
        declared.unlink()
    assert found == 2 * FEWEST
    assert messages == ["nodes are posted, not written to the API server's storage: kwok.createThrough is api"]
    assert await made_by(plane, pools) == (LEARNED, [])


async def test_a_version_that_is_not_known_gets_posts(
    plane: Plane, pools: Pools, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(toolchain, "kubernetes_versions", lambda: ["1.2.3"])
    found, messages = await made_by(plane, pools)
    assert found == 2 * FEWEST
    assert f"Kubernetes {plane.wanted.kubernetes_version} is not known to store them as written here" in messages[0]


async def test_few_nodes_are_posted(plane: Plane, pools: Pools) -> None:
    assert await made_by(plane, pools, FEWEST - 1) == (2 * (FEWEST - 1), [])


@pytest.mark.parametrize("number", range(KILLS))
async def test_after_a_kill_the_next_run_makes_it_exact(
    plane: Plane, pools: Pools, number: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of the plugin: tests/soak/test_kills.py."""
    numbers = random.Random(f"kill {number}")
    victims = VICTIMS[number % len(VICTIMS)]
    # One of them is posted.
    moment, counted, create = numbers.randint(1, 999), 0, OwnEtcd.create
    reached, inputs = asyncio.Event(), pools.inputs(1000)

    async def counts(self: OwnEtcd, *objects: tuple[bytes, bytes]) -> bool:
        nonlocal counted
        counted += 1
        if counted == moment:
            reached.set()
        return await create(self, *objects)

    monkeypatch.setattr(OwnEtcd, "create", counts)
    stop = asyncio.Event()
    making = asyncio.ensure_future(pools.create(inputs, stop=stop))
    await reached.wait()
    for victim in victims:
        processes.kill(plane.processes()[victim])
    # Nobody mends it while it waits: as after a Ctrl-C.
    stop.set()
    with suppress(PartialFailure):
        await making
    assert {"etcd", "kube-apiserver"} - plane.processes().keys() == set(victims)
    await plane.repair()
    connections = Connections()
    again = NodePool(connections, storage_of=Storages().of)
    await again.create(operation(), inputs)
    made = pools.nodes(inputs)
    assert len(made) == 1000
    assert all(map(ready, made.values()))
    found = await again.read(operation(), "id", inputs, inputs)
    assert found is not None
    assert "drift" not in found.outputs
    await connections.close()

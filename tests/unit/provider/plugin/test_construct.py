"""Components constructed for programs in other languages: over the plugin's protocol, against a monitor of the test."""

import asyncio
import threading
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import grpc
import pytest
from google.protobuf import json_format, struct_pb2
from pulumi.runtime import rpc
from pulumi.runtime.proto import alias_pb2, errors_pb2, provider_pb2, provider_pb2_grpc, status_pb2

from kumulus.nodes.errors import ProviderError
from kumulus.provider.engine import PulumiEngine
from kumulus.provider.plugin.serving import Constructor
from kumulus.provider.rpc import Servicer
from tests.unit.provider.plugin.monitor import Monitor, listening
from tests.unit.provider.plugin.test_callers import plugin as plugin_process
from tests.unit.provider.test_rpc import refusal as fails
from tests.unit.provider.test_rpc import secret, stub_of

ROOT = Path(__file__).resolve().parents[4]
STACK = "urn:pulumi:dev::p::pulumi:pulumi:Stack::p-dev"
CAPACITY = {"cpu": "4", "memory": "8Gi", "pods": "110"}
SIGNATURE = rpc._special_sig_key
PROVIDER = "urn:pulumi:dev::p::pulumi:providers:kumulus::mine::an-id"
CLUSTER = {"identity": "uid-1", "kubeconfig": "/home/kubeconfig.yaml", "server": "https://127.0.0.1:1", "endpoints": {}}


@pytest.fixture
def monitor() -> Iterator[Monitor]:
    with listening(outputs={"kumulus:index:Cluster": CLUSTER}) as served:
        yield served


@pytest.fixture
async def plugin() -> AsyncIterator[Any]:
    async with stub_of(Servicer(PulumiEngine(None), {}, "/program", construct=Constructor(None))) as stub:
        yield stub


def asked(monitor: Monitor, kind: str, name: str, inputs: dict[str, Any] | None = None, **options: Any) -> Any:
    return provider_pb2.ConstructRequest(
        project="p",
        stack="dev",
        organization="o",
        monitorEndpoint=monitor.address,
        type=f"kumulus:index:{kind}",
        name=name,
        parent=STACK,
        inputs=json_format.ParseDict(inputs or {}, struct_pb2.Struct()),
        **options,
    )


def output(value: Any = None, *, known: bool = True, is_secret: bool = False) -> dict[str, Any]:
    return {SIGNATURE: rpc._special_output_value_sig, **({"value": value} if known else {}), "secret": is_secret}


def reference(urn: str) -> dict[str, Any]:
    # As YAML writes it: components have no id.
    return {SIGNATURE: rpc._special_resource_sig, "urn": urn, "id": "", "packageVersion": ""}


async def group(plugin: Any, monitor: Monitor, cluster: str, name: str, **inputs: Any) -> Any:
    given = {"cluster": reference(cluster), "zones": {"use1": 2}, "capacity": CAPACITY, **inputs}
    return await plugin.Construct(asked(monitor, "KwokNodeGroup", name, given))


async def invalid(call: Any) -> dict[str, str]:
    """The problems of an InputPropertiesError, by their paths."""
    with pytest.raises(grpc.aio.AioRpcError) as raised:
        await call
    assert raised.value.code() is grpc.StatusCode.INVALID_ARGUMENT
    details = dict(raised.value.trailing_metadata() or ())["grpc-status-details-bin"]
    found = errors_pb2.InputPropertiesError()
    assert status_pb2.Status.FromString(details).details[0].Unpack(found)
    return {each.property_path: each.reason for each in found.errors}


async def test_a_cluster_and_a_group_in_it_are_what_a_python_program_declares(plugin: Any, monitor: Monitor) -> None:
    made = await plugin.Construct(asked(monitor, "KwokCluster", "fleet"))
    assert made.urn == "urn:pulumi:dev::p::kumulus:index:KwokCluster::fleet"
    assert json_format.MessageToDict(made.state)["kubeconfig"] == CLUSTER["kubeconfig"]
    grown = await group(plugin, monitor, made.urn, "a100")
    assert json_format.MessageToDict(grown.state) == {"nodes": 2.0}
    pool = monitor.of("NodePool")["a100-use1"]
    assert pool.parent == grown.urn
    assert pool.object["clusterIdentity"] == "uid-1"
    assert pool.object["clusterName"] == "fleet"
    assert pool.object["capacity"]["cpu"] == "4"
    assert pool.deletedWith == f"{made.urn.replace('::fleet', '')}$kumulus:index:Cluster::fleet-control-plane"


async def test_what_a_preview_cannot_know_stays_unknown(plugin: Any) -> None:
    unknown = dict.fromkeys(("identity", "server"), rpc.UNKNOWN)
    with listening(outputs={"kumulus:index:Cluster": {**CLUSTER, **unknown}}) as monitor:
        made = await plugin.Construct(asked(monitor, "KwokCluster", "fleet", dryRun=True))
        assert json_format.MessageToDict(made.state)["identity"] == rpc.UNKNOWN
        await group(plugin, monitor, made.urn, "a100", labels=output({"team": rpc.UNKNOWN}))
        pool = monitor.of("NodePool")["a100-use1"].object
        assert pool["clusterIdentity"] == rpc.UNKNOWN
        assert pool["kubeconfig"] == CLUSTER["kubeconfig"]


async def test_a_secret_stays_one(plugin: Any, monitor: Monitor) -> None:
    made = await plugin.Construct(asked(monitor, "KwokCluster", "fleet"))
    await group(plugin, monitor, made.urn, "one", labels={"team": secret("hidden")})
    await group(plugin, monitor, made.urn, "two", labels={"team": output("hidden", is_secret=True)})
    for pool in monitor.of("NodePool").values():
        labels = json_format.MessageToDict(pool.object)["labels"]
        assert SIGNATURE in labels or SIGNATURE in labels["team"]


async def test_many_are_constructed_at_once_and_none_sees_anothers_monitor(plugin: Any, monitor: Monitor) -> None:
    made = await plugin.Construct(asked(monitor, "KwokCluster", "fleet"))
    with listening(outputs={"kumulus:index:Cluster": CLUSTER}) as other:
        strange = await plugin.Construct(asked(other, "KwokCluster", "other"))
        await asyncio.gather(
            *(group(plugin, monitor, made.urn, f"here-{n}") for n in range(8)),
            *(group(plugin, other, strange.urn, f"there-{n}") for n in range(8)),
        )
        assert set(monitor.of("NodePool")) == {f"here-{n}-use1" for n in range(8)}
        assert set(other.of("NodePool")) == {f"there-{n}-use1" for n in range(8)}
        assert {each.object["clusterName"] for each in other.of("NodePool").values()} == {"other"}


async def test_options_are_passed_through(plugin: Any, monitor: Monitor) -> None:
    first = await plugin.Construct(asked(monitor, "KwokCluster", "first"))
    await plugin.Construct(
        asked(
            monitor,
            "KwokCluster",
            "fleet",
            protect=True,
            dependencies=[first.urn],
            aliases=[alias_pb2.Alias(spec=alias_pb2.Alias.Spec(name="old"))],
            providers={"kumulus": PROVIDER},
        )
    )
    request = monitor.of("KwokCluster")["fleet"]
    assert request.parent == STACK
    assert request.protect is True
    assert list(request.dependencies) == [first.urn]
    assert [alias.spec.name for alias in request.aliases] == ["old"]
    assert dict(request.providers) == {"kumulus": PROVIDER}


async def test_wrong_arguments_are_told_with_their_paths(plugin: Any, monitor: Monitor) -> None:
    made = await plugin.Construct(asked(monitor, "KwokCluster", "fleet"))
    wrong = {"instanceType": "nonesuch", "nonsense": 1}
    told = await invalid(group(plugin, monitor, made.urn, "a100", **wrong))
    assert set(told) == {"nonsense", "instanceType"}
    assert told["nonsense"].startswith("is not a known argument; ")
    told = await invalid(group(plugin, monitor, made.urn, "a100", zones={"use1": -1}, instanceType="nonesuch"))
    assert set(told) == {"zones.use1", "instanceType"}
    assert told["zones.use1"].startswith("is -1, less than 0")
    # Of a program in another language, arguments have the names of that.
    told = await invalid(group(plugin, monitor, made.urn, "a100", instanceTyp="x", resourceSlices={"count": 1}))
    assert told["instanceTyp"] == "is not a known argument; write instanceType"
    assert "write gpuProduct: " in "".join(told.values())


@pytest.mark.parametrize(
    ("inputs", "said"),
    [
        ({"cluster": "fleet"}, "cluster: is 'fleet'; give it a resource that is a KwokCluster or"),
        (
            {"cluster": reference("urn:pulumi:dev::p::kumulus:index:KwokCluster::none")},
            "was not found: unknown resource",
        ),
    ],
)
async def test_a_cluster_that_is_none_is_told(plugin: Any, monitor: Monitor, inputs: dict[str, Any], said: str) -> None:
    request = asked(monitor, "KwokNodeGroup", "a100", {"zones": {"use1": 1}, "capacity": CAPACITY, **inputs})
    assert said in await fails(plugin.Construct(request))


async def test_what_is_missing_is_told_with_its_name(plugin: Any, monitor: Monitor) -> None:
    told = await invalid(plugin.Construct(asked(monitor, "KwokNodeGroup", "a100", {"capacity": CAPACITY})))
    assert {path: reason.split(";")[0] for path, reason in told.items()} == {
        "cluster": "is missing",
        "zones": "is missing",
    }


async def test_a_component_that_it_does_not_have_is_told(plugin: Any, monitor: Monitor) -> None:
    told = await fails(plugin.Construct(asked(monitor, "Nope", "x")))
    assert told.startswith("kumulus has no component 'kumulus:index:Nope'; it has: kumulus:index:EmulatedCluster, ")


async def test_a_resource_within_that_fails_fails_the_component(plugin: Any, monitor: Monitor) -> None:
    monitor.refuse.add("fleet-control-plane")
    told = await fails(plugin.Construct(asked(monitor, "KwokCluster", "fleet")))
    assert "fleet-control-plane is refused" in told
    assert "Traceback" not in told
    assert "File " not in told


async def test_what_is_under_way_is_answered_when_the_engine_ends() -> None:
    silent = threading.Event()
    with listening(silent=silent) as monitor:
        constructor = Constructor(None)
        under_way = asyncio.create_task(constructor(asked(monitor, "KwokCluster", "fleet").SerializeToString()))
        await asyncio.sleep(0)
        constructor.abandon()
        with pytest.raises(ProviderError, match="the update has ended"):
            await asyncio.wait_for(under_way, 30)
        silent.set()


async def test_a_fault_chooses_from_the_groups_it_is_given(plugin: Any, monitor: Monitor) -> None:
    made = await plugin.Construct(asked(monitor, "KwokCluster", "fleet"))
    grown = await group(
        plugin, monitor, made.urn, "a100", zones={"use1": 4}, capacity={**CAPACITY, "nvidia.com/gpu": 8}
    )
    given = {
        "cluster": reference(made.urn),
        "nodeGroups": [reference(grown.urn)],
        "kubelet": "notReady",
        "target": {"nodeGroup": "a100", "count": 2},
    }
    fault = await plugin.Construct(asked(monitor, "FleetFault", "lost", given))
    assert json_format.MessageToDict(fault.state)["nodes"] == {"a100-use1": "0-1"}
    assert monitor.of("Fault")["lost"].parent == fault.urn


async def test_a_fault_chooses_from_a_group_with_labels_that_a_preview_does_not_know(
    plugin: Any, monitor: Monitor
) -> None:
    made = await plugin.Construct(asked(monitor, "KwokCluster", "fleet", dryRun=True))

    async def fault(name: str, labels: Any) -> Any:
        given = {"cluster": reference(made.urn), "zones": {"use1": 2}, "capacity": CAPACITY, "labels": labels}
        grown = await plugin.Construct(asked(monitor, "KwokNodeGroup", name, given, dryRun=True))
        wanted = {"nodeGroups": [reference(grown.urn)], "kubelet": "notReady", "target": {"nodeGroup": name}}
        inputs = {"cluster": reference(made.urn), **wanted}
        return await plugin.Construct(asked(monitor, "FleetFault", f"{name}-lost", inputs, dryRun=True))

    found = await fault("a100", {"team": output(known=False)})
    assert json_format.MessageToDict(found.state)["nodes"] == {"a100-use1": "0-1"}
    with pytest.raises(grpc.aio.AioRpcError, match="not know; write a mapping of which only the values"):
        await fault("h100", output(known=False))


async def test_an_addon_has_a_provider_of_its_own_and_a_tenant_needs_none(plugin: Any) -> None:
    token = {"data": {"token": "dA==", "ca.crt": "Yw=="}}
    with listening(outputs={"kumulus:index:Cluster": CLUSTER, "kumulus:index:KubernetesObject": token}) as monitor:
        made = await plugin.Construct(asked(monitor, "KwokCluster", "fleet"))
        cluster = reference(made.urn)
        tenant = await plugin.Construct(asked(monitor, "Tenant", "one", {"cluster": cluster, "quota": {"pods": 5}}))
        state = json_format.MessageToDict(tenant.state)
        assert state["namespace"] == "one"
        assert state["kubeconfig"][SIGNATURE] in (rpc._special_secret_sig, rpc._special_output_value_sig)
        given = {
            "cluster": cluster,
            "chart": "oci://registry.example/chart",
            "values": {"key": secret("hidden"), "replicas": 2},
        }
        await plugin.Construct(asked(monitor, "HelmAddon", "one", given))
        made_here = monitor.registered.values()
        providers = {each.name: each for each in made_here if each.type == "pulumi:providers:kubernetes"}
        assert set(providers) == {"one-helm-addon-kubernetes"}
        for each in providers.values():
            assert each.parent == STACK
            assert each.object["kubeconfig"] == CLUSTER["kubeconfig"]
        (release,) = (each for each in made_here if each.type == "kubernetes:helm.sh/v3:Release")
        assert json_format.MessageToDict(release.object)["values"] == secret({"key": "hidden", "replicas": 2})


async def test_a_stack_files_mapping_makes_all_of_it(plugin: Any, monitor: Monitor) -> None:
    groups = [
        {"name": "a", "placement": [{"availabilityZone": "z", "replicas": 3}], "nodeTemplate": {"capacity": CAPACITY}}
    ]
    made = await plugin.Construct(asked(monitor, "EmulatedCluster", "lab", {"spec": {"nodeGroups": groups}}))
    assert monitor.of("NodePool")["a-z"].object["replicas"] == 3
    more = await group(plugin, monitor, made.urn, "more")
    assert monitor.of("NodePool")["more-use1"].parent == more.urn


async def test_a_component_is_constructed_past_the_users_proxy(monitor: Monitor, unused_tcp_port: int) -> None:
    with plugin_process(http_proxy=f"http://127.0.0.1:{unused_tcp_port}") as port:
        async with grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel:
            plugin = provider_pb2_grpc.ResourceProviderStub(channel)
            made = await plugin.Construct(asked(monitor, "KwokCluster", "fleet"), timeout=30)
    assert made.urn == "urn:pulumi:dev::p::kumulus:index:KwokCluster::fleet"

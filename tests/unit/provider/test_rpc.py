"""The plugin over the protocol that Pulumi's engine speaks: in this process, and once as the process it is."""

import asyncio
import gc
import json
import os
import re
import signal
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

import grpc
import pytest
from google.protobuf import empty_pb2, json_format, struct_pb2
from hypothesis import given, settings
from hypothesis import strategies as st
from pulumi.runtime import rpc
from pulumi.runtime.proto import engine_pb2, engine_pb2_grpc, provider_pb2, provider_pb2_grpc, status_pb2

from kumulus.host.version import FORM, VERSION
from kumulus.nodes.errors import PartialFailure, ProviderError
from kumulus.nodes.reporter import Reporter
from kumulus.provider.connections import Connections
from kumulus.provider.engine import PulumiEngine
from kumulus.provider.resources.base import CheckResult, InputFailure, Operation, Properties, ReadResult, Resource
from kumulus.provider.resources.diffing import PropertyDifference
from kumulus.provider.resources.node_pool import NodePool
from kumulus.provider.resources.registry import resources
from kumulus.provider.rpc import Servicer
from kumulus.provider.values import from_struct
from kumulus.runtimes.base import Observed, RecordedControlPlane, WantedControlPlane
from kumulus.runtimes.kwok.runtime import KwokRuntime
from tests.unit.provider.stored import KUBECONFIG, written

ROOT = Path(__file__).resolve().parents[3]
CLUSTER = "urn:pulumi:dev::kumulus::kumulus:index:EmulatedCluster$kumulus:index:Cluster::demo"
POOL = "urn:pulumi:dev::kumulus::kumulus:index:KwokNodeGroup$kumulus:index:NodePool::a-use1"
LIFETIME = "urn:pulumi:dev::kumulus::kumulus:index:KwokCluster$kumulus:index:Lifetime::demo"
PROBE = "urn:pulumi:dev::kumulus::kumulus:index:Probe::probe"
UNKNOWN_WIRE = rpc.UNKNOWN
Kind = provider_pb2.PropertyDiff
Message = tuple[str, int, str]


def struct(values: dict[str, Any]) -> struct_pb2.Struct:
    return json_format.ParseDict(values, struct_pb2.Struct())


def kinds(answer: provider_pb2.DiffResponse) -> dict[str, str]:
    return {path: Kind.Kind.Name(entry.kind) for path, entry in answer.detailedDiff.items()}


def secret(value: Any) -> dict[str, Any]:
    return {rpc._special_sig_key: rpc._special_secret_sig, "value": value}


@dataclass
class Plugin:
    """The served plugin: its stub, and what it told the engine."""

    stub: Any
    told: list[engine_pb2.LogRequest] = field(default_factory=list)

    async def check(self, urn: str, news: dict[str, Any], olds: dict[str, Any] | None = None) -> dict[str, Any]:
        """Check inputs that have to be accepted; returns them with defaults."""
        answer = await self.stub.Check(provider_pb2.CheckRequest(urn=urn, news=struct(news), olds=struct(olds or {})))
        assert list(answer.failures) == []
        return from_struct(answer.inputs)

    async def failures(self, urn: str, news: dict[str, Any]) -> dict[str, str]:
        """The reasons for which inputs are refused, by property path."""
        answer = await self.stub.Check(provider_pb2.CheckRequest(urn=urn, news=struct(news)))
        return {failure.property: failure.reason for failure in answer.failures}

    async def diff(
        self, urn: str, olds: dict[str, Any], news: dict[str, Any], ignore: tuple[str, ...] = ()
    ) -> provider_pb2.DiffResponse:
        request = provider_pb2.DiffRequest(urn=urn, id="x", olds=struct(olds), news=struct(news), ignoreChanges=ignore)
        answer: provider_pb2.DiffResponse = await self.stub.Diff(request)
        return answer

    async def changes(self, *arguments: Any, **options: Any) -> dict[str, str]:
        """The detailed diff: the kind of each change by property path."""
        return kinds(await self.diff(*arguments, **options))

    async def create(self, urn: str, news: dict[str, Any], *, preview: bool = False) -> Any:
        request = provider_pb2.CreateRequest(urn=urn, properties=struct(news), preview=preview)
        return await self.stub.Create(request)

    async def update(
        self, urn: str, olds: dict[str, Any], news: dict[str, Any], *, name: str = "x", **more: Any
    ) -> Any:
        request = provider_pb2.UpdateRequest(urn=urn, id=name, olds=struct(olds), news=struct(news), **more)
        return await self.stub.Update(request)

    async def read(self, urn: str, outputs: dict[str, Any], inputs: dict[str, Any], *, name: str = "x") -> Any:
        request = provider_pb2.ReadRequest(urn=urn, id=name, properties=struct(outputs), inputs=struct(inputs))
        return await self.stub.Read(request)

    async def delete(self, urn: str, outputs: dict[str, Any], *, name: str = "x", **more: Any) -> None:
        await self.stub.Delete(provider_pb2.DeleteRequest(urn=urn, id=name, properties=struct(outputs), **more))

    def messages(self) -> list[str]:
        return [message.message for message in self.told]


class Log(engine_pb2_grpc.EngineServicer):
    """The part of Pulumi's engine that takes messages."""

    def __init__(self) -> None:
        self.told: list[engine_pb2.LogRequest] = []

    async def Log(self, request: Any, context: Any) -> Any:
        self.told.append(request)
        return empty_pb2.Empty()


@asynccontextmanager
async def listening() -> AsyncIterator[tuple[Log, str]]:
    """An engine that takes messages, and its address."""
    log, listener = Log(), grpc.aio.server()
    engine_pb2_grpc.add_EngineServicer_to_server(log, listener)
    address = f"127.0.0.1:{listener.add_insecure_port('127.0.0.1:0')}"
    await listener.start()
    yield log, address
    await listener.stop(0)


@asynccontextmanager
async def stub_of(servicer: Servicer) -> AsyncIterator[Any]:
    server = grpc.aio.server()
    provider_pb2_grpc.add_ResourceProviderServicer_to_server(servicer, server)
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    async with grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel:
        yield provider_pb2_grpc.ResourceProviderStub(channel)
    await server.stop(0)


@asynccontextmanager
async def serving(served: dict[str, Resource], program: str = "/program") -> AsyncIterator[Plugin]:
    async with listening() as (log, address), stub_of(Servicer(PulumiEngine(address), served, program)) as stub:
        yield Plugin(stub, log.told)


@pytest.fixture
async def plugin(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Plugin]:
    monkeypatch.delenv("KUMULUS_HOME", raising=False)
    connections = Connections()
    async with serving({**resources(), NodePool.token: NodePool(connections)}) as made:
        yield made
    await connections.close()


class Probe(Resource):
    """A resource whose create, update and delete do what a test tells them to."""

    token: ClassVar[str] = "kumulus:index:Probe"

    def __init__(self, act: Callable[[Operation], Awaitable[Properties]]) -> None:
        self._act = act

    def check(self, old_inputs: Properties, inputs: Properties, program: str) -> CheckResult:
        return CheckResult(inputs)

    def diff(self, old_outputs: Properties, inputs: Properties) -> list[PropertyDifference]:
        return []

    async def create(self, op: Operation, inputs: Properties) -> tuple[str, Properties]:
        return "id", await self._act(op)

    async def read(self, op: Operation, resource_id: str, outputs: Properties, inputs: Properties) -> ReadResult | None:
        return ReadResult(resource_id, await self._act(op), inputs)

    async def update(self, op: Operation, resource_id: str, old_outputs: Properties, inputs: Properties) -> Properties:
        return await self._act(op)

    async def delete(self, op: Operation, resource_id: str, outputs: Properties) -> None:
        await self._act(op)


def probing(act: Callable[[Operation], Awaitable[Properties]]) -> Any:
    return serving({Probe.token: Probe(act)})


def raising(error: Exception) -> Callable[[Operation], Awaitable[Properties]]:
    async def act(_: Operation) -> Properties:
        raise error

    return act


async def test_a_resource_learns_what_the_stack_declares_if_its_check_passes() -> None:
    class Declared(Probe):
        seen: ClassVar[dict[str, Properties]] = {}

        def check(self, old_inputs: Properties, inputs: Properties, program: str) -> CheckResult:
            return CheckResult(inputs, [InputFailure("name", "is taken")] if inputs["name"] == "bad" else [])

        async def declare(self, urn: str, old_inputs: Properties, inputs: Properties) -> None:
            self.seen[urn] = inputs

    async with serving({Probe.token: Declared(raising(AssertionError()))}) as plugin:
        await plugin.check(f"{PROBE}-a", {"name": "good"})
        assert await plugin.failures(f"{PROBE}-b", {"name": "bad"})
    assert Declared.seen == {f"{PROBE}-a": {"name": "good"}}


async def fails(call: Any) -> grpc.aio.AioRpcError:
    with pytest.raises(grpc.aio.AioRpcError) as raised:
        await call
    return raised.value


async def refusal(call: Any) -> str:
    details = (await fails(call)).details()
    assert details is not None
    return details


# --- the plugin itself -----------------------------------------------------------------------------------------------


async def test_previews_secrets_and_outputs_reach_it(plugin: Plugin) -> None:
    answer = await plugin.stub.Configure(provider_pb2.ConfigureRequest())
    assert (answer.supportsPreview, answer.acceptSecrets, answer.acceptOutputs) == (True, True, True)


async def test_what_came_as_a_secret_goes_as_one() -> None:
    async def act(op: Operation) -> Properties:
        return {"token": "hidden", "inner": {"a": "hidden", "b": "plain"}, "list": ["hidden"], "more": "plain"}

    given = struct({"token": secret("hidden"), "inner": {"a": secret("hidden")}, "list": [secret("hidden")]})
    wanted = {"token": secret("hidden"), "inner": {"a": secret("hidden"), "b": "plain"}, "list": secret(["hidden"])}
    async with probing(act) as plugin:
        made = await plugin.stub.Create(provider_pb2.CreateRequest(urn=PROBE, properties=given))
        changed = await plugin.stub.Update(provider_pb2.UpdateRequest(urn=PROBE, id="id", news=given))
        found = await plugin.stub.Read(provider_pb2.ReadRequest(urn=PROBE, id="id", inputs=given))
        checked = await plugin.stub.Check(provider_pb2.CheckRequest(urn=PROBE, news=given))
    for answer in (made, changed, found):
        assert json_format.MessageToDict(answer.properties) == {**wanted, "more": "plain"}
    assert json_format.MessageToDict(checked.inputs)["token"] == secret("hidden")
    assert json_format.MessageToDict(found.inputs)["inner"] == {"a": secret("hidden")}


async def test_drift_is_a_secret_if_any_input_is_for_it_quotes_them() -> None:
    async def act(op: Operation) -> Properties:
        drift = {"altered": {"a-0": 'annotations["token"]: "old" instead of "hidden"'}}
        return {"annotations": {"token": "hidden"}, "drift": drift}

    for token, shown in ((secret("hidden"), False), ("plain", True)):
        async with probing(act) as plugin:
            inputs = struct({"annotations": {"token": token}})
            request = provider_pb2.ReadRequest(urn=PROBE, id="id", inputs=inputs, properties=struct({}))
            drift = json_format.MessageToDict((await plugin.stub.Read(request)).properties)["drift"]
        assert (rpc._special_sig_key not in drift) == shown
        assert from_struct(struct({"drift": drift}))["drift"]["altered"]


async def test_any_provider_configuration_is_taken_and_never_replaces(plugin: Plugin) -> None:
    news = struct({"version": "1"})
    checked = from_struct((await plugin.stub.CheckConfig(provider_pb2.CheckRequest(news=news))).inputs)
    assert checked.pop("lastPlace")
    assert json.loads(checked.pop("writtenBy")) == {"form": str(FORM), "version": VERSION}
    assert checked == {"version": "1"}
    answer = await plugin.stub.DiffConfig(provider_pb2.DiffRequest(news=news))
    assert answer.changes == provider_pb2.DiffResponse.DIFF_NONE


@pytest.mark.parametrize("method", ["Check", "Diff", "Create", "Read", "Update", "Delete"])
async def test_a_resource_type_it_does_not_have_is_named(plugin: Plugin, method: str) -> None:
    request = getattr(provider_pb2, f"{method}Request")(urn="urn:pulumi:dev::p::kumulus:index:Nope::x")
    error = await fails(getattr(plugin.stub, method)(request))
    known = ", ".join(sorted(resources()))
    assert error.details() == f"kumulus has no resource type 'kumulus:index:Nope'; it has: {known}"


async def test_a_lifetime_is_replaced_by_another_identity_the_new_one_first(plugin: Plugin) -> None:
    answer = await plugin.diff(LIFETIME, {"clusterIdentity": "one"}, {"clusterIdentity": "two"})
    assert (list(answer.replaces), answer.deleteBeforeReplace) == (["clusterIdentity"], False)


# --- Cluster ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("inputs", "path", "said"),
    [
        ({}, "name", "a cluster needs a name"),
        ({"name": 5}, "name", "a cluster needs a name"),
        ({"name": "Team_A"}, "name", "write team-a"),
        ({"name": "x", "runtime": "docker"}, "runtime", "'docker' is not a runtime; write one of existing, kind, kwok"),
        ({"name": "x", "runtime": ["kwok"]}, "runtime", "write one of existing, kind, kwok"),
        ({"name": "x", "kubernetesVersion": "1.35"}, "kubernetesVersion", "write it like v1.35.4"),
        ({"name": "x", "kubernetesVersion": 1.35}, "kubernetesVersion", "write it like v1.35.4"),
        ({"name": "x", "kubernetesVersion": "v9.9.9"}, "kubernetesVersion", "write one of v"),
        ({"name": "x", "nmae": "y"}, "nmae", "it takes name, runtime, kubernetesVersion, options, home"),
        ({"name": "x", "home": 5}, "home", "write the path of a directory"),
        ({"name": "x", "home": ""}, "home", "write the path of a directory"),
        ({"name": "x", "options": "fast"}, "options", "is not a mapping"),
        ({"name": "x", "options": {"nope": 1}}, "options.nope", "write one of apiServerPort, "),
        ({"name": "x", "options": {"a-b": 1}}, 'options["a-b"]', "is not a known key"),
        ({"name": "x", "options": {"apiServerPort": 80}}, "options.apiServerPort", "from 1024 to 65,535"),
        ({"name": "x", "options": {"apiServerPort": True}}, "options.apiServerPort", "from 1024 to 65,535"),
        ({"name": "x", "options": {"featureGates": "A=true"}}, "options.featureGates", "write a mapping"),
        ({"name": "x", "options": {"featureGates": {"A": "on"}}}, "options.featureGates.A", "true or false"),
        (
            {"name": "x", "options": {"featureGates": {"A=true,B": True}}},
            'options.featureGates["A=true,B"]',
            "write a name",
        ),
        (
            {"name": "x", "options": {"runtimeConfig": {"api/all": [1]}}},
            'options.runtimeConfig["api/all"]',
            "write true",
        ),
        ({"name": "x", "options": {"runtimeConfig": ["api/all"]}}, "options.runtimeConfig", "write a mapping"),
        ({"name": "x", "options": {"etcdQuota": "much"}}, "options.etcdQuota", 'write a quantity such as "8Gi"'),
        ({"name": "x", "options": {"heartbeatFactor": "fast"}}, "options.heartbeatFactor", "write a whole number"),
        ({"name": "x", "options": {"heartbeatFactor": 0}}, "options.heartbeatFactor", "write a whole number"),
        ({"name": "x", "options": {"etcdQuota": "0"}}, "options.etcdQuota", "write a quantity such as 8Gi"),
        ({"name": "x", "options": {"podUsage": "all"}}, "options.podUsage", "write one of pods, gpus"),
    ],
)
async def test_a_clusters_mistakes_are_told_by_path_and_remedy(
    plugin: Plugin, inputs: dict[str, Any], path: str, said: str
) -> None:
    found = await plugin.failures(CLUSTER, inputs)
    assert list(found) == [path]
    assert said in found[path]


async def test_all_mistakes_are_told_at_once(plugin: Plugin) -> None:
    found = await plugin.failures(CLUSTER, {"name": "A", "home": 1, "options": {"a": 1, "apiServerPort": 1}, "z": 1})
    assert set(found) == {"name", "home", "options.a", "options.apiServerPort", "z"}


async def test_options_that_can_be_used_are_accepted(plugin: Plugin) -> None:
    options = {
        "apiServerPort": 6443,
        "featureGates": {"DynamicResourceAllocation": True, "Old": "false"},
        "runtimeConfig": {"api/all": "true", "batch/v1": True},
        "etcdQuota": "8Gi",
        "heartbeatFactor": 5,
    }
    assert (await plugin.check(CLUSTER, {"name": "x", "options": options}))["options"] == options


async def test_what_is_unknown_in_a_preview_is_not_a_mistake(plugin: Plugin) -> None:
    inputs = {"name": UNKNOWN_WIRE, "kubernetesVersion": UNKNOWN_WIRE, "options": {"apiServerPort": UNKNOWN_WIRE}}
    assert await plugin.failures(CLUSTER, inputs) == {}


async def test_defaults_are_filled_in(plugin: Plugin) -> None:
    found = await plugin.check(CLUSTER, {"name": "demo"})
    assert found == {
        "name": "demo",
        "runtime": "kwok",
        "kubernetesVersion": KwokRuntime().default_version(),
        "options": {},
        "home": "/program/.kumulus",
        "status": "running",
    }


@pytest.mark.parametrize(
    ("of_all", "own", "home"),
    [
        ("/elsewhere", None, "/elsewhere"),
        ("/elsewhere", "/own", "/own"),
        ("", "clusters", "/program/clusters"),
        ("../shared", None, "/shared"),
    ],
)
async def test_the_home_can_be_set_for_all_and_for_one_below_the_program(
    plugin: Plugin, monkeypatch: pytest.MonkeyPatch, of_all: str, own: str | None, home: str
) -> None:
    monkeypatch.setenv("KUMULUS_HOME", of_all)
    assert (await plugin.check(CLUSTER, {"name": "demo", "home": own}))["home"] == home


async def test_defaults_stick_when_they_move_on(plugin: Plugin, monkeypatch: pytest.MonkeyPatch) -> None:
    first = await plugin.check(CLUSTER, {"name": "demo"})
    monkeypatch.setenv("KUMULUS_HOME", "/moved")
    monkeypatch.setattr(KwokRuntime, "default_version", lambda self: "v9.9.9")
    assert await plugin.check(CLUSTER, {"name": "demo"}, first) == first
    assert await plugin.check(CLUSTER, {"name": "demo", "home": "/new"}, first) == {**first, "home": "/new"}


async def test_a_recorded_version_that_is_no_longer_pinned_is_replaced_by_the_default(plugin: Plugin) -> None:
    inputs, outputs = await created(plugin)
    old = {"kubernetesVersion": "v1.20.1"}
    checked = await plugin.check(CLUSTER, {"name": "demo"}, {**inputs, **old})
    assert checked == inputs
    assert await plugin.changes(CLUSTER, {**outputs, **old}, checked) == {"kubernetesVersion": "UPDATE_REPLACE"}
    # Who asks for it by name is told which there are.
    assert "write one of v" in (await plugin.failures(CLUSTER, {"name": "demo", **old}))["kubernetesVersion"]


@pytest.fixture(autouse=True)
def _recorded_clusters_are_there(monkeypatch: pytest.MonkeyPatch) -> None:
    """The clusters of these tests are records only: without this, each is one whose removal was begun."""

    async def read(self: KwokRuntime, recorded: RecordedControlPlane, report: Reporter) -> Observed | None:
        if not recorded.directory.startswith("/program"):
            return await looked(self, recorded, report)
        return Observed(recorded.identity, recorded.kubeconfig, "", recorded.directory, {"etcd": "running"})

    looked = KwokRuntime.read

    monkeypatch.setattr(KwokRuntime, "removed", lambda self, directory: False)
    monkeypatch.setattr(KwokRuntime, "read", read)


async def created(plugin: Plugin, **inputs: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """Inputs of a cluster, and the outputs that are recorded of it."""
    checked = await plugin.check(CLUSTER, {"name": "demo", **inputs})
    runtime = KwokRuntime()
    return checked, {
        **checked,
        "identity": "uid-1",
        "kubeconfig": "/program/.kumulus/clusters/demo/kubeconfig.yaml",
        "server": "https://127.0.0.1:1",
        "directory": "/program/.kumulus/clusters/demo",
        "owner": "me",
        "components": {"etcd": "running", "kube-apiserver": "running"},
        "configuration": runtime.configuration(
            WantedControlPlane("demo", "me", "/program/.kumulus", "v1.35.4", checked["options"])
        ),
    }


async def test_a_cluster_as_recorded_does_not_differ(plugin: Plugin) -> None:
    inputs, outputs = await created(plugin)
    answer = await plugin.diff(CLUSTER, outputs, inputs)
    assert answer.changes == provider_pb2.DiffResponse.DIFF_NONE
    assert (answer.hasDetailedDiff, answer.deleteBeforeReplace, len(answer.detailedDiff)) == (True, False, 0)


OLD_OPTIONS = {"apiServerPort": 7000, "featureGates": {"A": True}, "etcdQuota": "4Gi"}


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"name": "other"}, {"name": "UPDATE_REPLACE"}),
        ({"kubernetesVersion": "v1.0.0"}, {"kubernetesVersion": "UPDATE_REPLACE"}),
        ({"home": "/moved"}, {"home": "UPDATE_REPLACE"}),
        ({"name": UNKNOWN_WIRE}, {"name": "UPDATE_REPLACE"}),
        ({"kubernetesVersion": UNKNOWN_WIRE}, {"kubernetesVersion": "UPDATE_REPLACE"}),
        (
            {"options": {"apiServerPort": 7001, "etcdQuota": "8Gi"}},
            {
                "options.apiServerPort": "UPDATE_REPLACE",
                "options.featureGates": "DELETE_REPLACE",
                "options.etcdQuota": "UPDATE",
            },
        ),
        (
            {"options": {**OLD_OPTIONS, "apiServerPort": UNKNOWN_WIRE, "etcdQuota": UNKNOWN_WIRE}},
            {"options.apiServerPort": "UPDATE_REPLACE", "options.etcdQuota": "UPDATE"},
        ),
    ],
)
async def test_what_a_cluster_cannot_change_replaces_it_the_old_one_first(
    plugin: Plugin, change: dict[str, Any], expected: dict[str, str]
) -> None:
    inputs, outputs = await created(plugin, options=OLD_OPTIONS if "options" in change else {})
    answer = await plugin.diff(CLUSTER, outputs, {**inputs, **change})
    found = kinds(answer)
    # Which settings follow from options is compared, too.
    assert {path: kind for path, kind in found.items() if path != "configuration"} == expected
    assert set(answer.replaces) == {path for path, kind in expected.items() if kind.endswith("REPLACE")}
    assert answer.deleteBeforeReplace


async def test_an_existing_cluster_whose_kubeconfig_is_not_known_yet_stays_the_same_cluster(plugin: Plugin) -> None:
    # As when the cluster itself, declared by another provider in the same program, is changed by the same update.
    options = {"kubeconfig": KUBECONFIG.format(address="https://eks.example.com")}
    inputs = await plugin.check(CLUSTER, {"name": "demo", "runtime": "existing", "options": options})
    known = {"identity": "uid-1", "kubeconfig": "/c/kubeconfig.yaml", "server": "https://s", "directory": "/c"}
    outputs = {**inputs, **known, "owner": "me", "components": {"kube-apiserver": "running"}, "configuration": ""}
    news = {**inputs, "options": {"kubeconfig": UNKNOWN_WIRE}}
    assert await plugin.changes(CLUSTER, outputs, news) == {"options.kubeconfig": "UPDATE"}
    after = json_format.MessageToDict((await plugin.update(CLUSTER, outputs, news, preview=True)).properties)
    assert {key: after[key] for key in known} == known
    assert after["configuration"] == UNKNOWN_WIRE


async def test_a_degraded_cluster_is_repaired_in_place(plugin: Plugin) -> None:
    inputs, outputs = await created(plugin)
    down = {**outputs, "status": "degraded", "components": {"etcd": "stopped", "kube-apiserver": "running"}}
    answer = await plugin.diff(CLUSTER, down, inputs)
    assert {path: entry.kind for path, entry in answer.detailedDiff.items()} == {"status": Kind.UPDATE}
    assert not answer.replaces
    after = from_struct((await plugin.update(CLUSTER, down, inputs, preview=True)).properties)
    assert (after["identity"], after["kubeconfig"]) == (outputs["identity"], outputs["kubeconfig"])
    assert (after["status"], after["components"]) == ("running", outputs["components"])
    assert plugin.messages() == ["etcd is stopped and will be started"]


async def test_changed_stages_are_applied_in_place(plugin: Plugin) -> None:
    inputs, outputs = await created(plugin)
    assert await plugin.changes(CLUSTER, {**outputs, "configuration": "old"}, inputs) == {"configuration": "UPDATE"}


@pytest.mark.parametrize(
    ("name", "kubeconfig"),
    [("demo", "/program/.kumulus/clusters/demo/kubeconfig.yaml"), (UNKNOWN_WIRE, UNKNOWN_WIRE)],
)
async def test_a_previewed_cluster_has_no_id_but_a_kubeconfig_if_its_name_is_known(
    plugin: Plugin, name: str, kubeconfig: str
) -> None:
    inputs = await plugin.check(CLUSTER, {"name": name})
    answer = await plugin.create(CLUSTER, {**inputs, "name": name}, preview=True)
    assert answer.id == ""
    outputs = json_format.MessageToDict(answer.properties)
    assert outputs["kubeconfig"] == kubeconfig
    assert outputs["identity"] == outputs["server"] == outputs["status"] == UNKNOWN_WIRE


async def test_a_cluster_whose_directory_is_gone_is_gone(plugin: Plugin, tmp_path: Path) -> None:
    inputs, outputs = await created(plugin, home=str(tmp_path))
    outputs["directory"] = str(tmp_path / "clusters" / "demo")
    assert (await plugin.read(CLUSTER, outputs, inputs)).id == ""
    await plugin.delete(CLUSTER, outputs)


async def test_repairing_a_cluster_that_is_gone_says_what_to_do(plugin: Plugin, tmp_path: Path) -> None:
    inputs, outputs = await created(plugin, home=str(tmp_path))
    error = await fails(plugin.update(CLUSTER, outputs, inputs))
    assert error.details() == (
        f"cluster demo is gone from {tmp_path}/clusters/demo; `pulumi up --refresh` makes it again"
    )
    assert error.code() is grpc.StatusCode.UNKNOWN


async def test_a_directory_that_holds_no_cluster_is_not_removed(plugin: Plugin, tmp_path: Path) -> None:
    _, outputs = await created(plugin)
    (tmp_path / "precious").write_text("data")
    error = await fails(plugin.delete(CLUSTER, {**outputs, "directory": str(tmp_path)}))
    assert error.details() == f"{tmp_path} does not look like a cluster of ours; it is left alone: remove it by hand"
    assert (tmp_path / "precious").exists()


@pytest.mark.parametrize(
    ("urn", "named", "said"),
    [
        (CLUSTER, "demo", "no cluster of Kumulus is at /program/.kumulus/clusters/demo; write the path of its direct"),
        (CLUSTER, "/other/clusters/demo", "no cluster of Kumulus is at /other/clusters/demo; "),
        (POOL, "demo/a-use1", "no cluster of Kumulus is at /program/.kumulus/clusters/demo; "),
        (POOL, "a-use1", "'a-use1' names no pool; write <cluster>/<pool>, such as demo/gpu-a100-use1"),
    ],
)
async def test_an_import_of_what_is_not_there_says_where_it_looked(
    plugin: Plugin, monkeypatch: pytest.MonkeyPatch, urn: str, named: str, said: str
) -> None:
    monkeypatch.delenv("KUMULUS_HOME", raising=False)
    assert said in await refusal(plugin.stub.Read(provider_pb2.ReadRequest(urn=urn, id=named)))


async def test_an_import_of_a_cluster_without_a_note_says_what_writes_it(plugin: Plugin, tmp_path: Path) -> None:
    directory = tmp_path / "clusters" / "demo"
    directory.mkdir(parents=True)
    (directory / "kumulus.json").write_text('{"owner": "me"}')
    error = await fails(plugin.stub.Read(provider_pb2.ReadRequest(urn=CLUSTER, id=str(directory))))
    assert error.details() == (
        f"cluster demo: {directory}/declared.json does not say what it was declared with; `pulumi refresh` in "
        "the stack that made it writes that"
    )
    (directory / "declared.json").write_text('{"runtime": "kwok", "kubernetesVersion": "v1.35.4", "options": {}}')
    details = await refusal(plugin.stub.Read(provider_pb2.ReadRequest(urn=CLUSTER, id=str(directory))))
    assert details.startswith("cluster demo does not say who it is: ")
    assert details.endswith("with `pulumi up --refresh`, and import it then")


# --- NodePool --------------------------------------------------------------------------------------------------------

INPUTS: dict[str, Any] = {
    "kubeconfig": "/nowhere/kubeconfig.yaml",
    "clusterIdentity": "uid-1",
    "clusterName": "demo",
    "name": "a-use1",
    "replicas": 5,
    "labels": {"team": "search", "example.com/rack": "r1", "kumulus.io/group": "a"},
    "annotations": {"example.com/note": "x"},
    "taints": [{"key": "kwok.x-k8s.io/node", "value": "fake", "effect": "NoSchedule"}],
    "capacity": {"cpu": "96", "memory": "1360Gi", "pods": "110", "nvidia.com/gpu": "8"},
    "allocatable": {"cpu": "96", "memory": "1360Gi", "pods": "110", "nvidia.com/gpu": "8"},
    "nodeInfo": {"architecture": "amd64", "operatingSystem": "linux", "kubeletVersion": "fake"},
}


def but(**changes: Any) -> dict[str, Any]:
    return {**INPUTS, **changes}


@pytest.mark.parametrize(
    ("inputs", "path", "said"),
    [
        (but(kubeconfig=None), "kubeconfig", "is required"),
        (but(clusterName=["demo"]), "clusterName", "is not a string"),
        (but(name=None), "name", "write the pool's name"),
        (but(replicas=2.5), "replicas", "which is not whole"),
        (but(replicas=1e6), "replicas", "write 100,000 or fewer"),
        (but(labels={"team": 5}), "labels.team", 'write it in quotes: "5"'),
        (but(capacity={"nvidia.com/gpu": "8x"}, allocatable=None), 'capacity["nvidia.com/gpu"]', "such as"),
        (but(allocatable={"cpu": "97"}), "allocatable.cpu", 'write "96" or less'),
        (but(taints={"key": "a"}), "taints", "write a list"),
        (but(replica=5), "replica", "it takes kubeconfig, "),
    ],
)
async def test_a_pools_mistakes_are_told_by_path_and_remedy(
    plugin: Plugin, inputs: dict[str, Any], path: str, said: str
) -> None:
    """How the rules of a pool reach the engine; `tests/unit/model/test_pool_form.py` has all of them."""
    found = await plugin.failures(POOL, inputs)
    assert list(found) == [path]
    assert said in found[path]


async def test_quantities_are_kept_in_the_api_servers_own_form(plugin: Plugin) -> None:
    found = await plugin.check(POOL, but(capacity={"cpu": "96000m", "memory": "1024Mi", "pods": 110}, allocatable=None))
    assert found["capacity"] == found["allocatable"] == {"cpu": "96", "memory": "1Gi", "pods": "110"}


async def test_checked_inputs_are_accepted_as_they_are_and_do_not_differ(plugin: Plugin) -> None:
    found = await plugin.check(POOL, INPUTS)
    assert found == INPUTS
    assert await plugin.check(POOL, found, found) == found
    assert (await plugin.diff(POOL, found, found)).changes == provider_pb2.DiffResponse.DIFF_NONE


async def test_a_pool_of_a_cluster_that_is_not_there_yet_is_checked_all_the_same(plugin: Plugin) -> None:
    inputs = but(clusterIdentity=UNKNOWN_WIRE, replicas=-1)
    assert list(await plugin.failures(POOL, inputs)) == ["replicas"]


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"replicas": 8}, {"replicas": "UPDATE"}),
        (
            {"capacity": {**INPUTS["capacity"], "nvidia.com/gpu": "4"}},
            {'capacity["nvidia.com/gpu"]': "UPDATE"},
        ),
        ({"labels": {"team": "ads", "example.com/zone": "z", "kumulus.io/group": "a"}}, {
            "labels.team": "UPDATE", 'labels["example.com/rack"]': "DELETE", 'labels["example.com/zone"]': "ADD",
        }),
        ({"taints": []}, {"taints": "UPDATE"}),
        ({"annotations": {}}, {'annotations["example.com/note"]': "DELETE"}),
        ({"nodeInfo": {**INPUTS["nodeInfo"], "kubeletVersion": "v1"}}, {"nodeInfo.kubeletVersion": "UPDATE"}),
        ({"kubeconfig": "/moved"}, {"kubeconfig": "UPDATE"}),
        ({"name": "b-use1"}, {"name": "UPDATE_REPLACE"}),
        ({"clusterName": "other"}, {"clusterName": "UPDATE_REPLACE"}),
        ({"clusterIdentity": "uid-2"}, {"clusterIdentity": "UPDATE_REPLACE"}),
        ({"clusterIdentity": UNKNOWN_WIRE}, {"clusterIdentity": "UPDATE_REPLACE"}),
    ],
)  # fmt: skip
async def test_a_pool_is_changed_in_place_unless_its_place_is_another(
    plugin: Plugin, change: dict[str, Any], expected: dict[str, str]
) -> None:
    answer = await plugin.diff(POOL, INPUTS, but(**change))
    assert kinds(answer) == expected
    assert answer.changes == provider_pb2.DiffResponse.DIFF_SOME
    assert list(answer.replaces) == [path for path, kind in expected.items() if kind == "UPDATE_REPLACE"]
    assert answer.deleteBeforeReplace == bool(answer.replaces)


@pytest.mark.parametrize(
    ("ignored", "left"),
    [
        ((), {"replicas", "labels.team", 'capacity["nvidia.com/gpu"]'}),
        (("replicas",), {"labels.team", 'capacity["nvidia.com/gpu"]'}),
        (("labels",), {"replicas", 'capacity["nvidia.com/gpu"]'}),
        (("labels.team",), {"replicas", 'capacity["nvidia.com/gpu"]'}),
        (('labels["team"]',), {"replicas", 'capacity["nvidia.com/gpu"]'}),
        (("labels[*]",), {"replicas", 'capacity["nvidia.com/gpu"]'}),
        (('["labels"].team',), {"replicas", 'capacity["nvidia.com/gpu"]'}),
        (('capacity["nvidia.com/gpu"]',), {"replicas", "labels.team"}),
        (("capacity.nvidia",), {"replicas", "labels.team", 'capacity["nvidia.com/gpu"]'}),
        (("label", "labels.tea", "replicas.x"), {"replicas", "labels.team", 'capacity["nvidia.com/gpu"]'}),
        (("*",), set()),
    ],
)
async def test_ignored_changes_are_no_difference(plugin: Plugin, ignored: tuple[str, ...], left: set[str]) -> None:
    news = but(
        replicas=9,
        labels={**INPUTS["labels"], "team": "ads"},
        capacity={**INPUTS["capacity"], "nvidia.com/gpu": "4"},
    )
    answer = await plugin.diff(POOL, INPUTS, news, ignored)
    assert set(answer.detailedDiff) == left
    none, some = provider_pb2.DiffResponse.DIFF_NONE, provider_pb2.DiffResponse.DIFF_SOME
    assert answer.changes == (some if left else none)


async def test_a_previewed_pool_says_what_it_means(plugin: Plugin) -> None:
    assert (await plugin.create(POOL, but(clusterIdentity=UNKNOWN_WIRE), preview=True)).id == ""
    assert [message.urn for message in plugin.told] == [POOL]
    assert "+5 nodes (0 → 5)" in plugin.messages()[0]
    assert "+40 nvidia.com/gpu" in plugin.messages()[0]


async def test_a_previewed_resize_says_what_it_means_even_when_the_pods_cannot_be_counted(plugin: Plugin) -> None:
    after = from_struct((await plugin.update(POOL, INPUTS, but(replicas=2), preview=True)).properties)
    assert after["replicas"] == 2
    assert len(plugin.told) == 2
    warning, meaning = plugin.told
    assert (warning.severity, meaning.severity) == (engine_pb2.WARNING, engine_pb2.INFO)
    assert "could not be counted" in warning.message
    assert "−3 nodes (5 → 2)" in meaning.message
    assert "−24 nvidia.com/gpu" in meaning.message


async def test_a_previewed_repair_names_the_drift(plugin: Plugin) -> None:
    olds = {**but(replicas=3), "drift": {"missing": "2: a-use1-3, a-use1-4"}}
    await plugin.update(POOL, olds, INPUTS, preview=True)
    assert plugin.messages()[-1] == "drift to repair: missing 2: a-use1-3, a-use1-4"


async def test_nodes_for_a_cluster_that_is_gone_say_what_to_do(plugin: Plugin) -> None:
    error = await fails(plugin.create(POOL, INPUTS))
    assert error.details() == (
        "pool a-use1: kubeconfig /nowhere/kubeconfig.yaml does not exist; "
        "`pulumi up --refresh` brings a cluster back that is down"
    )


async def test_pools_of_a_silent_cluster_wait_side_by_side_and_not_one_after_the_other(
    plugin: Plugin, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, unused_tcp_port: int
) -> None:
    # As 30 s and 5 s are to each other.
    monkeypatch.setattr("kumulus.provider.resources.node_pool.WORK_PATIENCE", 0.5)
    monkeypatch.setattr("kumulus.provider.connections._SILENCE_S", 0.1)
    file = written(tmp_path, f"http://127.0.0.1:{unused_tcp_port}")
    started = time.monotonic()
    refusals = await asyncio.gather(*(refusal(plugin.create(POOL, but(kubeconfig=file))) for _ in range(9)))
    # One after the other they would take 4.5 s.
    assert time.monotonic() - started < 4
    for details in refusals:
        assert "not reachable: connection refused; `pulumi up --refresh` brings" in details


# --- failure, progress, cancelling -----------------------------------------------------------------------------------


CALLS = {
    "Create": lambda stub: stub.Create(provider_pb2.CreateRequest(urn=PROBE)),
    "Read": lambda stub: stub.Read(provider_pb2.ReadRequest(urn=PROBE, id="id")),
    "Update": lambda stub: stub.Update(provider_pb2.UpdateRequest(urn=PROBE, id="id")),
    "Delete": lambda stub: stub.Delete(provider_pb2.DeleteRequest(urn=PROBE, id="id")),
}


@pytest.mark.parametrize("call", ["Create", "Update"])
async def test_a_partial_failure_records_what_is_there(call: str) -> None:
    failure = PartialFailure("3 of 5 nodes", "the-id", {"replicas": 3, "drift": {"missing": "2"}}, ["quota"])
    async with probing(raising(failure)) as plugin:
        error = await fails(CALLS[call](plugin.stub))
    assert (error.code(), error.details()) == (grpc.StatusCode.UNKNOWN, "3 of 5 nodes")
    metadata: Any = dict(error.trailing_metadata() or ())
    status = status_pb2.Status.FromString(metadata["grpc-status-details-bin"])
    assert (status.code, status.message) == (grpc.StatusCode.UNKNOWN.value[0], "3 of 5 nodes")
    detail = provider_pb2.ErrorResourceInitFailed()
    assert status.details[0].Unpack(detail)
    assert detail.id == "the-id"
    assert list(detail.reasons) == ["3 of 5 nodes", "quota"]
    assert from_struct(detail.properties) == {"replicas": 3, "drift": {"missing": "2"}}


@pytest.mark.parametrize("call", CALLS)
async def test_a_failure_that_was_foreseen_is_told_as_it_is(call: str) -> None:
    async with probing(raising(ProviderError("no disk space\n  last lines of the log of etcd:\n    …"))) as plugin:
        error = await fails(CALLS[call](plugin.stub))
    assert error.code() is grpc.StatusCode.UNKNOWN
    assert error.details() == "no disk space\n  last lines of the log of etcd:\n    …"


@pytest.mark.parametrize("call", CALLS)
async def test_an_unexpected_exception_becomes_one_line_that_names_the_place(
    call: str, capfd: pytest.CaptureFixture[str]
) -> None:
    async with probing(raising(RuntimeError("first line\nsecond line"))) as plugin:
        details = await refusal(CALLS[call](plugin.stub))
    assert details.startswith("kumulus plugin: unexpected RuntimeError: first line second line (")
    assert re.search(r"\(test_rpc\.py:[0-9]+\); please report this$", details)
    assert "\n" not in details
    # The details are for the engine's debug log.
    assert "Traceback" in capfd.readouterr().err


async def test_messages_reach_the_engine_in_their_order_and_before_the_operation_ends() -> None:
    async def act(op: Operation) -> Properties:
        op.report.status("nodes 1/2")
        op.report.status("nodes 2/2")
        op.report.status("done", last=True)
        op.report.info("a message")
        op.report.warn("a warning")
        return {}

    async with probing(act) as plugin:
        await CALLS["Create"](plugin.stub)
        told = [(message.message, message.severity, message.ephemeral) for message in plugin.told]
    info, warning = engine_pb2.INFO, engine_pb2.WARNING
    assert told == [
        ("nodes 1/2", info, True),
        ("done", info, True),
        ("a message", info, False),
        ("a warning", warning, False),
    ]
    assert {message.urn for message in plugin.told} == {PROBE}


async def test_an_engine_that_is_gone_neither_fails_the_operation_nor_makes_a_noise(
    unused_tcp_port: int, caplog: pytest.LogCaptureFixture
) -> None:
    async def act(op: Operation) -> Properties:
        op.report.info("to nobody")
        return {"a": 1}

    served = Servicer(PulumiEngine(f"127.0.0.1:{unused_tcp_port}"), {Probe.token: Probe(act)}, "/program")
    async with stub_of(served) as stub:
        answer = await CALLS["Create"](stub)
    assert from_struct(answer.properties) == {"a": 1}
    gc.collect()
    assert caplog.records == []


async def test_cancel_stops_what_is_under_way_and_what_comes_after() -> None:
    begun = asyncio.Event()

    async def act(op: Operation) -> Properties:
        begun.set()
        await asyncio.wait_for(op.stop.wait(), 10)
        raise PartialFailure("stopped on request", "id", {})

    async with probing(act) as plugin:
        call = asyncio.ensure_future(fails(CALLS["Create"](plugin.stub)))
        await begun.wait()
        await plugin.stub.Cancel(empty_pb2.Empty())
        assert (await call).details() == "stopped on request"
        assert (await fails(CALLS["Update"](plugin.stub))).details() == "stopped on request"


async def test_operations_run_side_by_side() -> None:
    meeting = asyncio.Barrier(9)

    async def act(op: Operation) -> Properties:
        await meeting.wait()
        return {}

    async with probing(act) as plugin:
        await asyncio.wait_for(asyncio.gather(*(CALLS["Create"](plugin.stub) for _ in range(9))), 10)


async def test_a_timeout_of_the_user_reaches_the_resource() -> None:
    seen: list[float] = []

    async def act(op: Operation) -> Properties:
        seen.append(op.timeout)
        return {}

    async with probing(act) as plugin:
        await plugin.stub.Create(provider_pb2.CreateRequest(urn=PROBE, timeout=90))
    assert seen == [90]


# --- anything at all -------------------------------------------------------------------------------------------------

scalars = (
    st.none()
    | st.booleans()
    | st.integers(-3, 200_000)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.sampled_from(["", "a", "8", "1Gi", "NoSchedule", "kwok", "v1.35.4", "running", "/nowhere", UNKNOWN_WIRE])
    | st.text(max_size=8)
)
names = st.sampled_from(["key", "value", "effect", "cpu", "nvidia.com/gpu", "architecture", "apiServerPort"])
anything = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(names | st.text(max_size=4), inner, max_size=4),
    max_leaves=6,
)
CLUSTER_KEYS = ["name", "runtime", "kubernetesVersion", "options", "home", "status", "identity", "components"]


def properties(keys: list[str]) -> st.SearchStrategy[dict[str, Any]]:
    return st.dictionaries(st.sampled_from(keys) | st.text(max_size=4), anything, max_size=6)


pool_inputs = st.builds(lambda changes: {**INPUTS, **changes}, properties([*INPUTS, "drift"])) | properties([*INPUTS])
cluster_inputs = st.builds(
    lambda changes: {"name": "demo", "runtime": "kwok", "kubernetesVersion": "v1.35.4", "home": "/nowhere", **changes},
    properties(CLUSTER_KEYS),
)


async def test_an_identity_that_is_no_text_is_previewed_without_a_defect() -> None:
    async with serving(resources()) as plugin:
        answer = await plugin.update(POOL, INPUTS, but(clusterIdentity=[]), old_inputs=struct(INPUTS), preview=True)
    assert "clusterIdentity" in answer.properties


@settings(max_examples=80, deadline=None)
@given(data=st.data())
async def test_no_request_however_malformed_meets_a_defect(data: st.DataObject) -> None:
    urn = data.draw(st.sampled_from([CLUSTER, POOL, LIFETIME, "", "urn:pulumi", "a::b::c", PROBE]))
    olds, news = (data.draw(pool_inputs if urn == POOL else cluster_inputs) for _ in range(2))
    if urn == POOL:
        for values in (olds, news):
            values["kubeconfig"] = data.draw(st.sampled_from(["/nowhere/kubeconfig.yaml", UNKNOWN_WIRE, 5, None]))
    old, new = struct(olds), struct(news)
    async with serving(resources()) as plugin:
        changed = {"id": "x", "olds": old, "news": new, "old_inputs": old}
        asked: list[tuple[str, dict[str, Any]]] = [
            ("Check", {"olds": old, "news": new}),
            ("Diff", {"id": "x", "olds": old, "news": new}),
            ("Create", {"properties": new, "preview": True}),
            ("Update", {**changed, "preview": True}),
            ("Read", {"id": "x", "properties": old, "inputs": new}),
        ]
        if urn != CLUSTER:  # which would be made, or removed, wherever it is said to be
            asked += [("Create", {"properties": new}), ("Update", changed)]
            asked += [("Delete", {"id": "x", "properties": old, "old_inputs": new})]
        calls = [
            getattr(plugin.stub, method)(getattr(provider_pb2, f"{method}Request")(urn=urn, **fields))
            for method, fields in asked
        ]
        for answer in await asyncio.gather(*calls, return_exceptions=True):
            if isinstance(answer, grpc.aio.AioRpcError):
                assert answer.code() is grpc.StatusCode.UNKNOWN, answer.details()
                assert answer.details()
            else:
                assert not isinstance(answer, BaseException)


@settings(max_examples=50, deadline=None)
@given(data=st.data())
async def test_what_check_accepts_it_accepts_again_unchanged(data: st.DataObject) -> None:
    urn = data.draw(st.sampled_from([CLUSTER, POOL]))
    news = struct(data.draw(pool_inputs if urn == POOL else cluster_inputs))
    async with serving(resources()) as plugin:
        first = await plugin.stub.Check(provider_pb2.CheckRequest(urn=urn, news=news))
        if not first.failures:
            second = await plugin.stub.Check(provider_pb2.CheckRequest(urn=urn, news=first.inputs, olds=first.inputs))
            assert not second.failures
            assert second.inputs == first.inputs


# --- as a process ----------------------------------------------------------------------------------------------------


async def test_the_plugin_as_a_process_serves_until_it_is_interrupted(tmp_path: Path) -> None:
    process = await asyncio.create_subprocess_exec(
        str(ROOT / "src" / "kumulus" / "provider" / "pulumi-resource-kumulus"),
        cwd=tmp_path,
        env={**os.environ, "KUMULUS_PYTHON": sys.executable},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        assert process.stdout is not None
        port = int(await asyncio.wait_for(process.stdout.readline(), 60))
        async with grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel:
            stub = provider_pb2_grpc.ResourceProviderStub(channel)
            assert (await stub.GetPluginInfo(empty_pb2.Empty())).version == VERSION
            assert json.loads((await stub.GetSchema(provider_pb2.GetSchemaRequest())).schema)["version"] == VERSION
            checked = await stub.Check(provider_pb2.CheckRequest(urn=CLUSTER, news=struct({"name": "demo"})))
            assert not checked.failures
            asked = time.monotonic()
            process.send_signal(signal.SIGINT)
            out, err = await asyncio.wait_for(process.communicate(), 60)
        assert time.monotonic() - asked < 20
        assert (process.returncode, out, err) == (0, b"", b"")
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


async def test_the_plugin_without_its_environment_says_how_to_get_it(tmp_path: Path) -> None:
    process = await asyncio.create_subprocess_exec(
        str(ROOT / "src" / "kumulus" / "provider" / "pulumi-resource-kumulus"),
        env={**os.environ, "KUMULUS_PYTHON": str(tmp_path / "python")},
        stderr=asyncio.subprocess.PIPE,
    )
    _, err = await asyncio.wait_for(process.communicate(), 60)
    assert process.returncode == 1
    assert f"{tmp_path}/python is missing" in err.decode()

"""What runs and is slow is waited for; what runs and does not do its work any more is restarted.

And what a fault silences stays silent: its lease would be renewed within seconds here.
"""

import asyncio
import random
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from kumulus import toolchain
from kumulus.extras.journal import outages
from kumulus.host import processes
from kumulus.kube import Client, load_kubeconfig
from kumulus.nodes.faults import leases
from kumulus.runtimes.kwok import hung
from kumulus.runtimes.kwok.layout import Layout
from tests.integration.conftest import JOBS, LEASES, NODES, PODS, TOOLS, Plane, Pools, plane_at
from tests.support.api import Refused
from tests.support.faultproxy import FaultProxy, Harm
from tests.support.processes import await_that, stopped
from tests.support.said import Said

pytestmark = pytest.mark.integration

# A lease is renewed every 1.25 s, and runs out after five.
FACTOR = 0.025
MANY = 12
POLICIES = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies"
BINDINGS = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings"
STOPPED = {"metadata": {"name": "stopped"}}


@pytest.fixture(scope="module")
def quick(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Plane]:
    """A control plane with nodes whose leases run out soon."""
    for tool in TOOLS:
        toolchain.find(tool)
    with plane_at(tmp_path_factory.mktemp("home"), heartbeatFactor=FACTOR) as made:
        populate(made)
        yield made


def populate(plane: Plane) -> None:
    resources = {"cpu": "1", "memory": "1Gi", "pods": "10"}
    for number in range(MANY):
        metadata = {"name": f"n-{number}", "labels": {"kubernetes.io/hostname": f"n-{number}"}}
        plane.api.create(NODES, {"metadata": metadata, "status": {"capacity": resources, "allocatable": resources}})
    plane.api.until(LEASES, lambda found: len(found) == MANY)


def renewed(plane: Plane) -> dict[str, str]:
    return {lease["metadata"]["name"]: lease["spec"].get("renewTime", "") for lease in plane.api.list(LEASES)}


def until_run_out(plane: Plane) -> None:
    """Wait until every lease has run out, and until nothing but kwok-controller can be the reason."""
    due = hung._RENEWED_AFTER * 5 + hung._SECOND_LOOK_S
    give_up = time.monotonic() + 120
    while True:
        assert time.monotonic() < give_up
        ages = [datetime.now(UTC) - datetime.fromisoformat(each) for each in renewed(plane).values()]
        running = plane.processes()
        old = processes.youngest(running[name][0] for name in ("etcd", "kube-apiserver", "kwok-controller"))
        if min(ages).total_seconds() > 6 and old > due + 1:
            return
        time.sleep(0.5)


@contextmanager
def renewals_refused(plane: Plane) -> Iterator[None]:
    """The API server refuses every renewal: no lease is renewed, and kwok-controller lives on."""
    rule = {"apiGroups": ["coordination.k8s.io"], "apiVersions": ["v1"], "resources": ["leases"]}
    spec = {
        "matchConstraints": {
            "resourceRules": [{**rule, "operations": ["UPDATE"]}],
            "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "kube-node-lease"}},
        },
        "validations": [{"expression": "false"}],
    }
    binding = {"policyName": "stopped", "validationActions": ["Deny"]}
    plane.api.create(POLICIES, {**STOPPED, "spec": spec})
    plane.api.create(BINDINGS, {**STOPPED, "spec": binding})
    try:
        yield
    finally:
        plane.api.delete(f"{BINDINGS}/stopped")
        plane.api.delete(f"{POLICIES}/stopped")


def test_a_kwok_controller_that_renews_no_lease_is_seen_and_restarted(
    quick: Plane, monkeypatch: pytest.MonkeyPatch
) -> None:
    # One that is only late, as after a machine has slept, is not what this one is: it need not be looked at so long.
    monkeypatch.setattr(hung, "_SECOND_LOOK_S", 3.0)
    assert asyncio.run(hung.stuck_since(Layout(quick.directory), quick.processes())) is None
    with renewals_refused(quick):
        until_run_out(quick)
        [stuck] = quick.processes()[hung.CONTROLLER]
        found = asyncio.run(quick.read())
        assert found is not None
        assert (found.health, found.components[hung.CONTROLLER]) == ("degraded", "unhealthy")
        said = Said()
        asyncio.run(quick.runtime.repair(quick.wanted, quick.identity, said))
        restarted = f"{hung.CONTROLLER} of cluster test runs (pid {stuck}) but has renewed no node's lease since "
        assert any(restarted in message for message in said.messages)
        assert quick.processes()[hung.CONTROLLER] != [stuck]
    # The new one has leases of its own, and renews them once it may.
    before = renewed(quick)
    assert len(before) == MANY
    await_that(lambda: not before.items() & renewed(quick).items(), 120, "all leases are renewed", 0.5)
    again = asyncio.run(quick.read())
    assert again is not None
    assert again.health == "running"


async def test_a_silenced_nodes_lease_is_renewed_no_more_while_its_neighbours_is(quick: Plane) -> None:
    async with Client(load_kubeconfig(quick.observed.kubeconfig)) as client:
        await leases.take(client, "n-0", await leases.look(client))
        try:
            before = renewed(quick)["n-0"]
            # The first may come at once: from then on twice the time in which each is renewed.
            for _ in range(3):
                until_renewed(quick, "n-1")
            assert renewed(quick)["n-0"] == before
        finally:
            await leases.give_back(client, "n-0", await leases.look(client))
    until_renewed(quick, "n-0")


def until_renewed(plane: Plane, node: str) -> None:
    """Wait until a node's lease is renewed once more."""
    before = renewed(plane)[node]
    plane.api.until(LEASES, lambda found: found[node]["spec"]["renewTime"] != before)


def test_an_api_server_that_is_slow_is_waited_for_and_not_repaired(quick: Plane, tmp_path: Path) -> None:
    layout = Layout(quick.directory)
    direct = layout.kubeconfig.read_bytes()
    with FaultProxy(quick.directory) as proxy:
        through = proxy.kubeconfig(tmp_path / "kubeconfig.yaml").read_bytes()
        proxy.harm(Harm(("slow",), delay=4.5, numbers=Latest()))
        layout.kubeconfig.write_bytes(through)
        try:
            began = time.monotonic()
            found = asyncio.run(quick.read())
        finally:
            layout.kubeconfig.write_bytes(direct)
    assert proxy.done["slow"] >= 2
    assert time.monotonic() - began > 4.5
    assert found is not None
    assert found.health == "running", found.components


def test_an_api_server_whose_etcd_was_stopped_by_a_signal_is_not_waited_for(quick: Plane) -> None:
    [etcd] = quick.processes()["etcd"]
    layout = Layout(quick.directory)
    assert hung.patience(layout, quick.processes()) == 30
    with stopped(etcd):
        assert hung.patience(layout, quick.processes()) == 2
    assert hung.patience(layout, {"kube-apiserver": quick.processes()["kube-apiserver"]}) == 2


class Latest(random.Random):
    """Chance that always chooses the longest delay."""

    def uniform(self, a: float, b: float) -> float:
        return max(a, b)


def job(name: str, seconds: int) -> dict[str, Any]:
    container = {"name": "main", "image": "none", "resources": {"requests": {"cpu": "1"}}}
    toleration = {"operator": "Exists"}
    template = {
        "metadata": {"annotations": {"pod-complete.stage.kwok.x-k8s.io/delay": f"{seconds}s"}},
        "spec": {"restartPolicy": "Never", "containers": [container], "tolerations": [toleration]},
    }
    metadata = {"name": name, "namespace": "default"}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": {"template": template}}


async def test_a_control_plane_that_is_killed_comes_back_with_its_nodes_and_its_pods_go_on(
    plane: Plane, pools: Pools
) -> None:
    await pools.create(pools.inputs(3, taints=[]))
    kubeconfig = Path(plane.observed.kubeconfig)
    assert outages.can_be_killed(kubeconfig)
    before, nodes = plane.processes(), {each["name"]: each["uid"] for each in plane.api.metadata(NODES)}
    plane.api.create(JOBS, job("amid", 8))
    plane.api.until(PODS, lambda found: any(each["status"].get("phase") == "Running" for each in found.values()))
    assert set(await outages.kill(kubeconfig)) == before.keys()
    assert plane.processes() == {}, "something runs still"
    with pytest.raises((OSError, Refused)):
        plane.api.list(NODES)
    assert await outages.bring_back(kubeconfig)
    assert plane.processes().keys() == before.keys()
    assert {each["name"]: each["uid"] for each in plane.api.metadata(NODES)} == nodes
    plane.api.until(JOBS, lambda found: any(each["status"].get("succeeded") == 1 for each in found.values()))
    assert not await outages.bring_back(kubeconfig), "there was nothing to start"


def test_what_is_no_control_plane_of_this_machine_cannot_be_killed(tmp_path: Path) -> None:
    assert not outages.can_be_killed(tmp_path / "kubeconfig.yaml")

"""The kwok runtime on this machine: what it opens, what it brings back, what it refuses, what it leaves behind."""

import asyncio
import dataclasses
import fcntl
import json
import os
import shutil
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack, suppress
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

import psutil
import pytest

from kumulus.host import machine
from kumulus.host.ports import in_use
from kumulus.nodes.errors import ProviderError
from kumulus.nodes.faults.pods import RESUMED
from kumulus.runtimes.base import RecordedControlPlane
from kumulus.runtimes.kwok import hung, priority
from kumulus.runtimes.kwok.layout import Layout
from kumulus.runtimes.kwok.runtime import KwokRuntime
from tests.integration.conftest import JOBS, PODS, Plane, Pools, job, pod, ready, wanted
from tests.support import listeners, processes
from tests.support.api import Object
from tests.support.processes import occupied
from tests.support.project import ROOT
from tests.support.said import Said

pytestmark = pytest.mark.integration
Create = Callable[[str, Object], Object]
COMPONENTS = {"etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kwok-controller"}


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def files(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file()]


# --- what runs -------------------------------------------------------------------------------------------------------


async def test_a_control_plane_is_five_processes_that_answer(plane: Plane) -> None:
    assert set(plane.processes()) == COMPONENTS
    found = await plane.read()
    assert found == plane.observed
    assert found is not None
    assert found.components == dict.fromkeys(COMPONENTS, "running")
    assert found.health == "running"
    assert found.identity == plane.api.get("/api/v1/namespaces/kube-system")["metadata"]["uid"]
    assert found.server == plane.api.server
    assert found.configuration == plane.runtime.configuration(plane.wanted)


def test_every_component_collects_garbage_less_often(plane: Plane) -> None:
    for name, pids in plane.processes().items():
        variables = psutil.Process(pids[0]).environ()
        if name == "kube-apiserver":
            assert variables.get("GOGC") == "400"
            assert int(variables["GOMEMLIMIT"]) == machine.memory_bytes() // 5
        else:
            assert (variables.get("GOGC"), variables.get("GOMEMLIMIT")) == ("200", None), name


def patient(plane: Plane) -> set[str]:
    """The components that let others go first."""
    found = set()
    for name, (pid, *_) in plane.processes().items():
        autogroup = Path(f"/proc/{pid}/autogroup")
        if psutil.Process(pid).nice() == 5 and (not autogroup.exists() or autogroup.read_text().endswith("nice 5\n")):
            found.add(name)
    return found


def test_controllers_let_the_api_server_etcd_and_the_scheduler_go_first(plane: Plane) -> None:
    assert patient(plane) == {"kube-controller-manager", "kwok-controller"}


def niceness(plane: Plane) -> dict[str, str]:
    """By component that others may be let go before: the niceness of its session."""
    standing = {"kube-controller-manager", "kwok-controller", "kube-scheduler"}
    return {
        name: Path(f"/proc/{pid}/autogroup").read_text().split()[-1]
        for name, (pid, *_) in plane.processes().items()
        if name in standing
    }


USUAL = {"kube-controller-manager": "5", "kwok-controller": "5", "kube-scheduler": "0"}
BACK = dict.fromkeys(USUAL, "19")
autogroups = pytest.mark.skipif(
    not Path("/proc/self/autogroup").exists(), reason="this kernel has no groups of sessions to prefer"
)


async def until_niceness(plane: Plane, wanted: dict[str, str]) -> None:
    for _ in range(400):
        if niceness(plane) == wanted:
            return
        await asyncio.sleep(0.05)
    assert niceness(plane) == wanted


@autogroups
async def test_controllers_stand_back_until_the_last_of_many_requests_is_answered(plane: Plane) -> None:
    cpu = priority.CpuYield()
    with cpu.yielding(plane.observed.kubeconfig):
        with cpu.yielding(plane.observed.kubeconfig):
            assert niceness(plane) == BACK
        assert niceness(plane) == BACK
    await until_niceness(plane, USUAL)


@autogroups
async def test_controllers_stand_back_for_no_longer_than_a_lease_bears(
    plane: Plane, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(priority, "LONGEST_S", 3.0)
    cpu = priority.CpuYield()
    with cpu.yielding(plane.observed.kubeconfig):
        assert niceness(plane) == BACK
        await until_niceness(plane, USUAL)
    # What follows at once has next to nothing left of that time.
    again = time.monotonic()
    with cpu.yielding(plane.observed.kubeconfig):
        await until_niceness(plane, USUAL)
        assert time.monotonic() - again < 2
    await asyncio.sleep(3)
    with cpu.yielding(plane.observed.kubeconfig):
        await asyncio.sleep(2)
        assert niceness(plane) == BACK


CLEARED = """
import asyncio, sys
from kumulus.runtimes.kwok.priority import CpuYield

async def main():
    with CpuYield().yielding(sys.argv[1]):
        print("cleared", flush=True)
        await asyncio.Event().wait()

asyncio.run(main())
"""


@autogroups
async def test_controllers_go_on_when_the_plugin_was_killed_amid_its_requests(plane: Plane) -> None:
    killed = await asyncio.create_subprocess_exec(
        sys.executable, "-c", CLEARED, plane.observed.kubeconfig, cwd=ROOT, stdout=asyncio.subprocess.PIPE
    )
    assert killed.stdout is not None
    assert await killed.stdout.readline() == b"cleared\n"
    assert niceness(plane) == BACK
    killed.kill()
    await killed.wait()
    await until_niceness(plane, USUAL)


def test_a_cluster_of_another_runtime_has_no_controllers_to_ask(tmp_path: Path) -> None:
    with priority.CpuYield().yielding(str(tmp_path / "kubeconfig.yaml")):
        pass


def test_keys_and_kubeconfigs_are_for_their_owner_only(plane: Plane) -> None:
    assert mode(plane.directory) == 0o700
    ours = [path for path in files(plane.directory) if path.parent.name != "bin"]
    secret = [path for path in ours if path.suffix == ".key" or b"PRIVATE KEY" in path.read_bytes()]
    assert plane.directory / "pki" / "admin.key" in secret
    for path in [*secret, plane.directory / "kubeconfig.yaml"]:
        assert mode(path) == 0o600, path


async def test_another_cluster_under_the_same_directory_is_not_ours(plane: Plane) -> None:
    recorded = dataclasses.replace(RecordedControlPlane.of(plane.wanted, plane.observed), identity="another")
    assert await plane.runtime.read(recorded, Said()) is None


# --- stages ----------------------------------------------------------------------------------------------------------


def moment(text: str) -> datetime:
    return datetime.strptime(text, "%Y-%m-%dT%H:%M:%SZ").replace(tzinfo=UTC)


async def phases(plane: Plane, pool: str, phase: str, count: int = 1) -> dict[str, Object]:
    """Wait until that many pods of a test are in a phase."""

    def reached(found: object) -> bool:
        assert isinstance(found, dict)
        return sum(1 for p in found.values() if p["status"].get("phase") == phase) >= count

    return dict(plane.api.until(PODS, reached, labelSelector=f"test={pool}"))


def has_succeeded(name: str, jobs: Mapping[str, Object]) -> bool:
    return bool(jobs[name]["status"].get("succeeded") == 1)


async def test_a_jobs_pod_completes_at_once_and_a_bare_pod_runs(plane: Plane, pools: Pools, workloads: Create) -> None:
    inputs = pools.inputs(2)
    await pools.create(inputs)
    pool = inputs["name"]
    workloads(PODS, pod(pool, pool))
    await phases(plane, pool, "Running")
    workloads(JOBS, job(f"{pool}-none", pool, None))
    workloads(JOBS, job(f"{pool}-odd", pool, "soon"))
    done = await phases(plane, pool, "Succeeded", 2)
    bare = done.pop(pool)
    assert bare["status"]["phase"] == "Running"
    assert {c["type"]: c["status"] for c in bare["status"]["conditions"]}["Ready"] == "True"
    assert bare["status"]["podIP"]
    for found in done.values():
        state = found["status"]["containerStatuses"][0]["state"]["terminated"]
        assert (state["exitCode"], state["reason"]) == (0, "Completed")
        assert state["startedAt"] == found["status"]["startTime"]
        assert {c["type"]: c["status"] for c in found["status"]["conditions"]}["Ready"] == "False"
    for name in ("none", "odd"):
        plane.api.until(JOBS, partial(has_succeeded, f"{pool}-{name}"))
    assert all(map(ready, pools.nodes(inputs).values()))


async def test_a_jobs_delay_counts_from_the_pods_start_whatever_happens_meanwhile(
    plane: Plane, pools: Pools, workloads: Create
) -> None:
    delay, changed, count, inputs = 24, 16, 12, pools.inputs(4)
    await pools.create(inputs)
    pool = inputs["name"]
    workloads(JOBS, job(pool, pool, f"{delay}s", parallelism=count))
    running = await phases(plane, pool, "Running", count)
    started = {name: moment(found["status"]["startTime"]) for name, found in running.items()}
    first = min(started.values())
    processes.kill(plane.processes()["kwok-controller"])
    await plane.repair()
    restarted = (datetime.now(UTC) - first).total_seconds()
    # Counted again from this change the delay would end 16 seconds too late.
    await asyncio.sleep(max(0.0, changed - restarted))
    for name in sorted(started)[:3]:
        plane.api.merge(f"{PODS}/{name}", {"metadata": {"labels": {"changed": "yes"}}})
    for name, done in (await phases(plane, pool, "Succeeded", count)).items():
        # KWOK passes over a pod now and then when it takes over its node, so each is shown to it.
        assert RESUMED in done["metadata"]["annotations"]
        ended = moment(done["status"]["containerStatuses"][0]["state"]["terminated"]["finishedAt"])
        assert delay <= (ended - started[name]).total_seconds() <= max(delay, restarted) + changed - 2


async def test_only_pods_of_kubernetes_own_jobs_and_those_with_a_delay_end_by_themselves(
    plane: Plane, pools: Pools, workloads: Create
) -> None:
    inputs = pools.inputs(1)
    await pools.create(inputs)
    name = inputs["name"]
    owner = {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "name": "a", "uid": "none"}
    for kind, delay in (("runs", {}), ("ends", {"pod-complete.stage.kwok.x-k8s.io/delay": "1s"})):
        body = pod(f"{name}-{kind}", name)
        workloads(PODS, {**body, "metadata": {**body["metadata"], "annotations": delay, "ownerReferences": [owner]}})
    await phases(plane, name, "Running", 2)
    # KWOK gets to both in the order in which they are due: at once, and after a second.
    plane.api.until(PODS, lambda found: found[f"{name}-ends"]["status"]["phase"] == "Succeeded")
    assert plane.api.get(f"{PODS}/{name}-runs")["status"]["phase"] == "Running"


# --- brought back ----------------------------------------------------------------------------------------------------


async def works(plane: Plane, pools: Pools, workloads: Create, pool: str) -> None:
    """The nodes are as before, and a pod is bound, runs and completes: every component does its part."""
    inputs = pools.made[pool]
    assert await pools.drift(inputs) == {}
    assert all(map(ready, pools.nodes(inputs).values()))
    workloads(JOBS, job(pool, pool, None))
    await phases(plane, pool, "Succeeded")


@pytest.mark.parametrize("victim", ["etcd", "kube-apiserver", "kwok-controller", "all"])
async def test_what_died_is_named_and_brought_back_with_all_nodes(
    plane: Plane, pools: Pools, workloads: Create, victim: str
) -> None:
    inputs = pools.inputs(5)
    await pools.create(inputs)
    uids, alive = pools.uids(inputs), plane.processes()
    victims = COMPONENTS if victim == "all" else {victim}
    processes.kill(pid for name in victims for pid in alive[name])

    found = await plane.read()
    assert found is not None
    assert found.identity == plane.identity
    assert {name for name, state in found.components.items() if state == "stopped"} >= victims
    assert found.components["kube-scheduler"] == ("stopped" if victim == "all" else "running")
    assert found.health == ("stopped" if victim == "all" else "degraded")

    repaired = await plane.repair()
    assert (repaired.health, repaired.identity) == ("running", plane.identity)
    assert await plane.read() == plane.observed
    assert pools.uids(inputs) == uids
    survivors = {name: pids for name, pids in plane.processes().items() if name not in victims}
    if victim == "etcd":
        # It would look for etcd with pauses of up to two minutes.
        assert survivors["kube-apiserver"] != alive["kube-apiserver"]
    if victim == "kwok-controller":
        assert survivors == {name: pids for name, pids in alive.items() if name not in victims}
    assert patient(plane) == {"kube-controller-manager", "kwok-controller"}
    await works(plane, pools, workloads, inputs["name"])


async def test_after_a_reboot_pid_files_that_name_strangers_are_neither_believed_nor_their_processes_killed(
    plane: Plane, pools: Pools, workloads: Create
) -> None:
    inputs = pools.inputs(2)
    await pools.create(inputs)
    stranger = await asyncio.create_subprocess_exec("sleep", "600")
    try:
        processes.kill(pid for pids in plane.processes().values() for pid in pids)
        for name in COMPONENTS:
            (plane.directory / "pids" / f"{name}.pid").write_text(str(stranger.pid))
        found = await plane.read()
        assert found is not None
        assert found.components == dict.fromkeys(COMPONENTS, "stopped")
        assert (await plane.repair()).health == "running"
        assert stranger.returncode is None
        await works(plane, pools, workloads, inputs["name"])
    finally:
        stranger.kill()
        await stranger.wait()


def heard(plane: Plane) -> set[tuple[str, int]]:
    """Where the control plane's processes listen."""
    found = listeners.of(pid for pids in plane.processes().values() for pid in pids)
    return {(each.address, each.port) for each in found}


async def test_after_a_reboot_ports_that_others_have_taken_are_left_to_them(
    plane: Plane, pools: Pools, workloads: Create
) -> None:
    inputs = pools.inputs(2)
    await pools.create(inputs)
    uids, before = pools.uids(inputs), Layout(plane.directory).ports()
    processes.kill(pid for pids in plane.processes().values() for pid in pids)
    said = Said()
    with ExitStack() as theirs:
        for component in before.keys() - {"kube-apiserver"}:
            theirs.enter_context(occupied(before[component]))
        assert (await plane.runtime.repair(plane.wanted, plane.identity, said)).health == "running"
        after = Layout(plane.directory).ports()
        assert {name for name in before if before[name] == after[name]} == {"kube-apiserver"}
        # On a busy machine a controller listens a moment after its start.
        processes.await_that(lambda: heard(plane) == {("127.0.0.1", port) for port in after.values()}, 20, "all listen")
        assert await plane.read() == plane.observed
        assert pools.uids(inputs) == uids
        await works(plane, pools, workloads, inputs["name"])
    told = "\n".join(said.messages)
    for name in before.keys() - {"kube-apiserver"}:
        assert f"{name}: port {before[name]} is in use by pid {os.getpid()} (" in told
        assert f"; it has port {after[name]} now" in told
    alive = plane.processes()
    assert (await plane.repair()).health == "running"
    assert (Layout(plane.directory).ports(), plane.processes()) == (after, alive)


async def test_a_cluster_whose_tools_were_removed_and_fetched_again_elsewhere_starts(
    plane: Plane, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    processes.kill(pid for pids in plane.processes().values() for pid in pids)
    programs = {file.name: file.readlink() for file in (plane.directory / "bin").iterdir()}
    for name in programs:
        (plane.directory / "bin" / name).unlink()
        (plane.directory / "bin" / name).symlink_to(tmp_path / "removed" / name)
    with monkeypatch.context() as without:
        without.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
        without.setenv("PATH", "/nonexistent")
        said = r"^etcd of cluster test cannot start, as \S+/removed/etcd is gone: etcd v\S+ is missing\n  To get it:"
        with pytest.raises(ProviderError, match=said):
            await plane.repair()
    assert (await plane.repair()).health == "running"
    assert {file.name: file.readlink() for file in (plane.directory / "bin").iterdir()} == programs


async def test_the_api_servers_port_that_somebody_took_meanwhile_is_named_with_its_holder(plane: Plane) -> None:
    """It is in kubeconfigs that people have."""
    port = Layout(plane.directory).ports()["kube-apiserver"]
    processes.kill(plane.processes()["kube-apiserver"])
    with occupied(port):
        with pytest.raises(ProviderError) as raised:
            await plane.repair()
        assert f"kube-apiserver of cluster test cannot start: its port {port} is in use by pid {os.getpid()} (" in str(
            raised.value
        )
    assert (await plane.repair()).health == "running"


@pytest.mark.parametrize("victims", [["kube-apiserver"], ["etcd"]], ids=" ".join)
async def test_what_runs_but_does_not_answer_is_ended_and_started_anew(
    plane: Plane, pools: Pools, workloads: Create, monkeypatch: pytest.MonkeyPatch, victims: list[str]
) -> None:
    monkeypatch.setattr(hung, "_SILENCE_S", 2.5)
    monkeypatch.setattr(hung, "_ETCD_SILENCE_S", 1.0)
    inputs = pools.inputs(3)
    await pools.create(inputs)
    uids, before = pools.uids(inputs), plane.processes()
    for name in victims:
        os.kill(before[name][0], signal.SIGSTOP)
    try:
        found = await plane.read()
        assert found is not None
        assert (found.components["kube-apiserver"], found.health) == ("unhealthy", "degraded")
        said = Said()
        repaired = await plane.runtime.repair(plane.wanted, plane.identity, said)
    finally:
        for name in victims:
            with suppress(ProcessLookupError):
                os.kill(before[name][0], signal.SIGCONT)
    assert (repaired.health, repaired.identity) == ("running", plane.identity)
    for name in victims:
        assert any(
            f"{name} of cluster test runs (pid {before[name][0]}) but has not" in message for message in said.messages
        )
        assert plane.processes()[name] != before[name]
    assert {name: len(pids) for name, pids in plane.processes().items()} == dict.fromkeys(COMPONENTS, 1)
    assert pools.uids(inputs) == uids
    await works(plane, pools, workloads, inputs["name"])


async def test_two_repairs_at_once_start_each_component_once(plane: Plane) -> None:
    dead = {"kwok-controller", "kube-scheduler"}
    before = plane.processes()
    processes.kill(pid for name in dead for pid in before[name])
    first, second = await asyncio.gather(plane.repair(), plane.repair())
    assert first == second == plane.observed
    after = plane.processes()
    assert {name: len(pids) for name, pids in after.items()} == dict.fromkeys(COMPONENTS, 1)
    assert {name for name in COMPONENTS if before[name] != after[name]} == dead


async def test_a_repair_waits_for_its_turn_without_stopping_the_plugin(plane: Plane) -> None:
    lock = os.open(Path(plane.wanted.home) / "clusters" / ".test.lock", os.O_RDWR)
    # A lock that others can share keeps out only those who want it for themselves alone, as every run has to.
    fcntl.flock(lock, fcntl.LOCK_SH)
    try:
        repair = asyncio.ensure_future(plane.repair())
        assert not (await asyncio.wait({repair}, timeout=1.5))[0]
    finally:
        os.close(lock)
    assert await repair == plane.observed


async def test_repairing_what_is_well_changes_nothing(plane: Plane) -> None:
    before = plane.processes()
    assert await plane.repair() == plane.observed
    assert plane.processes() == before


async def test_changed_stages_are_applied_to_a_running_cluster(plane: Plane) -> None:
    layout, before = Layout(plane.directory), plane.processes()
    # As an interrupted change may leave it: with other stages, and without a note of each component's settings.
    layout.write_note({"owner": layout.note()["owner"], "configuration": "another"})
    layout.write_documents([d for d in layout.documents() if d.get("kind") != "Stage"])
    found = await plane.read()
    assert found is not None
    assert found.configuration == "another"
    repaired = await plane.repair()
    assert repaired.configuration == plane.runtime.configuration(plane.wanted)
    assert any(d.get("kind") == "Stage" for d in layout.documents())
    after = plane.processes()
    assert {name for name in COMPONENTS if before[name] != after[name]} == {"kwok-controller"}


async def test_a_truncated_kwok_yaml_and_note_are_brought_back_with_everything_in_the_cluster(plane: Plane) -> None:
    layout, before = Layout(plane.directory), plane.processes()
    assert await plane.read() is not None
    whole = layout.kwok_file.read_text()
    layout.kwok_file.write_text(whole[: len(whole) // 2])
    layout.note_file.write_text('{"owner": ')
    found = await plane.read()
    assert found is not None
    assert (found.health, found.components["kwok.yaml"], found.configuration) == ("degraded", "damaged", "")
    repaired = await plane.repair()
    assert repaired == plane.observed
    assert layout.note()["owner"] == plane.wanted.owner
    after = plane.processes()
    assert {name for name in COMPONENTS if before[name] != after[name]} == {"kwok-controller"}


# --- refused ---------------------------------------------------------------------------------------------------------


def test_a_cluster_has_no_files_but_those_that_its_removal_knows(plane: Plane) -> None:
    assert Layout(plane.directory).foreign() == []


async def test_another_stacks_cluster_is_refused_and_left_alone(plane: Plane) -> None:
    runtime, said = KwokRuntime(), Said()
    asked = wanted(Path(plane.wanted.home), owner="somebody else")
    with pytest.raises(ProviderError) as raised:
        await runtime.create(asked, said, asyncio.Event())
    assert "a cluster named 'test' that this stack did not make" in str(raised.value)
    assert "(made by the tests)" in str(raised.value)
    await runtime.delete(RecordedControlPlane.of(asked, plane.observed), said)
    assert said.messages == [f"{plane.directory} now belongs to the tests; it is left alone"]
    assert await plane.read() == plane.observed


async def test_a_chosen_port_in_use_is_named_with_its_holder(tmp_path: Path) -> None:
    with occupied() as port:
        asked = wanted(tmp_path / "home", apiServerPort=port)
        with pytest.raises(ProviderError) as raised:
            await KwokRuntime().create(asked, Said(), asyncio.Event())
    assert f"port {port} (kwok.apiServerPort) is in use by pid {os.getpid()} (" in str(raised.value)
    assert "choose another port" in str(raised.value)
    assert files(tmp_path) == []


async def test_a_component_that_cannot_start_gives_its_last_words_and_leaves_nothing(tmp_path: Path) -> None:
    asked = wanted(tmp_path / "home", featureGates={"NoSuchGate": True})
    began = time.monotonic()
    with pytest.raises(ProviderError) as raised:
        await KwokRuntime().create(asked, Said(), asyncio.Event())
    # One that runs and does not answer would be waited for 90 s.
    assert time.monotonic() - began < 80, "it is not waited for what has ended"
    message = str(raised.value)
    assert "kube-apiserver of cluster test ended" in message
    assert "last lines of the log of kube-apiserver:" in message
    assert "unrecognized feature gate: NoSuchGate" in message
    assert processes.components(tmp_path / "home") == {}
    assert files(tmp_path) == []


async def test_a_home_that_cannot_be_written_says_so(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ProviderError, match="KUMULUS_HOME can name another directory"):
        await KwokRuntime().create(wanted(tmp_path / "file" / "home"), Said(), asyncio.Event())


# --- made, cancelled, deleted ----------------------------------------------------------------------------------------


async def test_a_cancelled_create_leaves_nothing(tmp_path: Path) -> None:
    home = tmp_path / "home"
    task = asyncio.ensure_future(KwokRuntime().create(wanted(home), Said(), asyncio.Event()))
    await asyncio.to_thread(processes.await_that, lambda: bool(processes.components(home)), 30, "a component runs")
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert processes.components(home) == {}
    assert files(tmp_path) == []


async def test_controllers_that_gave_up_waiting_for_a_slow_api_server_are_started_again(tmp_path: Path) -> None:
    """The controller manager ends itself when the API server is not healthy ten seconds after its own start."""
    asked, runtime = wanted(tmp_path / "home", "slow"), KwokRuntime()
    seen: list[set[str]] = []

    def hold_back() -> None:
        home, give_up = Path(asked.home), time.monotonic() + 60
        while time.monotonic() < give_up and len(found := processes.components(home)) < len(COMPONENTS):
            time.sleep(0.01)
        (server,) = found["slow/kube-apiserver"]
        os.kill(server, signal.SIGSTOP)
        try:
            while time.monotonic() < give_up and "slow/kube-controller-manager" in processes.components(home):
                time.sleep(0.1)
            seen.append(set(processes.components(home)))
        finally:
            os.kill(server, signal.SIGCONT)

    holding = asyncio.create_task(asyncio.to_thread(hold_back))
    said = Said()
    observed = await runtime.create(asked, said, asyncio.Event())
    try:
        await holding
        assert seen == [{f"slow/{name}" for name in COMPONENTS - {"kube-controller-manager"}}]
        assert observed.components == dict.fromkeys(COMPONENTS, "running")
        assert "starting kube-controller-manager again: ended, as the API server was slow to answer" in said.statuses
    finally:
        await runtime.delete(RecordedControlPlane.of(asked, observed), Said())


async def test_a_create_that_was_cut_off_after_kwoks_kinds_were_defined_goes_on(tmp_path: Path) -> None:
    with_stages, runtime = wanted(tmp_path / "home", "cut", stageObjects=True), KwokRuntime()
    observed = await runtime.create(with_stages, Said(), asyncio.Event())
    try:
        layout = Layout.of(with_stages.home, with_stages.name)
        settings = layout.settings()
        layout.write_settings({**settings, "options": {**settings["options"], "enableCRDs": ["Stage"]}})
        processes.kill(processes.components(Path(with_stages.home))["cut/kwok-controller"])
        repaired = await runtime.repair(with_stages, observed.identity, Said())
        assert set(repaired.components.values()) == {"running"}
        assert "enableCRDs" not in layout.settings()["options"]
    finally:
        await runtime.delete(RecordedControlPlane.of(with_stages, observed), Said())


def leftover(home: Path, name: str, owner: str) -> subprocess.Popen[bytes]:
    """What a create that was killed leaves: a note, half of the files, and a component that runs."""
    directory = home / "clusters" / name
    (directory / "bin").mkdir(parents=True)
    (directory / "kumulus.json").write_text(json.dumps({"owner": owner}))
    (directory / "kwok.yaml").write_text("half: [")
    sleep = shutil.which("sleep")
    assert sleep is not None
    return subprocess.Popen([str(directory / "bin" / "etcd"), "600"], executable=sleep)


def arguments(home: Path, component: str) -> list[str]:
    """The command line of a component of a cluster under that home."""
    return psutil.Process(processes.components(home)[component][0]).cmdline()


async def test_clusters_made_at_once_do_not_meet_and_leave_nothing_when_deleted(tmp_path: Path) -> None:
    home, runtime = tmp_path / "home", KwokRuntime()
    home.mkdir(mode=0o755)
    home.chmod(0o755)
    remains = leftover(home, "one", "me")
    try:
        one, two, refused = await asyncio.gather(
            runtime.create(wanted(home, "one", "me"), Said(), asyncio.Event()),
            runtime.create(wanted(home, "two", "me", etcdFsync=False), Said(), asyncio.Event()),
            # The same name at the same time: it waits for its turn, and is then told whose it is.
            runtime.create(wanted(home, "one", "somebody else"), Said(), asyncio.Event()),
            return_exceptions=True,
        )
        assert not isinstance(one, BaseException), one
        assert not isinstance(two, BaseException), two
        assert isinstance(refused, ProviderError)
        assert "(made by me)" in str(refused)
        # What the killed create had started is ended, and a directory that was there keeps its mode.
        assert remains.wait(5) is not None
        assert mode(home) == 0o755

        known = [RecordedControlPlane.of(wanted(home, name, "me"), each) for name, each in (("one", one), ("two", two))]
        ports = [set(Layout(Path(each.directory)).ports().values()) for each in (one, two)]
        assert len(ports[0] | ports[1]) == 12
        assert one.identity != two.identity
        assert await runtime.read(dataclasses.replace(known[0], identity=two.identity), Said()) is None
        waits = ["--unsafe-no-fsync=true" not in arguments(home, f"{name}/etcd") for name in ("one", "two")]
        assert waits == [True, False]

        for each in known:
            await runtime.delete(each, Said())
            assert await runtime.read(each, Said()) is None
            await runtime.delete(each, Said())
        assert processes.components(home) == {}
        assert not any(in_use(port) for port in ports[0] | ports[1])
        assert not home.exists()
    finally:
        remains.kill()
        remains.wait()
        processes.kill(pid for pids in processes.components(home).values() for pid in pids)

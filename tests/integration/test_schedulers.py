"""Each scheduler on a real control plane: gangs whole or not at all, quotas, ends that are noticed, nothing left.

A scheduler that is not built is skipped: ./kumulus tools --with schedulers builds them all.
"""

import asyncio
import os
import signal
import subprocess
import sys
import textwrap
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import suppress
from pathlib import Path

import psutil
import pytest

from kumulus import toolchain
from kumulus.extras.schedulers import SchedulerError, children, objects, registry, workloads
from kumulus.extras.schedulers.process import Running, start
from kumulus.extras.schedulers.running import connected
from kumulus.kube.objects import collection
from kumulus.model.identity import RUN_LABEL, STACK_ID, Owner
from tests.integration.conftest import JOBS, PODS, Plane, Pools, job, remove_namespaces
from tests.support import listeners, processes, stranger
from tests.support.api import Api, Object, Refused
from tests.support.listeners import Listener
from tests.support.stranger import Question
from tests.support.tools import require

pytestmark = pytest.mark.integration
HEALTH = {"/healthz", "/readyz"}
READABLE: dict[str, set[str]] = {
    # Its metrics are read during a run.
    "coscheduling": HEALTH | {"/metrics"},
    "volcano": {"/healthz", "/metrics"},
    "kueue": HEALTH,
    # What Go knows of the process is registered wherever these listen.
    "kai": {"/metrics", "/debug/pprof/", "/debug/vars"},
    "yunikorn": {"/readyz", "/metrics", "/debug/pprof/", "/debug/vars"},
}
ASKED = ("/", "/healthz", "/readyz", "/metrics", "/debug/pprof/", "/debug/vars", "/configz", "/ws/v1/partitions")
# Of native, which starts nothing: test_native_workloads.py.
GANGS = [each.name for each in registry.every() if each.gangs and not each.is_own]
COLLECTIONS = (
    "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
    "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations",
    "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations",
    "/api/v1/namespaces",
    "/apis/scheduling.k8s.io/v1/priorityclasses",
)
# Two of Volcano's scheduling cycles, the slowest of all.
CYCLES_S = 2.5

Start = Callable[..., "asyncio.Future[Running]"]


@pytest.fixture
async def starts(plane: Plane, tmp_path: Path) -> AsyncIterator[Start]:
    """Start schedulers, which are stopped after the test; one that is not built skips it."""
    made: list[Running] = []

    async def begin(name: str, **arguments: object) -> Running:
        require(*registry.get(name).tools)
        directory = tmp_path / name
        running = await start(name, Path(plane.observed.kubeconfig), directory, **arguments)  # type: ignore[arg-type]
        made.append(running)
        return running

    yield begin  # type: ignore[misc]
    for running in made:
        await running.stop()


def submit(api: Api, manifests: list[Object]) -> None:
    for manifest in manifests:
        api.create(collection(manifest), manifest)


def placed(api: Api, name: str) -> int:
    """How many of a Job's pods have a node."""
    found = api.list(PODS, labelSelector=f"job-name={name}")
    return sum(1 for pod in found if pod["spec"].get("nodeName"))


async def until_placed(api: Api, name: str, pods: int) -> None:
    def reached(found: Mapping[str, Object]) -> bool:
        return sum(1 for pod in found.values() if pod["spec"].get("nodeName")) == pods

    await asyncio.to_thread(api.until, PODS, reached, 90, labelSelector=f"job-name={name}")


def remove(api: Api, name: str) -> None:
    with suppress(Refused):
        api.delete(f"{JOBS}/{name}?propagationPolicy=Background")


def names(api: Api) -> dict[str, set[str]]:
    """What a scheduler could leave behind, by collection."""
    return {collection: {each["name"] for each in api.metadata(collection)} for collection in COLLECTIONS}


def gang(name: str, scheduler: str, pool: str, pods: int) -> list[Object]:
    workload = {"apiVersion": "batch/v1", "kind": "Job", **job(name, pool, "1h", parallelism=pods, cpu="1")}
    workload["metadata"]["namespace"] = "default"
    return workloads.gang(scheduler, [workload], name)


@pytest.mark.parametrize("name", GANGS)
async def test_a_gang_is_admitted_whole_or_not_at_all(name: str, starts: Start, plane: Plane, pools: Pools) -> None:
    api, before = plane.api, names(plane.api)
    inputs = pools.inputs(replicas=2)  # four CPUs each
    await pools.create(inputs)
    running = await starts(name)
    pool = str(inputs["name"])
    # Of eight CPUs four are left, where five are asked for; Kueue has a quota of seven, and nodes for both gangs.
    first, second = (4, 4) if name == "kueue" else (4, 5)
    try:
        if needed := registry.get(name).needed_queue:
            submit(api, workloads.queue(name, needed, "default", {"cpu": "7"} if name == "kueue" else {}))
        submit(api, gang("first", name, pool, first))
        await until_placed(api, "first", first)
        submit(api, gang("second", name, pool, second))
        await asyncio.sleep(CYCLES_S)
        assert placed(api, "second") == 0
        if name == "kueue":
            queue = "/apis/kueue.x-k8s.io/v1beta2/namespaces/default/workloads"
            await asyncio.to_thread(api.until, queue, lambda found: any(map(waits, found.values())), 30)
        assert running.failure() is None
        remove(api, "first")
        await until_placed(api, "second", second)
        heard = listeners.of(running.pids.values())
        assert heard
        assert listeners.amiss(heard) == []
        assert await asyncio.to_thread(readable_by_others, heard) == READABLE[name]
        await is_noticed_and_started_again(running)
    finally:
        remove(api, "first")
        remove(api, "second")
    await running.stop()
    assert names(api) == before
    assert running.pids == {}


def readable_by_others(heard: Iterable[Listener]) -> set[str]:
    """What every user of the machine is answered: the paths, of all ports and schemes together."""
    asked = [Question(each.port, path, scheme) for each in heard for path in ASKED for scheme in ("http", "https")]
    answers = zip(asked, stranger.ask(asked), strict=True)
    return {question.path for question, answer in answers if answer.status == 200}


async def is_noticed_and_started_again(running: Running) -> None:
    scheduling = running.programs[0].name
    assert running.failure() is None
    os.kill(running.pids[scheduling], signal.SIGKILL)
    processes.await_that(lambda: running.failure() is not None, 10, "the end of a scheduler is noticed")
    assert f"{scheduling} has ended by SIGKILL; its last words:\n" in str(running.failure())
    await running.restart()
    assert running.failure() is None
    assert list(running.pids) == [program.name for program in running.programs]


def waits(workload: Object) -> bool:
    """Whether Kueue has looked at a Job and found no room for it."""
    conditions = workload.get("status", {}).get("conditions") or []
    return any(each["type"] == "QuotaReserved" and each["reason"] == "Pending" for each in conditions)


async def test_a_pod_that_reserves_a_gpu_for_kai_says_which_one_it_has(plane: Plane, pools: Pools) -> None:
    inputs = pools.inputs(replicas=1)
    await pools.create(inputs)
    spec = {"nodeName": f"{inputs['name']}-0", "containers": [{"name": "c", "image": "none"}]}
    for name, app in (("reserves", "kai-resource-reservation"), ("other", "else")):
        plane.api.create(PODS, {"metadata": {"name": name, "labels": {"app": app}}, "spec": spec})
    try:

        def answered(found: Mapping[str, Object]) -> bool:
            annotations = {each["metadata"]["name"]: each["metadata"].get("annotations", {}) for each in found.values()}
            return "run.ai/reserve_for_gpu_index" in annotations.get("reserves", {})

        await asyncio.to_thread(plane.api.until, PODS, answered, 30)
        found = {name: plane.api.get(f"{PODS}/{name}")["metadata"] for name in ("reserves", "other")}
        assert found["reserves"]["annotations"]["run.ai/reserve_for_gpu_index"] == f"GPU-{found['reserves']['uid']}"
        assert "run.ai/reserve_for_gpu_index" not in found["other"].get("annotations", {})
    finally:
        for name in ("reserves", "other"):
            plane.api.delete(f"{PODS}/{name}?gracePeriodSeconds=0")


def test_what_an_interrupted_run_left_is_taken_over_and_removed(plane: Plane) -> None:
    namespace: Object = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "left"}}
    metadata = {"name": "map", "namespace": "left"}
    api = plane.api

    async def acts() -> None:
        async with connected(Path(plane.observed.kubeconfig)) as client:
            for value in ("1", "2"):
                data = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"a": value}}
                await objects.create(client, "yunikorn", [namespace, data])
                assert api.get("/api/v1/namespaces/left/configmaps/map")["data"] == {"a": value}
            await objects.remove(client, "volcano")
            assert api.get("/api/v1/namespaces/left")["metadata"]["name"] == "left"
            await objects.remove(client, "yunikorn")

    asyncio.run(acts())
    assert "left" not in names(api)["/api/v1/namespaces"]


def test_what_a_scheduler_has_in_the_cluster_says_for_which_run_and_whose_cluster_it_is(plane: Plane) -> None:
    namespace: Object = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "marked"}}
    mark = objects.Mark("a-run", Owner("0" * 32, "dev"))

    async def acts() -> None:
        async with connected(Path(plane.observed.kubeconfig)) as client:
            await objects.create(client, "yunikorn", [namespace], mark)
            labels = plane.api.get("/api/v1/namespaces/marked")["metadata"]["labels"]
            assert {objects.LABEL: "yunikorn", RUN_LABEL: "a-run", STACK_ID: "0" * 32}.items() <= labels.items()
            await objects.remove(client, "yunikorn", run="another-run")
            assert plane.api.get("/api/v1/namespaces/marked")["metadata"]["labels"] == labels
            await objects.remove(client, "yunikorn", run="a-run")

    asyncio.run(acts())
    assert "marked" not in names(plane.api)["/api/v1/namespaces"]


async def test_an_installation_that_is_not_ours_is_left_alone(plane: Plane, tmp_path: Path) -> None:
    api = plane.api
    api.create("/api/v1/namespaces", {"metadata": {"name": "yunikorn"}})
    try:
        with pytest.raises(SchedulerError) as raised:
            await start("yunikorn", Path(plane.observed.kubeconfig), tmp_path / "s", binary=Path("/bin/true"))
        assert "the cluster has a yunikorn already: Namespace yunikorn is not ours\n  Remove" in str(raised.value)
        assert "deletionTimestamp" not in api.get("/api/v1/namespaces/yunikorn")["metadata"]
    finally:
        remove_namespaces(plane, "yunikorn")


CONFIGURATION = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles: [{schedulerName: mine, plugins: {multiPoint: {enabled: [{name: %s}]}}}]
"""


async def test_the_users_own_binary_and_configuration_place_pods(
    starts: Start, plane: Plane, pools: Pools, tmp_path: Path
) -> None:
    api, inputs = plane.api, pools.inputs(replicas=1)
    await pools.create(inputs)
    own, config = tmp_path / "my-scheduler", tmp_path / "config.yaml"
    own.symlink_to(toolchain.find("kube-scheduler"))
    config.write_text(CONFIGURATION % "NodeResourcesFit")
    running = await starts("kube-scheduler", config=config, binary=own)
    assert running.scheduler_names == ("mine",)
    assert running.settings["version"] == f"own: {own}"
    workload = {"apiVersion": "batch/v1", "kind": "Job", **job("own", str(inputs["name"]), "1h")}
    try:
        (made,) = workloads.single("kube-scheduler", workload, scheduler_name="mine")
        api.create(JOBS, made)
        await until_placed(api, "own", 1)
    finally:
        remove(api, "own")


async def test_a_scheduler_that_ends_at_once_is_told_with_its_last_words(plane: Plane, tmp_path: Path) -> None:
    before, config = names(plane.api), tmp_path / "config.yaml"
    config.write_text(CONFIGURATION % "NoSuchPlugin")
    with pytest.raises(SchedulerError) as raised:
        await start("kube-scheduler", Path(plane.observed.kubeconfig), tmp_path / "s", config)
    assert "kube-scheduler has ended with exit code 1; its last words:\n" in str(raised.value)
    assert "NoSuchPlugin" in str(raised.value)
    assert "\n  Check its configuration, and what it is started with: /" in str(raised.value)
    assert names(plane.api) == before


async def test_one_that_never_works_is_given_up_and_ended(plane: Plane, tmp_path: Path) -> None:
    own = tmp_path / "sleeps"
    own.write_text("#!/bin/sh\necho I sleep\nsleep 600\n")
    own.chmod(0o755)
    with pytest.raises(SchedulerError) as raised:
        await start("kube-scheduler", Path(plane.observed.kubeconfig), tmp_path / "s", binary=own, timeout=4.0)
    assert "kube-scheduler does not work after 4 s; its last words:\n    I sleep" in str(raised.value)
    assert f"\n  Check its configuration, and what it is started with: {own} --config=" in str(raised.value)
    assert [child.cmdline() for child in psutil.Process().children(recursive=True)] == []


def test_a_scheduler_ends_with_whoever_started_it(plane: Plane, tmp_path: Path) -> None:
    program = f"""
        import asyncio, pathlib, time
        from kumulus.extras.schedulers.process import start
        directory = pathlib.Path({str(tmp_path / "s")!r})
        print(asyncio.run(start("kube-scheduler", pathlib.Path({plane.observed.kubeconfig!r}), directory)).pids)
        time.sleep(600)
    """
    command = [sys.executable, "-u", "-c", textwrap.dedent(program)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as parent:
        try:
            assert parent.stdout is not None
            assert parent.stdout.readline().startswith("{'kube-scheduler': ")
        finally:
            parent.kill()
    processes.await_that(lambda: children.running(tmp_path / "s") == {}, 10, "the scheduler ends with its parent")

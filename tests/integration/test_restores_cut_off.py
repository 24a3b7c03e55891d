"""The command `snapshot restore`: it asks where others are, and the next command finishes one that is cut off."""

import asyncio
import json
import os
import pty
import re
import signal
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from kumulus.extras.journal import book
from kumulus.extras.journal.book import Journal
from kumulus.extras.journal.changes import JournaledChanges
from kumulus.host import lifetime
from kumulus.host import processes as own_processes
from kumulus.kube import Client, load_kubeconfig
from kumulus.nodes.faults.new_pods import wait_until_all_are_managed
from kumulus.runtimes.base import WantedControlPlane
from kumulus.runtimes.existing.runtime import ExistingRuntime
from tests.integration.conftest import NODES, PODS, Plane, Pools, pod, remove_namespaces
from tests.integration.test_object_snapshots import ALL, MINE, NAMESPACES, disturb, put_back, settled, standing
from tests.support import processes
from tests.support.api import Object
from tests.support.cut_off import dying
from tests.support.said import Said

pytestmark = pytest.mark.integration
ROOT = Path(__file__).resolve().parents[2]
DEPLOYMENTS = f"/apis/apps/v1/namespaces/{MINE}/deployments"
MAPS = f"{NAMESPACES}/{MINE}/configmaps"
_MOST_DRAWS = 5


@dataclass
class Shared:
    """The control plane as a stack called `shared` uses it, for which it is an existing cluster."""

    plane: Plane
    home: Path

    def environment(self, home: Path | None = None) -> dict[str, str]:
        return {**os.environ, "KUMULUS_HOME": str(home or self.home)}

    def command(self, *words: str) -> list[str]:
        return [str(ROOT / "kumulus"), *words]

    def run(self, *words: str, home: Path | None = None) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            self.command(*words),
            env=self.environment(home),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )

    def restore(self, *words: str) -> subprocess.CompletedProcess[str]:
        return self.run("snapshot", "restore", "full", "-s", "shared", *words)

    def next(self) -> str:
        """Another command, of another stack on the same cluster; what it says."""
        done = self.run("fault", "list", "-s", self.plane.wanted.name, home=Path(self.plane.wanted.home))
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stderr

    def journals(self) -> list[Journal]:
        return book.read(self.plane.identity)[0]

    @contextmanager
    def restoring(self) -> Iterator[subprocess.Popen[str]]:
        """A restore under way; whatever the test makes of it, it is gone afterwards."""
        line = self.command("snapshot", "restore", "full", "-s", "shared", "--yes")
        out = subprocess.PIPE
        with subprocess.Popen(line, env=self.environment(), stdout=out, stderr=out, text=True) as process:
            try:
                yield process
            finally:
                process.kill()

    def answering(self, answer: str) -> tuple[int, str]:
        """A restore at a terminal, and what is typed there; how it ended, and what it wrote."""
        ours, theirs = pty.openpty()
        line = self.command("snapshot", "restore", "full", "-s", "shared")
        with subprocess.Popen(
            line, env=self.environment(), stdin=theirs, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        ) as process:
            os.close(theirs)
            os.write(ours, answer.encode())
            said, _ = process.communicate()
        os.close(ours)
        return process.returncode, said


@pytest.fixture
async def shared(plane: Plane, pools: Pools, tmp_path: Path) -> Shared:
    options = {"kubeconfig": plane.observed.kubeconfig, "needs": []}
    await ExistingRuntime().create(
        WantedControlPlane("shared", "the tests", str(tmp_path), "", options), Said(), asyncio.Event()
    )
    return Shared(plane, tmp_path)


@pytest.fixture
def space(plane: Plane) -> Iterator[None]:
    plane.api.create(NAMESPACES, {"metadata": {"name": MINE}})
    plane.api.until(f"{NAMESPACES}/{MINE}/serviceaccounts", lambda found: "default" in found)
    yield
    remove_namespaces(plane, MINE)


@pytest.fixture
async def saved(shared: Shared, plane: Plane, pools: Pools, space: None) -> dict[str, tuple[str, str]]:
    """What a namespace has, all of which is saved."""
    inputs = pools.inputs(2)
    await pools.create(inputs)
    async with Client(load_kubeconfig(Path(plane.observed.kubeconfig))) as client:
        await wait_until_all_are_managed(client, asyncio.Event())
    found = settled(plane, inputs["name"])
    done = shared.run("snapshot", "save", "full", "-s", "shared", "-n", MINE)
    assert done.returncode == 0, done.stderr
    return found


def everything(plane: Plane) -> dict[str, str]:
    paths = (f"{NAMESPACES}/{MINE}/pods", MAPS, DEPLOYMENTS)
    return {f"{path}/{each['name']}": each["uid"] for path in paths for each in plane.api.metadata(path)}


def test_what_it_would_delete_is_shown_by_kind_and_nothing_is_deleted_unless_the_user_agrees(
    shared: Shared, plane: Plane, saved: dict[str, tuple[str, str]]
) -> None:
    disturb(plane)
    before = everything(plane)
    refused = shared.restore()
    assert refused.returncode == 1
    assert refused.stderr.splitlines() == [
        "error: a restore would do this in a cluster that is others', too",
        "  If that is meant: --yes",
    ]
    rows = [" ".join(line.split()) for line in refused.stdout.splitlines()]
    assert rows[0] == "A restore of full into shared, whose cluster is others', too:"
    assert f"deleted ConfigMap 1 {MINE}/later" in rows
    assert f"deleted, then created again Deployment 1 {MINE}/web" in rows
    assert f"changed back ConfigMap 1 {MINE}/settings" in rows
    assert f"created DaemonSet 1 {MINE}/agent" in rows
    assert any(re.fullmatch(rf"deleted Pod 2 {MINE}/web-\S+, {MINE}/web-\S+", row) for row in rows)
    for answer in ("n\n", "\n", "\x04"):
        code, said = shared.answering(answer)
        assert (code, said.splitlines()[-1].removeprefix("Do it? [y/N] ")) == (1, "nothing was changed")
    assert everything(plane) == before
    assert shared.journals() == []

    code, said = shared.answering("y\n")
    assert code == 0, said
    assert "restored full in " in said
    put_back(plane, saved)


def _is_under_way(plane: Plane, process: subprocess.Popen[str]) -> None:
    """Wait until a restore has removed what it removes first, or has ended."""
    processes.await_that(
        lambda: not plane.api.metadata(DEPLOYMENTS) or process.poll() is not None, 60, "it is under way", pause=0.01
    )


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_one_that_is_cut_off_says_how_far_it_has_come_and_the_next_command_finishes_it(
    shared: Shared, plane: Plane, saved: dict[str, tuple[str, str]], number: signal.Signals
) -> None:
    disturb(plane)
    for _ in range(_MOST_DRAWS):
        with shared.restoring() as process:
            _is_under_way(plane, process)
            process.send_signal(number)
            _, said = process.communicate(timeout=60)
        if plane.api.metadata(DEPLOYMENTS) == []:
            break
        # On a busy machine the restore may end before its moment is seen: all is as before, so it is tried again.
        standing(plane, MINE, ALL)
        disturb(plane)
    else:
        pytest.fail(f"none of {_MOST_DRAWS} restores was cut off while it was under way")
    if number == signal.SIGKILL:
        assert process.returncode == -signal.SIGKILL
    else:
        assert process.returncode == 130, said
        halfway = r"the restore is half done: \d+ of \d+ objects are deleted, 0 of 17 put back"
        remedy = r"The next command on this cluster finishes it, such as: \S+ snapshot restore full -s shared"
        assert re.search(rf"(?m)^error: {halfway}\n  {remedy}$", said)
    plane.api.create(MAPS, {"metadata": {"name": "meanwhile"}, "data": {}})

    (journal,) = shared.journals()
    told = shared.next()
    assert f"snapshot restore full (run {journal.changes.run}) did not come to its end; put back: " in told
    assert "the restore of full finished: " in told
    assert f"; left as they are, as they have been changed meanwhile: {MINE}/meanwhile" in told
    put_back(plane, saved)
    assert "meanwhile" in {each["name"] for each in plane.api.metadata(MAPS)}, "it was not shown, and nobody agreed"
    assert shared.journals() == []


def test_a_second_interrupt_ends_it_at_once_and_it_is_said_what_finishes_it(
    shared: Shared, plane: Plane, saved: dict[str, tuple[str, str]]
) -> None:
    """Its request does not come to an end, as from a cluster that is down; then nothing is waited for."""
    disturb(plane)
    servers = plane.processes()["kube-apiserver"]
    with shared.restoring() as process:
        _is_under_way(plane, process)
        try:
            for pid in servers:
                os.kill(pid, signal.SIGSTOP)
            process.send_signal(signal.SIGINT)
            assert process.stderr is not None
            assert "Ctrl-C again: at once" in process.stderr.readline()
            process.send_signal(signal.SIGINT)
            _, said = process.communicate(timeout=60)
        finally:
            for pid in servers:
                os.kill(pid, signal.SIGCONT)
    assert process.returncode == 130
    assert "ended at once: the restore of full is half done" in said
    assert "The next command on this cluster finishes it, such as: " in said
    assert "the restore of full finished: " in shared.next()
    put_back(plane, saved)


def test_it_is_refused_while_an_experiment_runs_and_what_a_killed_one_left_is_no_snapshot(
    shared: Shared, plane: Plane, saved: dict[str, tuple[str, str]]
) -> None:
    disturb(plane)
    before = everything(plane)
    journal = Journal(JournaledChanges("one", "training", plane.identity, lifetime.own()))
    journal.add()
    try:
        refused = shared.restore("--yes")
        assert refused.returncode == 1
        assert refused.stderr.startswith("error: experiment training runs on this cluster (run one, process ")
    finally:
        journal.discard()
    elsewhere = {
        "name": "experiment-elsewhere",
        "labels": {"kumulus.io/experiment": "elsewhere"},
        "annotations": {"kumulus.io/experiment-process": "another-machine another-boot 4026531836 1 4711"},
    }
    plane.api.create(NAMESPACES, {"metadata": elsewhere})
    try:
        refused = shared.restore("--yes")
        assert "an experiment may run on this cluster (namespace experiment-elsewhere" in refused.stderr
    finally:
        remove_namespaces(plane, "experiment-elsewhere")
    assert everything(plane) == before


async def test_one_of_a_cluster_s_keys_that_is_killed_is_finished_and_its_controllers_go_on(
    shared: Shared, plane: Plane, pools: Pools
) -> None:
    inputs = pools.inputs(2)
    await pools.create(inputs)
    name, home = str(inputs["name"]), Path(plane.wanted.home)
    for number in range(3):
        plane.api.create(PODS, pod(f"{name}-{number}", name))
    before = _running(plane, name, 3)
    stack = ("-s", plane.wanted.name)
    assert shared.run("snapshot", "save", "cut-off", *stack, home=home).returncode == 0
    nodes = pools.uids(inputs)
    for each in (f"{PODS}/{name}-0?gracePeriodSeconds=0", f"{NODES}/{name}-1"):
        plane.api.delete(each)
    plane.api.create(PODS, pod(f"{name}-later", name))

    line, environment = dying("snapshot", "restore", "cut-off", *stack), shared.environment(home)
    killed = await asyncio.to_thread(subprocess.run, line, env=environment, capture_output=True, check=False)
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    controllers = own_processes.running(plane.directory)
    assert len(own_processes.suspended(controllers)) == 3, "they stand still while the keys are written"

    assert "the restore of cut-off finished: " in shared.next()
    assert own_processes.suspended(own_processes.running(plane.directory)) == set()
    assert pools.uids(inputs) == nodes
    assert _running(plane, name, 3) == before
    assert shared.journals() == []
    for number in range(3):
        plane.api.delete(f"{PODS}/{name}-{number}?gracePeriodSeconds=0")


def _running(plane: Plane, pool: str, count: int) -> dict[str, str]:
    def reached(pods: Mapping[str, Object]) -> bool:
        return [each["status"].get("phase") for each in pods.values()] == ["Running"] * count

    found = plane.api.until(PODS, reached, labelSelector=f"test={pool}")
    return {each: pod["metadata"]["uid"] for each, pod in found.items()}


def test_one_whose_snapshot_is_gone_cannot_be_finished_and_the_file_to_remove_is_named(
    shared: Shared, plane: Plane
) -> None:
    journal = Journal(JournaledChanges("one", "full", plane.identity, "", command="snapshot restore"))
    journal.add()
    raw = json.loads(journal.file.read_text())
    gone = str(shared.home / "gone.snapshot")
    raw["restoring"] = {"kubeconfig": str(shared.home / "clusters/shared/existing.yaml"), "snapshot": gone}
    journal.file.write_text(json.dumps(raw))
    done = shared.run("fault", "list", "-s", plane.wanted.name, home=Path(plane.wanted.home))
    assert done.returncode == 1
    assert done.stderr.splitlines() == [
        "error: the restore of gone is half done, and cannot be finished: No such file or directory",
        f"  The next command tries again; to leave the cluster as it is: rm {journal.file}",
    ]
    journal.discard()

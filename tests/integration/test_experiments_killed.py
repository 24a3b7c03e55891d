"""A run of an experiment that is killed: the next command, whichever it is, puts the cluster back as it was."""

import json
import random
import signal
import subprocess
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from kumulus.extras.journal import book
from kumulus.extras.journal.book import Journal
from kumulus.extras.schedulers import children
from kumulus.host import processes as host_processes
from tests.integration.conftest import KUMULUS, NODES, Plane, Pools
from tests.support import processes
from tests.support.api import Object
from tests.support.tools import require

pytestmark = pytest.mark.integration
ROOT = Path(__file__).resolve().parents[2]
RECORDS = "/api/v1/namespaces/kube-system/configmaps"
NAMESPACES = "/api/v1/namespaces"
CLASSES = "/apis/scheduling.k8s.io/v1/priorityclasses"
PATIENCE_S = 90.0
SLEEP = "38764.25"
"""The seconds for which the run's command sleeps; no other process of this machine does so for as long."""


@dataclass
class Ground:
    """A control plane with two pools, and what was there before any experiment."""

    plane: Plane
    pools: list[str]
    directory: Path

    def experiment(self, name: str = "struck", **other: Any) -> list[str]:
        """A run that changes everything that one can: nodes, faults, the scheduler, objects in no namespace."""
        setup = self.directory / "setup.yaml"
        setup.write_text(
            yaml.safe_dump_all(
                {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": each}, "value": 7}
                for each in ("made-by-the-run", "there-before")
            )
        )
        fault = {"name": "struck", "kubelet": "notReady", "target": {"names": [f"{self.pools[0]}-0"]}}
        timeline: list[Any] = [
            {"scheduler": "stop"},
            {"resize": {"pool": self.pools[0], "replicas": 9}},
            {"resize": {"pool": self.pools[1], "replicas": 1}},
            {"run": {"command": f"sleep {SLEEP}", "background": True}},
            {"at": "1s", "fault": fault},
            {"after": "created", "scheduler": "start"},
        ]
        work = {"name": "work", "jobs": 20, "arrival": {"rate": 20}, "priority": "made-by-the-run"}
        late = {"name": "late", "arrival": {"after": "5m"}}
        file = self.directory / f"{name}.yaml"
        fields = {
            "name": name,
            "workloads": [work, late],
            "timeline": timeline,
            "setup": [setup.name],
            "settle": "5m",
            **other,
        }
        file.write_text(yaml.safe_dump(fields))
        results = ["--results", str(self.directory / "results")]
        where = ["--kubeconfig", self.plane.observed.kubeconfig, *results]
        return ["experiment", "run", str(file), *where]

    def picture(self) -> dict[str, Any]:
        """What must be as it was: nodes, records, faults, namespaces, classes, the scheduler."""
        api = self.plane.api
        return {
            "nodes": {node["metadata"]["name"]: _stable(node) for node in api.list(NODES)},
            "records": {each["metadata"]["name"]: each["data"] for each in _records(api.list(RECORDS))},
            "namespaces": sorted(each["name"] for each in api.metadata(NAMESPACES)),
            "classes": {each["name"]: (each["uid"], each.get("labels")) for each in api.metadata(CLASSES)},
            "commands": len(host_processes.naming("sleep", SLEEP)),
            "scheduler": len(self.plane.processes().get("kube-scheduler", [])),
        }

    def is_as(self, before: dict[str, Any]) -> None:
        """Kubernetes takes its own taints off a node that is ready again a moment later; all else is at once."""
        self.plane.api.until(
            NODES, lambda found: "node.kubernetes.io" not in str([node["spec"] for node in found.values()])
        )
        assert self.picture() == before

    def journals(self) -> list[Journal]:
        return book.read(self.plane.identity)[0]

    @contextmanager
    def run(self, **other: Any) -> Iterator[subprocess.Popen[str]]:
        """A run under way; whatever the test makes of it, it is gone afterwards."""
        log = (self.directory / "log").open("a")
        with subprocess.Popen(
            [*KUMULUS, *self.experiment(**other)],
            stdout=log,
            stderr=log,
            text=True,
            cwd=ROOT,
            env=self.plane.environment,
        ) as process:
            try:
                yield process
            finally:
                process.kill()

    def until(self, reached: Callable[[], bool], process: subprocess.Popen[str]) -> None:
        processes.await_amid(process, reached, PATIENCE_S, 0.01, self.directory / "log")

    def next(self, which: str) -> str:
        """Another command on the cluster; what it says."""
        if which == "fault list":
            ended = self.plane.kumulus("fault", "list", "-s", self.plane.wanted.name)
        else:
            file = self.directory / "next.yaml"
            file.write_text(yaml.safe_dump({"name": "next", "workloads": [{"name": "w"}], "settle": "1s"}))
            where = ["--kubeconfig", self.plane.observed.kubeconfig, "--results", str(self.directory / "results")]
            ended = self.plane.kumulus("experiment", "run", str(file), *where)
        assert ended.returncode == 0, ended.stdout + ended.stderr
        return ended.stdout + ended.stderr


def _stable(node: Object) -> Object:
    """A node without what its kubelet changes all the time."""
    metadata = node["metadata"]
    status = {key: node["status"].get(key) for key in ("capacity", "allocatable")}
    ready = [each["status"] for each in node["status"]["conditions"] if each["type"] == "Ready"]
    kept = {key: metadata.get(key) for key in ("labels", "annotations")}
    return {**kept, "spec": node["spec"], **status, "ready": ready}


def _records(maps: list[Object]) -> list[Object]:
    return [each for each in maps if "kumulus.io/record" in (each["metadata"].get("labels") or {})]


@pytest.fixture
async def ground(plane: Plane, pools: Pools, tmp_path: Path) -> AsyncIterator[Ground]:
    names = []
    for _ in range(2):
        inputs = pools.inputs(4)
        await pools.create(inputs)
        names.append(str(inputs["name"]))
    body = {"metadata": {"name": "there-before"}, "value": 3}
    if not any(each["name"] == "there-before" for each in plane.api.metadata(CLASSES)):
        plane.api.create(CLASSES, body)
    plane.api.until(NODES, lambda found: all(_stable(node)["ready"] == ["True"] for node in found.values()))
    # What another test has left goes by itself.
    plane.api.until(NAMESPACES, lambda found: all(each["status"]["phase"] == "Active" for each in found.values()))
    made = Ground(plane, names, tmp_path)
    yield made
    # Where the test failed: without a scheduler, every later one on this control plane would fail too.
    if made.journals():
        made.next("fault list")


# What has been changed by then, as the cluster has it.
MOMENTS: dict[str, Callable[[Ground], bool]] = {
    "the scheduler is stopped": lambda ground: not ground.plane.processes().get("kube-scheduler"),
    "a command runs": lambda _: bool(host_processes.naming("sleep", SLEEP)),
    "a namespace is there": lambda ground: any(
        each["name"].startswith("experiment-struck") for each in ground.plane.api.metadata(NAMESPACES)
    ),
    "a pool has grown": lambda ground: any(
        each["name"] == f"{ground.pools[0]}-8" for each in ground.plane.api.metadata(NODES)
    ),
    "a pool is shrinking": lambda ground: len(ground.plane.api.metadata(NODES)) < 12 and _held(ground, "experiment-"),
    "a fault holds": lambda ground: _held(ground, "struck"),
}


def _held(ground: Ground, name: str) -> bool:
    return any(each["name"].startswith(f"kumulus-fault-{name}") for each in ground.plane.api.metadata(RECORDS))


def _has_begun(ground: Ground, name: str) -> bool:
    """Whether all nodes of a fault have it: until then, its record says what they may still show."""
    found = {each["metadata"]["name"]: each["data"]["record"] for each in _records(ground.plane.api.list(RECORDS))}
    record = found.get(f"kumulus-fault-{name}")
    return record is not None and "former" not in json.loads(record)


# What the next command is makes no difference to what is put back: each comes after every other moment.
@pytest.mark.parametrize(("moment", "following"), list(zip(MOMENTS, 3 * ["experiment run", "fault list"], strict=True)))
def test_whatever_a_killed_run_has_changed_the_next_command_puts_back(
    ground: Ground, moment: str, following: str
) -> None:
    before = ground.picture()
    with ground.run() as process:
        ground.until(lambda: MOMENTS[moment](ground), process)
        process.send_signal(signal.SIGKILL)
        assert process.wait() == -signal.SIGKILL
    (journal,) = ground.journals()
    assert book.runs(journal) is False
    assert ground.picture() != before, "the kill has struck amid the run"
    said = ground.next(following)
    assert f"experiment struck (run {journal.changes.run}) did not come to its end; put back: " in said
    ground.is_as(before)
    assert not book.directory(ground.plane.identity).exists()


def test_a_kill_at_any_moment_is_put_back(ground: Ground) -> None:
    before, struck = ground.picture(), 0
    # Moments that are named: the test above.
    for number in (1, 3):
        pause = random.Random(f"kumulus:{number}").uniform(0.0, 4.0)
        with ground.run() as process:
            ground.until(lambda: bool(ground.journals()), process)
            time.sleep(pause)
            process.send_signal(signal.SIGKILL)
            assert process.wait() == -signal.SIGKILL
        struck += ground.picture() != before
        ground.next("fault list")
        print(f"killed {pause:.2f} s after its journal was begun")
        ground.is_as(before)
    assert struck, "one of the kills was amid the run"


def test_a_second_interrupt_ends_a_run_at_once_and_the_next_command_puts_back(ground: Ground) -> None:
    before = ground.picture()
    with ground.run() as process:
        ground.until(lambda: MOMENTS["a fault holds"](ground), process)
        process.send_signal(signal.SIGINT)
        said = ground.directory / "log"
        ground.until(lambda: "Ctrl-C again" in said.read_text(), process)
        process.send_signal(signal.SIGINT)
        assert process.wait() == 130
    assert "the next command on this cluster puts it back" in said.read_text()
    assert ground.picture() != before
    ground.next("fault list")
    ground.is_as(before)


def test_a_second_interrupt_in_the_clean_up_ends_it_and_the_next_command_goes_on(ground: Ground) -> None:
    before, said = ground.picture(), ground.directory / "log"
    work = {"name": "work", "jobs": 20, "arrival": {"rate": 20}}
    with ground.run(workloads=[work], timeline=[]) as process:
        ground.until(lambda: MOMENTS["a namespace is there"](ground), process)
        [name] = {each["name"] for each in ground.plane.api.metadata(NAMESPACES)} - set(before["namespaces"])
        # With this in it, the namespace stays until somebody lets it go.
        held = f"{NAMESPACES}/{name}/configmaps"
        ground.plane.api.create(held, {"metadata": {"name": "held", "finalizers": ["example.com/held"]}})
        ground.until(lambda: "report: " in said.read_text(), process)
        ground.until(lambda: "deletionTimestamp" in ground.plane.api.get(f"{NAMESPACES}/{name}")["metadata"], process)
        process.send_signal(signal.SIGINT)
        ground.until(lambda: "Ctrl-C again" in said.read_text(), process)
        process.send_signal(signal.SIGINT)
        assert process.wait() == 130
    assert said.read_text().endswith("ended at once: the next command on this cluster puts it back as it was\n")
    assert len(ground.journals()) == 1
    ground.plane.api.merge(f"{held}/held", {"metadata": {"finalizers": None}})
    ground.next("fault list")
    ground.is_as(before)


def test_a_closed_terminal_ends_a_run_as_ctrl_c_does(ground: Ground) -> None:
    before = ground.picture()
    with ground.run() as process:
        ground.until(lambda: MOMENTS["a fault holds"](ground), process)
        process.send_signal(signal.SIGHUP)
        assert process.wait() == 1
    ground.is_as(before)
    assert ground.journals() == []
    (report,) = (ground.directory / "results" / "struck").glob("*/report.json")
    assert json.loads(report.read_text())["results"]["error"] == "interrupted"


def test_a_run_beside_one_that_lives_is_refused_and_touches_nothing_of_it(ground: Ground) -> None:
    before = ground.picture()
    with ground.run() as process:
        ground.until(lambda: _has_begun(ground, "struck"), process)
        changed = ground.picture()
        other = ground.plane.kumulus(*ground.experiment("other"))
        assert other.returncode == 1
        (journal,) = ground.journals()
        who = f"run {journal.changes.run}, process {process.pid}"
        assert f"error: experiment struck runs on this cluster ({who}); wait for it" in other.stderr
        assert "did not come to its end" not in ground.next("fault list")
        assert ground.picture()["records"] == changed["records"]
        assert ground.picture()["scheduler"] == 0
        process.send_signal(signal.SIGINT)
        assert process.wait() == 1
    ground.is_as(before)


DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
WEBHOOKS = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"


def of_schedulers(ground: Ground) -> list[str]:
    paths = (DEFINITIONS, WEBHOOKS, NAMESPACES)
    return [
        each["name"] for path in paths for each in ground.plane.api.metadata(path, labelSelector="kumulus.io/scheduler")
    ]


@pytest.mark.parametrize("scheduler", ["kueue", "volcano"])
def test_a_scheduler_of_a_killed_run_ends_with_it_and_what_it_has_in_the_cluster_is_removed(
    ground: Ground, scheduler: str
) -> None:
    """Webhooks that nobody answers would refuse whatever comes after."""
    require("kueue" if scheduler == "kueue" else "volcano-scheduler")
    before = ground.picture()
    timeline: list[Any] = [{"resize": {"pool": ground.pools[0], "replicas": 9}}]
    with ground.run(scheduler={"name": scheduler}, timeline=timeline) as process:
        ground.until(lambda: MOMENTS["a pool has grown"](ground), process)
        found = of_schedulers(ground)
        assert found, f"{scheduler} has nothing in the cluster"
        process.send_signal(signal.SIGKILL)
        assert process.wait() == -signal.SIGKILL
    (directory,) = (ground.directory / "results" / "struck").glob("*/scheduler")
    processes.await_that(lambda: children.running(directory) == {}, 20, "the scheduler's programs end with the run")
    assert set(found) <= set(of_schedulers(ground)), "what it has in the cluster is left"
    assert f"{scheduler} removed" in ground.next("fault list")
    assert of_schedulers(ground) == []
    ground.is_as(before)

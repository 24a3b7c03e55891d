"""`kumulus fit` as a command: which clusters it does not ask, and that nothing of it stays, however it ends."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from kumulus.extras.capture.mark import MARK
from kumulus.extras.journal import book
from kumulus.model.identity import RUN_LABEL
from kumulus.runtimes.existing import source as sources
from kumulus.runtimes.existing.source import ContextSource, CopyPlace
from tests.integration.conftest import KUMULUS, NODES, Plane, Pools
from tests.support import processes

pytestmark = pytest.mark.integration
ROOT = Path(__file__).resolve().parents[2]
CLASSES = "/apis/scheduling.k8s.io/v1/priorityclasses"
NAMESPACES = "/api/v1/namespaces"
PATIENCE_S = 90.0


@dataclass
class Clone:
    """A control plane that is marked as a clone: two nodes with room for eight pods, and a quota for five of them."""

    plane: Plane
    """The control plane."""
    namespace: str
    """The quota's."""
    directory: Path
    """For files."""

    @property
    def quota(self) -> str:
        return f"{NAMESPACES}/{self.namespace}/resourcequotas/cpus"

    def fit(self, stack: str = "") -> list[str]:
        """Asks for twelve pods; they do not fit, so that the quota is raised and nodes are added."""
        container = {"name": "main", "resources": {"requests": {"cpu": "1"}}}
        spec = {"containers": [container], "nodeSelector": {"team": self.namespace}}
        metadata = {"name": "wanted", "namespace": self.namespace}
        job = {"kind": "Job", "metadata": metadata, "spec": {"parallelism": 12, "template": {"spec": spec}}}
        file = self.directory / "wanted.yaml"
        file.write_text(yaml.safe_dump(job))
        return ["fit", str(file), "-s", stack or self.plane.wanted.name]

    @contextmanager
    def asking(self) -> Iterator[subprocess.Popen[str]]:
        """A question under way; whatever the test makes of it, it is gone afterwards."""
        with subprocess.Popen(
            [*KUMULUS, *self.fit()],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            cwd=ROOT,
            env=self.plane.environment,
        ) as process:
            try:
                yield process
            finally:
                process.kill()

    @contextmanager
    def held(self, component: str) -> Iterator[None]:
        """A component that does nothing for a while, so that the question waits for it."""
        pids = self.plane.processes()[component]
        try:
            for pid in pids:
                os.kill(pid, signal.SIGSTOP)
            yield
        finally:
            for pid in pids:
                os.kill(pid, signal.SIGCONT)

    def until(self, reached: Callable[[Clone], object], process: subprocess.Popen[str]) -> None:
        processes.await_amid(process, lambda: reached(self), PATIENCE_S, 0.01)

    def marked(self, path: str) -> list[str]:
        return [each["name"] for each in self.plane.api.metadata(path, labelSelector=RUN_LABEL)]

    def left(self) -> dict[str, Any]:
        """What a question has made or changed in the clone; and its journal."""
        made = {path: found for path in ("/api/v1/pods", NODES, CLASSES) if (found := self.marked(path))}
        hard = self.plane.api.get(self.quota)["spec"]["hard"]
        changed = {"quota": hard} if hard != {"requests.cpu": "5"} else {}
        journals = book.read(self.plane.identity)[0]
        return {**made, **changed, **({"journal": journals} if journals else {})}


def mark(plane: Plane) -> None:
    folder, _, name = MARK.rpartition("/")
    plane.api.create(folder, {"metadata": {"name": name}})


@pytest.fixture
async def clone(plane: Plane, pools: Pools, tmp_path: Path) -> Any:
    name = f"fit-{uuid.uuid4().hex[:6]}"
    await pools.create(pools.inputs(2, labels={"team": name}, taints=[], capacity={"cpu": "4", "pods": "110"}))
    plane.api.create(NAMESPACES, {"metadata": {"name": name}})
    made = Clone(plane, name, tmp_path)
    quota = {"metadata": {"name": "cpus"}, "spec": {"hard": {"requests.cpu": "5"}}}
    plane.api.create(made.quota.rpartition("/")[0], quota)
    plane.api.until(made.quota.rpartition("/")[0], lambda found: all("used" in q["status"] for q in found.values()))
    plane.api.until(f"{NAMESPACES}/{name}/serviceaccounts", lambda found: "default" in found)
    mark(plane)
    yield made
    plane.api.delete(MARK)
    plane.api.delete(f"{NAMESPACES}/{name}")


# Which component is held until the question is cut off, and what has been changed by then.
MOMENTS: dict[str, tuple[str, Callable[[Clone], object]]] = {
    "pods wait": ("kube-scheduler", lambda clone: len(clone.marked("/api/v1/pods")) == 5),
    "the quota is raised": ("kube-controller-manager", lambda clone: "quota" in clone.left()),
    "nodes are there": ("", lambda clone: clone.marked(NODES)),
}


@contextmanager
def cut_off(clone: Clone, moment: str, number: signal.Signals) -> Iterator[subprocess.Popen[str]]:
    """A question that gets a signal at some moment."""
    component, reached = MOMENTS[moment]
    with clone.asking() as process:
        if component:
            with clone.held(component):
                clone.until(reached, process)
                process.send_signal(number)
                yield process
        else:
            clone.until(reached, process)
            process.send_signal(number)
            yield process


@pytest.mark.parametrize(("moment", "following"), list(zip(MOMENTS, ["fit", "fit", "fault list"], strict=True)))
def test_what_a_killed_question_has_left_the_next_command_puts_back(clone: Clone, moment: str, following: str) -> None:
    with cut_off(clone, moment, signal.SIGKILL) as process:
        assert process.wait() == -signal.SIGKILL
    assert clone.left().keys() >= {CLASSES, "journal"}, "the kill has struck amid the question"
    (journal,) = book.read(clone.plane.identity)[0]
    said = f"fit wanted (run {journal.changes.run}) did not come to its end; put back: "
    if following == "fault list":
        done = clone.plane.kumulus("fault", "list", "-s", clone.plane.wanted.name)
        assert (done.returncode, said in done.stderr) == (0, True), done.stderr
    else:
        done = clone.plane.kumulus(*clone.fit())
        assert (done.returncode, said in done.stderr) == (1, True), done.stderr
        # As without the killed one, whose pods, nodes and quota would have changed the answer.
        assert done.stdout.startswith(f"wanted: 5 of 12 pods fit into {clone.plane.wanted.name}\n"), done.stdout
        assert "to fit all: raising the quota cpus (requests.cpu from 5 to 12) and 1 more node like" in done.stdout
    assert clone.left() == {}


@pytest.mark.parametrize(
    ("moment", "number"), list(zip(MOMENTS, [signal.SIGINT, signal.SIGTERM, signal.SIGHUP], strict=True))
)
def test_an_interrupted_question_leaves_nothing(clone: Clone, moment: str, number: signal.Signals) -> None:
    with cut_off(clone, moment, number) as process:
        said, _ = process.communicate(timeout=PATIENCE_S)
        assert (process.returncode, said) == (130, "")
        assert clone.left() == {}


def test_a_question_that_outlives_its_terminal_goes_on(clone: Clone) -> None:
    line = ["nohup", *KUMULUS, *clone.fit()]
    with (
        clone.held("kube-scheduler"),
        subprocess.Popen(line, stdout=subprocess.PIPE, text=True, cwd=ROOT, env=clone.plane.environment) as process,
    ):
        clone.until(lambda clone: clone.marked("/api/v1/pods"), process)
        process.send_signal(signal.SIGHUP)
        for pid in clone.plane.processes()["kube-scheduler"]:
            os.kill(pid, signal.SIGCONT)
        said, _ = process.communicate(timeout=PATIENCE_S)
    assert said.startswith("wanted: 5 of 12 pods fit")
    assert clone.left() == {}


def test_one_question_at_a_time_and_none_beside_an_experiment(clone: Clone) -> None:
    with clone.asking() as process, clone.held("kube-scheduler"):
        clone.until(lambda clone: clone.marked("/api/v1/pods"), process)
        (journal,) = book.read(clone.plane.identity)[0]
        refused = re.escape(
            f"error: fit wanted runs on this cluster (run {journal.changes.run}, process {process.pid}); wait for it"
        )
        file = clone.directory / "experiment.yaml"
        file.write_text(yaml.safe_dump({"name": "training", "workloads": [{"name": "w"}], "settle": "1s"}))
        kubeconfig = ["--kubeconfig", clone.plane.observed.kubeconfig, "--results", str(clone.directory)]
        experiment = ["experiment", "run", str(file), *kubeconfig]
        for line in (clone.fit(), experiment):
            done = clone.plane.kumulus(*line)
            assert (done.returncode, bool(re.match(refused, done.stderr))) == (1, True), done.stderr
        assert len(clone.marked("/api/v1/pods")) == 5, "those of the first one"
        process.send_signal(signal.SIGINT)
        assert process.wait(PATIENCE_S) == 130
    late = {"name": "late", "arrival": {"after": "5m"}}
    file.write_text(yaml.safe_dump({"name": "training", "workloads": [late], "settle": "5m"}))
    with subprocess.Popen(
        [*KUMULUS, *experiment],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        cwd=ROOT,
        env=clone.plane.environment,
        text=True,
    ) as running:
        try:
            clone.until(lambda clone: book.read(clone.plane.identity)[0], running)
            done = clone.plane.kumulus(*clone.fit())
            assert done.returncode == 1
            message = (
                r"error: experiment training runs on this cluster \(run .*\); wait for it, or end it in order: kill"
            )
            assert re.match(f"{message} {running.pid}\n", done.stderr)
            assert clone.left().keys() == {"journal"}
        finally:
            running.send_signal(signal.SIGINT)
            running.wait(PATIENCE_S)
    assert clone.left() == {}


def test_a_cluster_that_outlives_its_stack_is_not_asked_even_if_it_is_a_clone(clone: Clone) -> None:
    """Its nodes may be real: the pods would run there, and a team's quota would be used up and raised meanwhile."""
    source = ContextSource.of({"kubeconfig": clone.plane.observed.kubeconfig})
    place = CopyPlace(Path(clone.plane.wanted.home) / "clusters" / "live")
    sources.write(place, source, "the tests")
    try:
        before = clone.plane.api.get(clone.quota)["metadata"]["resourceVersion"]
        done = clone.plane.kumulus(*clone.fit("live"))
    finally:
        shutil.rmtree(place.directory)
    assert done.returncode == 1
    assert done.stderr.startswith("error: live: the cluster is no clone: it outlives its stack, and what fit creates")
    assert "\n  Capture it, and ask the clone: " in done.stderr
    assert clone.plane.api.get(clone.quota)["metadata"]["resourceVersion"] == before


def test_a_cluster_that_is_no_clone_is_not_asked(clone: Clone) -> None:
    clone.plane.api.delete(MARK)
    try:
        before = clone.plane.api.get(clone.quota)["metadata"]["resourceVersion"]
        done = clone.plane.kumulus(*clone.fit())
        assert clone.plane.api.get(clone.quota)["metadata"]["resourceVersion"] == before
    finally:
        mark(clone.plane)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith(
        f"error: {clone.plane.wanted.name}: the cluster is no clone of a capture\n  Capture it, and ask the clone: "
    )
    assert clone.left() == {}

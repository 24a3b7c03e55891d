"""`kumulus clone` that is cut off, and clusters that are not taken for the clone of a capture."""

import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import psutil
import pytest
import yaml

from tests.e2e.test_fit_watch import NODES, PODS, QUOTAS, cluster, command, pod
from tests.support import processes
from tests.support.api import Refused
from tests.support.project import ROOT, Project

pytestmark = pytest.mark.e2e
CLONE = ("clone", "there", "-s", "clone")
# Twice as many as are under way at once, so that some are there and some are not; each takes 12 ms of CPU.
MANY = 400
PATIENCE_S = 120.0


@pytest.fixture
def captured(module_project: Project) -> Project:
    """A stack `there` of two nodes, with a quota and a pod that waits; captured into `there`, which has no clone.

    The stack is that of the test before, put right.
    """
    capture(module_project)
    return module_project


@pytest.fixture(scope="module")
def capture_files(module_project: Project, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where such a capture is, and a pod that is wanted."""
    capture(module_project)
    folder = tmp_path_factory.mktemp("captured")
    shutil.copytree(module_project.directory / "there", folder / "there")
    shutil.copy(module_project.directory / "wanted.yaml", folder)
    return folder


@pytest.fixture
def capture_alone(project: Project, capture_files: Path) -> Project:
    """A project with nothing but that capture."""
    shutil.copytree(capture_files, project.directory, dirs_exist_ok=True)
    return project


def capture(project: Project) -> None:
    if project.cluster("clone").exists():
        command(project, "down", "clone")
    (project.directory / "stacks" / "Pulumi.clone.yaml").unlink(missing_ok=True)
    project.write_stack(cluster(2), "there")
    project.up("--refresh")
    shutil.rmtree(project.directory / "there", ignore_errors=True)
    api = project.api("there")
    if not any(each["name"] == "shop" for each in api.metadata("/api/v1/namespaces")):
        api.create("/api/v1/namespaces", {"metadata": {"name": "shop"}})
        api.until("/api/v1/namespaces/shop/serviceaccounts", lambda found: "default" in found)
        api.create(QUOTAS, {"metadata": {"name": "many"}, "spec": {"hard": {"pods": "9999"}}})
    for each in api.metadata(PODS):
        api.delete(f"{PODS}/{each['name']}?gracePeriodSeconds=0")
    waiting = pod("waits", "")
    del waiting["spec"]["nodeName"]
    waiting["spec"]["nodeSelector"] = {"late": "yes"}
    api.create(PODS, waiting)
    command(project, "capture", "-s", "there", "--to", "there")
    container = {"name": "main", "image": "none", "resources": {"requests": {"cpu": "3"}}}
    wanted = {"metadata": {"name": "wanted", "namespace": "shop"}, "spec": {"containers": [container]}}
    (project.directory / "wanted.yaml").write_text(yaml.safe_dump({"apiVersion": "v1", "kind": "Pod", **wanted}))


def with_many(project: Project, capture: str = "there") -> None:
    """Give a capture so many pods that creating them takes a while."""
    file = project.directory / capture / "workload.yaml"
    *documents, shape = yaml.safe_load_all(file.read_text())
    shape["pods"] = [{"name": f"waits-{number}"} for number in range(MANY)]
    file.write_text(yaml.safe_dump_all([*documents, shape]))


@contextmanager
def running(project: Project, *words: str) -> Iterator[subprocess.Popen[str]]:
    """A command of ours under way."""
    with subprocess.Popen(
        [sys.executable, str(ROOT / "kumulus"), *words],
        cwd=project.directory,
        env=project.environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def until_some_pods(project: Project, process: subprocess.Popen[str], more_than: int = 0) -> None:
    """Wait until the clone has some of its pods."""

    def reached() -> bool:
        # Until its API server listens.
        with suppress(OSError, Refused):
            return project.kubeconfig("clone").exists() and pods_in(project) > more_than
        return False

    processes.await_amid(process, reached, PATIENCE_S)


def pods_in(project: Project) -> int:
    return len(project.api("clone").metadata("/api/v1/pods"))


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGHUP])
def test_a_clone_that_was_cut_off_is_named_and_finished_by_the_next_command(
    capture_alone: Project, number: signal.Signals
) -> None:
    with_many(capture_alone)
    with running(capture_alone, *CLONE) as process:
        until_some_pods(capture_alone, process)
        process.send_signal(number)
        said, _ = process.communicate(timeout=PATIENCE_S)
    capture_alone.known("clone")
    killed = number == signal.SIGKILL
    assert process.returncode == (-number if killed else 130)
    assert killed or said.endswith("clone is not the whole clone yet\n  Run the same command again to continue\n"), said
    assert 0 < pods_in(capture_alone) < MANY, "it has struck amid the pods"

    finish = rf"\S*kumulus clone {re.escape(str(capture_alone.directory / 'there'))} -s clone"
    cut = r"clone clone \(run clone-[0-9a-f]{8}\) did not come to its end"
    named = capture_alone.kumulus("fault", "list", "-s", "clone")
    assert re.fullmatch(rf"{cut}; to finish it: {finish}\n", named.stderr)
    asked = capture_alone.kumulus("fit", "wanted.yaml", "-s", "clone")
    assert asked.returncode == 1
    assert re.search(rf"^error: {cut}; finish it: {finish}$", asked.stderr, re.MULTILINE), asked.stderr
    assert "unchanged" in command(capture_alone, "preview", "clone"), "an update has nothing to put back"

    if killed:
        done = capture_alone.kumulus("fit", "wanted.yaml", "--on", "there", "-s", "clone")
        assert (done.returncode, done.stdout[:28]) == (0, "wanted: 1 of 1 pods fit into"), done.stderr
    else:
        assert f"clone has the capture's nodes and {MANY:,} of its pods" in command(
            capture_alone, "clone", "there", "-s", "clone"
        )
    assert pods_in(capture_alone) == MANY
    assert capture_alone.kumulus("fault", "list", "-s", "clone").stderr == ""


def test_a_clone_that_was_killed_while_its_stack_came_up_goes_on(capture_alone: Project) -> None:
    with running(capture_alone, *CLONE) as process:
        processes.await_amid(process, capture_alone.kubeconfig("clone").exists, PATIENCE_S, 0.01)
        [up] = [each for each in psutil.Process(process.pid).children(recursive=True) if each.name() == "pulumi"]
        # On a busy machine it would have ended before the next command asks.
        up.suspend()
        process.kill()
        process.wait()
        capture_alone.known("clone")
        # Pulumi goes on; nobody else may work on the stack until it has ended.
        busy = capture_alone.kumulus(*CLONE)
        up.resume()
        assert busy.stderr.startswith("error: clone is being worked on by pid ")
        process.communicate(timeout=PATIENCE_S)
    assert pods_in(capture_alone) == 0
    assert "clone has the capture's nodes and 1 of its pods" in command(capture_alone, *CLONE)
    assert capture_alone.node_uids("clone").keys() == {"web-z-0", "web-z-1"}
    assert pods_in(capture_alone) == 1


@pytest.mark.parametrize("meanwhile", ["nothing", "down"])
def test_a_clone_that_was_killed_while_it_caught_up_is_finished_by_the_next_command(
    captured: Project, meanwhile: str
) -> None:
    command(captured, *CLONE)
    captured.known("clone")
    captured.write_stack(cluster(3), "there")
    captured.up()
    begun = captured.directory / "there" / ".begun"
    command(captured, "capture", "-s", "there", "--to", "there/.begun")
    with_many(captured, "there/.begun")
    watch = ("--watch", "--kubeconfig", str(captured.kubeconfig("there")))
    with running(captured, "fit", "wanted.yaml", "--on", "there", "-s", "clone", *watch) as process:
        until_some_pods(captured, process, 1)
        process.kill()
    assert 1 < pods_in(captured) < MANY, "it has struck amid the pods"
    assert begun.is_dir()
    if meanwhile == "down":
        command(captured, "down", "clone")
    else:
        assert "to finish it: " in captured.kumulus("fault", "list", "-s", "clone").stderr
    answer = command(captured, "fit", "wanted.yaml", "--on", "there", "-s", "clone", "--count", "3")
    assert "wanted: 3 of 3 pods fit into clone\n" in answer
    # The pod that the newer capture no longer has is gone.
    assert pods_in(captured) == MANY
    assert len(captured.api("clone").list(NODES)) == 3
    assert not begun.exists()
    assert captured.kumulus("fault", "list", "-s", "clone").stderr == ""


def test_a_source_is_not_taken_for_its_own_clone(captured: Project) -> None:
    """The directory has the stack's name, so the source's stack is the one that the clone would have."""
    source = captured.api("there")
    for each in source.list(NODES):
        source.merge(f"{NODES}/{each['metadata']['name']}", {"metadata": {"labels": {"late": "yes"}}})
    source.until(PODS, lambda found: bool(found["waits"]["spec"].get("nodeName")))
    before = picture(source)
    kubeconfig = ["--kubeconfig", str(captured.kubeconfig("there"))]
    for further in ([], ["--watch", "--every", "1", *kubeconfig]):
        done = captured.kumulus("fit", "wanted.yaml", "--on", "there", *further)
        assert done.returncode == 1
        assert re.match(r"error: stacks/Pulumi.there.yaml is another stack's, or has been changed since ", done.stderr)
    file = captured.stack_file("there")
    content = file.read_bytes()
    file.unlink()
    for line in (["fit", "wanted.yaml", "--on", "there"], ["clone", "there", "-s", "there"]):
        done = captured.kumulus(*line)
        assert done.stderr == (
            "error: there: its cluster is there already, and no clone\n"
            "  Name another stack with -s, or take this one down first: kumulus down there\n"
        )
    file.write_bytes(content)
    assert picture(source) == before
    # A real clone does not take itself for its source, either.
    command(captured, *CLONE)
    captured.known("clone")
    before = picture(captured.api("clone"))
    itself = ["--watch", "--kubeconfig", str(captured.kubeconfig("clone"))]
    done = captured.kumulus("fit", "wanted.yaml", "--on", "there", "-s", "clone", *itself)
    assert (done.returncode, done.stdout) == (1, "")
    assert re.match(r"error: the source is clone itself, at https://\S+\n  Name the cluster that was cap", done.stderr)
    assert picture(captured.api("clone")) == before


def picture(api: Any) -> dict[str, tuple[str, object]]:
    """Pods and quotas, by UID and what they are."""
    return {each["metadata"]["uid"]: each["spec"] for path in ("/api/v1/pods", QUOTAS) for each in api.list(path)}


def test_a_capture_that_was_made_again_is_another_one(captured: Project) -> None:
    command(captured, *CLONE)
    captured.known("clone")
    before = picture(captured.api("clone"))
    captured.api("there").create(PODS, pod("later", captured.api("there").list(NODES)[0]["metadata"]["name"]))
    command(captured, "capture", "-s", "there", "--to", "there")
    for line in (
        ["fit", "wanted.yaml", "--on", "there", "-s", "clone"],
        ["fit", "wanted.yaml", "--on", "there", "-s", "clone", "--watch"],
        CLONE,
    ):
        done = captured.kumulus(*line)
        assert done.returncode == 1
        assert done.stderr.startswith(
            "error: clone: it is the clone of another capture than there, or of an earlier one"
        )
    assert picture(captured.api("clone")) == before
    # It is a clone all the same, of what there was.
    assert command(captured, "fit", "wanted.yaml", "-s", "clone").startswith("wanted: 1 of 1 pods fit")
    Path(captured.directory / "there").rename(captured.directory / "moved")
    command(captured, "down", "clone")
    assert "and 2 of its pods" in command(captured, "clone", "moved", "-s", "clone")

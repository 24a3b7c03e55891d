"""The pytest plugin, in runs of pytest of their own: as a user has it, with his own tests and options."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from kumulus.testing.plane import PREFIX, remove
from tests.support.api import Api

pytestmark = pytest.mark.integration

ROOT = Path(__file__).resolve().parents[2]
POD = """{
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "held", "finalizers": ["example.com/stay"]},
    "spec": {"containers": [{"name": "c", "image": "none"}]},
}"""
FAILING = f"""
import pytest

def test_a_pod_that_fails_its_test(kumulus):
    kumulus.apply({POD})
    kumulus.wait(lambda: any(each.reason == "Scheduled" for each in kumulus.events()))
    assert False, kumulus.kubeconfig

def test_the_next_one_has_a_cluster_as_new(kumulus):
    assert kumulus.pods() == []
    assert [node.name for node in kumulus.nodes()] == ["l4-zone-1-0", "l4-zone-1-1"]

@pytest.mark.kumulus(nodes=1)
def test_a_cluster_of_its_own(kumulus_cluster):
    assert len(kumulus_cluster.nodes()) == 1
"""
SIDE_BY_SIDE = """
import pathlib, pytest, time

@pytest.mark.parametrize("half", [0, 1])
def test_workers(kumulus, worker_id, half):
    pathlib.Path(worker_id).write_text(str(kumulus.kubeconfig))
    deadline = time.monotonic() + 200
    while len(list(pathlib.Path().glob("gw?"))) < 2:
        assert time.monotonic() < deadline
        time.sleep(0.1)
"""


SHARED = f"""
import pathlib, pytest, time
from kumulus.testing import ClusterError

@pytest.mark.parametrize("half", [0, 1])
def test_workers(kumulus, worker_id, half):
    assert kumulus.pods() == []
    kumulus.apply({POD})
    kumulus.wait(lambda: [pod.phase for pod in kumulus.pods()] == ["Running"])
    assert {{event.namespace for event in kumulus.events()}} == {{kumulus.namespace}}
    pathlib.Path(worker_id).write_text(f"{{kumulus.server}} {{kumulus.namespace}} {{len(kumulus.nodes())}}")
    ends = time.monotonic() + 60
    while len(list(pathlib.Path().glob("gw*"))) < 2 and time.monotonic() < ends:
        time.sleep(0.05)

def test_what_concerns_others_is_refused(kumulus):
    assert kumulus.pods() == []
    with pytest.raises(ClusterError, match="leave --kumulus-share out"), kumulus.fault("kernel-deadlock", nodes=1):
        pass
    with pytest.raises(ClusterError, match="leave --kumulus-share out"):
        kumulus.resize(5)
"""
STACK = """
config:
  kumulus:cluster:
    nodeGroups:
      - {name: %s, placement: [{availabilityZone: a, replicas: 2}], nodeTemplate: {capacity: {cpu: "1", pods: "9"}}}
"""
NAMES = """
def test_names(kumulus):
    print(*(node.name for node in kumulus.nodes()))
"""


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    (tmp_path / "clusters").mkdir()
    (tmp_path / "pytest.ini").write_text("[pytest]\nkumulus_nodes = l4=2\n")
    yield tmp_path
    for left in standing(tmp_path):
        remove(left)


def standing(folder: Path) -> list[Path]:
    return list((folder / "clusters").glob(f"{PREFIX}*"))


def run(folder: Path, test: str, *options: str) -> subprocess.CompletedProcess[str]:
    (folder / "test_mine.py").write_text(test)
    # A worker of ours is none of the run that is started.
    outer = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_XDIST_")}
    environment = {
        **outer,
        "PYTHONPATH": str(ROOT / "src"),
        "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
        "TMPDIR": str(folder / "clusters"),
    }
    command = [sys.executable, "-m", "pytest", "-p", "kumulus.testing.plugin", "-p", "no:cacheprovider", *options]
    return subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, check=False, timeout=500
    )


def test_a_failed_test_shows_its_cluster_and_the_next_has_it_as_new(folder: Path) -> None:
    done = run(folder, FAILING)
    assert "1 failed, 2 passed, 1 warning" in done.stdout, done.stdout
    assert "the cluster's last events" in done.stdout
    assert "Pod default/held Scheduled: Successfully assigned default/held to l4-zone-1-" in done.stdout
    assert "its components' last lines" in done.stdout
    assert "kube-scheduler:\n" in done.stdout
    assert "KumulusWarning: removed all the same: pods/default/held (with example.com/stay)" in done.stdout
    assert standing(folder) == []


def test_a_mistake_in_a_test_is_answered_with_the_message_and_the_tests_own_line(folder: Path) -> None:
    (folder / "conftest.py").write_text("import pytest\n\n@pytest.fixture\ndef kumulus():\n    return None\n")
    mistake = "from kumulus.testing import Cluster\n\ndef test_typo(kumulus):\n    Cluster(nodes={'a1oo': 3}).start()\n"
    done = run(folder, mistake)
    assert "test_mine.py:4: ClusterError" in done.stdout, done.stdout
    assert "a1oo" in done.stdout
    assert len(done.stdout.splitlines()) < 25, done.stdout
    assert "kumulus/testing/" in run(folder, mistake, "--full-trace").stdout


def test_a_mistake_in_a_mark_is_answered_with_the_message_and_the_tests_line(folder: Path) -> None:
    mark = "import pytest\n\n@pytest.mark.kumulus(nodes={'h1000': 5})\n"
    done = run(folder, f"{mark}def test_typo(kumulus_cluster):\n    pass\n")
    assert "write h100\n\ntest_mine.py:3: ClusterError" in done.stdout, done.stdout
    assert len(done.stdout.splitlines()) < 25, done.stdout


def test_a_mark_for_the_other_fixture_is_no_silent_one(folder: Path) -> None:
    done = run(folder, "import pytest\n\n@pytest.mark.kumulus(nodes=1)\ndef test_mine(kumulus):\n    pass\n")
    assert "says what the cluster of the fixture `kumulus_cluster` is like: take that one" in done.stdout, done.stdout
    assert "1 error" in done.stdout
    assert standing(folder) == []


def test_pyproject_says_what_the_cluster_is_like_and_an_option_names_another_file(folder: Path) -> None:
    (folder / "pytest.ini").unlink()
    written = folder / "pyproject.toml"
    written.write_text('[tool.pytest.ini_options]\nkumulus_stack = "stack.yaml"\n')
    for file, group, options in (("stack.yaml", "mine", ()), ("other.yaml", "others", ("--kumulus-stack=other.yaml",))):
        (folder / file).write_text(STACK % group)
        done = run(folder, NAMES, "-s", *options)
        assert f"{group}-a-0 {group}-a-1\n" in done.stdout, done.stdout
    written.write_text('[tool.pytest.ini_options]\nkumulus_kubernetes = "1.2.3"\n')
    done = run(folder, NAMES)
    assert "1 error" in done.stdout
    assert "v1.2.3 is not among the suppo" in done.stdout
    assert standing(folder) == []


def test_each_worker_has_a_cluster_of_its_own_and_both_end(folder: Path) -> None:
    done = run(folder, SIDE_BY_SIDE, "-p", "xdist", "-n", "2")
    assert "2 passed" in done.stdout, done.stdout
    assert len({(folder / worker).read_text() for worker in ("gw0", "gw1")}) == 2
    assert standing(folder) == []


def test_workers_share_a_cluster_by_option_and_each_has_a_namespace(folder: Path) -> None:
    done = run(folder, SHARED, "-p", "xdist", "-n", "2", "--kumulus-share")
    assert "3 passed" in done.stdout, done.stdout
    found = {(folder / worker).read_text() for worker in ("gw0", "gw1")}
    assert len({server for server, _, _ in map(str.split, found)}) == 1
    assert {namespace for _, namespace, _ in map(str.split, found)} == {"test-gw0-1", "test-gw1-1"}
    assert standing(folder) == []


def test_a_failed_tests_namespace_is_kept_in_a_shared_cluster(folder: Path) -> None:
    done = run(folder, FAILING, "--kumulus-share", "--kumulus-keep", "-k", "fails or next")
    assert "1 failed, 1 passed" in done.stdout, done.stdout
    assert "a failed test's objects are in namespace test-main-1" in done.stdout
    (kept,) = standing(folder)
    pods = Api(kept / "clusters" / "test" / "kubeconfig.yaml").list("/api/v1/pods")
    assert [each["metadata"]["namespace"] for each in pods] == ["test-main-1"]


@pytest.mark.parametrize("options", [(), ("-p", "xdist", "-n", "1")], ids=["in one process", "in a worker"])
def test_a_failed_tests_cluster_is_kept_as_it_is(folder: Path, options: tuple[str, ...]) -> None:
    done = run(folder, FAILING, "--kumulus-keep", "-k", "fails or next", *options)
    assert "1 failed, 1 passed" in done.stdout, done.stdout
    (kept,) = standing(folder)
    kubeconfig = kept / "clusters" / "test" / "kubeconfig.yaml"
    assert f"export KUBECONFIG={kubeconfig}\nto remove it: kumulus cluster down {kept}" in done.stdout
    assert [each["metadata"]["name"] for each in Api(kubeconfig).list("/api/v1/pods")] == ["held"]

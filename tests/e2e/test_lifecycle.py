"""The quickstart stack of the repository, from nothing to nothing."""

import socket
import stat
from pathlib import Path

import pytest

from tests.support import listeners, processes
from tests.support.pods import is_ready
from tests.support.project import NODES, ROOT, Project

pytestmark = pytest.mark.e2e


def test_up_makes_thirty_ready_nodes_and_tells_where_they_are(module_project: Project) -> None:
    project = module_project
    project.copy_stack("quickstart")
    result = project.up()
    assert "Traceback" not in result.text
    # A clone's `git status` stays clean.
    assert project.stack_file().read_bytes() == (ROOT / "stacks" / "Pulumi.quickstart.yaml").read_bytes()
    nodes = project.api().list(NODES)
    assert len(nodes) == 30
    assert all(map(is_ready, nodes))
    listed = project.kubectl("get", "nodes", "--no-headers").splitlines()
    assert [line.split()[1] for line in listed] == ["Ready"] * 30

    outputs = project.outputs()
    assert outputs["kubeconfig"] == str(project.kubeconfig())
    assert outputs["clusterName"] == "quickstart"
    assert outputs["nodeCount"] == 30
    assert outputs["capacity"]["gpus"] == 240 == sum(int(n["status"]["allocatable"]["nvidia.com/gpu"]) for n in nodes)
    groups = {group: told["nodes"] for group, told in outputs["nodeGroups"].items()}
    assert (outputs["costPerHour"], outputs["nodesWithoutPrice"]) == (1493.1557, 5)
    assert groups == {"a2-ultragpu-8g": 15, "a3-highgpu-8g": 10, "a3-ultragpu-8g": 5}


def test_a_second_up_changes_nothing(module_project: Project) -> None:
    before = module_project.node_uids()
    module_project.preview("--expect-no-changes")
    module_project.up("--refresh", "--expect-no-changes")
    assert module_project.node_uids() == before


def test_files_are_for_their_owner_alone(module_project: Project) -> None:
    home = module_project.home
    for directory in (home, home / "clusters", module_project.cluster()):
        assert mode(directory) == 0o700, directory
    keys = [module_project.kubeconfig(), *(module_project.cluster() / "pki").iterdir()]
    assert len(keys) > 3
    assert {path.name: oct(mode(path)) for path in keys} == {path.name: "0o600" for path in keys}


def test_destroy_leaves_no_process_port_or_file_and_a_second_one_is_calm(module_project: Project) -> None:
    project = module_project
    ports = {each.port for each in listeners.of(pid for pids in project.processes().values() for pid in pids)}
    project.destroy()
    assert project.processes() == {}
    assert not project.kubeconfig().exists()
    assert not project.home.exists()
    for port in ports:
        with socket.socket() as probe:
            assert probe.connect_ex(("127.0.0.1", port)) != 0, f"something still listens on {port}"
    assert processes.helpers(project.home) == {}
    again = project.destroy()
    assert "error" not in again.text


def test_a_secret_is_kept_with_the_salt_that_the_file_brings(module_project: Project) -> None:
    project = module_project
    project.copy_stack("quickstart")
    salt = [line for line in project.stack_file().read_text().splitlines() if line.startswith("encryptionsalt:")]
    done = project.pulumi("config", "set", "--secret", "other:key", "hush")
    assert done.code == 0, done.text
    text = project.stack_file().read_text()
    assert "hush" not in text
    assert [line for line in text.splitlines() if line.startswith("encryptionsalt:")] == salt
    assert project.pulumi("config", "get", "other:key").stdout == "hush\n"


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)

"""`kumulus watch` and `kumulus ui` when there is nothing to see: each says what is wrong and what to do."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from kumulus.cli.cluster import NamedCluster, health_endpoints
from kumulus.extras.watch.commands import look
from tests.unit.toolchain.sample import ROOT

VIEWS = ("watch", "ui")
KUBECONFIG = """\
current-context: x
contexts: [{name: x, context: {cluster: x}}]
clusters: [{name: x, cluster: {server: "http://127.0.0.1:1"}}]
"""


def kumulus(home: Path, *arguments: str, told: str | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, ROOT / "kumulus", *arguments],
        cwd=ROOT,
        input=told,
        env={**os.environ, "KUMULUS_HOME": str(home)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


@pytest.mark.parametrize("view", VIEWS)
def test_a_stack_that_is_not_up_is_told_how_to_start(view: str, tmp_path: Path) -> None:
    result = kumulus(tmp_path, view, "-s", "quickstart")
    assert (result.returncode, result.stdout) == (1, "")
    assert result.stderr.startswith("error: quickstart has no local cluster that is up\n  To start it: ")


@pytest.mark.parametrize(
    ("kubeconfig", "said"),
    [
        (KUBECONFIG, "the Kubernetes API server at http://127.0.0.1:1 is not reachable: connection refused"),
        ("nonsense: [", ".* is not YAML: .*"),
    ],
    ids=["silent", "damaged"],
)
def test_a_cluster_that_cannot_be_asked_is_told_with_its_remedy(tmp_path: Path, kubeconfig: str, said: str) -> None:
    place = tmp_path / "clusters" / "quickstart"
    place.mkdir(parents=True)
    (place / "kubeconfig.yaml").write_text(kubeconfig)
    result = kumulus(tmp_path, "watch", "-s", "quickstart")
    assert (result.returncode, result.stdout) == (1, "")
    remedy = "  To start one that is down: (.*/)?kumulus up quickstart\n"
    assert re.fullmatch(f"error: {said}\n{remedy}", result.stderr)


@pytest.mark.parametrize("file", ["other.yaml", "/dev/stdin"])
def test_where_no_stack_is_known_none_is_named(file: str, tmp_path: Path) -> None:
    (tmp_path / "other.yaml").write_text(KUBECONFIG)
    # The second is a pipe, as of `--kubeconfig <(…)`.
    result = kumulus(tmp_path, "watch", "--kubeconfig", str(tmp_path / file), told=KUBECONFIG)
    assert result.stderr == (
        "error: the Kubernetes API server at http://127.0.0.1:1 is not reachable: connection refused\n"
    )


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--context", "x"], "error: --context belongs to a --kubeconfig; write that too, or leave it out"),
        (["--kubeconfig", "/none"], "error: kubeconfig /none does not exist; check its path"),
    ],
)
def test_a_kubeconfig_that_cannot_be_used_is_told(arguments: list[str], told: str, tmp_path: Path) -> None:
    result = kumulus(tmp_path, "ui", *arguments)
    assert (result.returncode, result.stderr.strip()) == (1, told)


def test_health_checks_are_found_in_what_kwokctl_saved(tmp_path: Path) -> None:
    file = tmp_path / "kwok.yaml"
    assert health_endpoints(tmp_path) == {}
    file.write_text("{")
    assert health_endpoints(tmp_path) == {}
    file.write_text(
        "kind: Stage\n---\nkind: KwokctlConfiguration\n"
        "options: {kubeSchedulerPort: 7001, kwokControllerPort: 7002, etcdPort: 7003}\n"
    )
    assert health_endpoints(tmp_path) == {
        "kube-scheduler": "https://127.0.0.1:7001/healthz",
        "kwok-controller": "http://127.0.0.1:7002/healthz",
    }


def test_racks_and_blocks_are_known_by_the_keys_of_the_stacks_own_topology_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "Pulumi.yaml").write_text("name: sample\nruntime: python\nstackConfigDir: stacks\n")
    monkeypatch.chdir(tmp_path)
    presets = look.places(NamedCluster("mine", tmp_path / "kubeconfig.yaml"))
    assert presets.racks[0] == "topology.kumulus.io/rack"
    file = tmp_path / "stacks" / "Pulumi.mine.yaml"
    file.parent.mkdir()
    file.write_text(OWN_KEYS)
    own = look.places(NamedCluster("mine", tmp_path / "kubeconfig.yaml"))
    assert (own.racks[0], own.blocks[0]) == ("example.com/rack", "example.com/row")
    assert set(own.racks) - set(presets.racks) == {"example.com/rack"}
    # Mistakes in the file are told by what reads it to make a cluster of it.
    for text in ("config: [", "config: {kumulus:cluster: {nodeGroups: [5, {topology: {nodesPerRack: x}}]}}", "- 1"):
        file.write_text(text)
        assert look.places(NamedCluster("mine", tmp_path / "kubeconfig.yaml")) == presets


OWN_KEYS = """\
config:
  kumulus:cluster:
    nodeGroups:
      - name: cpu
        placement: [{availabilityZone: a, replicas: 1}]
        nodeTemplate: {capacity: {cpu: "4", memory: 1Gi, pods: "9"}}
      - name: h100
        placement: [{availabilityZone: a, replicas: 8}]
        nodeTemplate: {capacity: {cpu: "4", memory: 1Gi, pods: "9"}}
        topology:
          nodesPerRack: 4
          racksPerBlock: 2
          labels: {rack: example.com/rack, block: example.com/row}
"""


@pytest.mark.parametrize("port", ["0", "70000", "http"])
def test_a_port_that_is_none_is_refused(port: str, tmp_path: Path) -> None:
    result = kumulus(tmp_path, "ui", "--port", port)
    assert result.returncode == 2
    assert f"'{port}' is not a port; write a number from 1 to 65535" in result.stderr

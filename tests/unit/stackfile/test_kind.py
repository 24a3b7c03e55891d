"""Stack files of the runtime kind: kind's own configuration, the section `kind`, and room for a fleet's addresses."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from kumulus.runtimes.kind.creating import with_metrics
from kumulus.runtimes.kind.kind_config import API_VERSION, node_ranges, real_nodes, with_room
from kumulus.runtimes.kind.section import KindOptions
from kumulus.runtimes.section import option_problems
from kumulus.stackfile.load import load
from kumulus.stackfile.model import ClusterSpec
from tests.support.said import problems_of

HEAD = {"kind": "Cluster", "apiVersion": API_VERSION}


def told(**cluster: Any) -> dict[str, str]:
    return problems_of(ClusterSpec.checked, {"runtime": "kind", **cluster})


WHOLE = """
kind: Cluster
apiVersion: kind.x-k8s.io/v1alpha4
nodes:
- role: control-plane
  kubeadmConfigPatches: ["kind: InitConfiguration"]
  extraPortMappings: [{containerPort: 30000, hostPort: 30000, listenAddress: 127.0.0.1, protocol: TCP}]
- role: worker
  image: example.com/node:v1
  labels: {tier: frontend}
  extraMounts: [{hostPath: ./x, containerPath: /x, readOnly: true, propagation: None}]
networking: {ipFamily: dual, apiServerPort: 6443, disableDefaultCNI: false, kubeProxyMode: nftables, dnsSearch: [a.b]}
featureGates: {A: true}
runtimeConfig: {api/alpha: "false"}
containerdConfigPatches: ["[plugins]"]
kubeadmConfigPatchesJSON6902: [{group: g, version: v, kind: k, patch: "[]"}]
"""


def test_everything_that_kind_takes_is_accepted_as_it_is() -> None:
    config = ClusterSpec.checked({"runtime": "kind", "kindConfig": WHOLE}).kindConfig
    assert config == ClusterSpec.checked({"runtime": "kind", "kindConfig": yaml.safe_load(WHOLE)}).kindConfig
    assert config is not None
    assert config["nodes"][0]["extraPortMappings"][0]["hostPort"] == 30000
    assert real_nodes(config) == 2
    assert ClusterSpec.checked({"runtime": "kind", "kindConfig": ""}).kindConfig == {}


@pytest.mark.parametrize(
    ("config", "path", "said"),
    [
        ({"kind": "Cluster"}, "apiVersion", "is missing; write apiVersion: kind.x-k8s.io/v1alpha4"),
        ({**HEAD, "kind": "ClusterConfig"}, "kind", 'is "ClusterConfig"; write Cluster'),
        ({**HEAD, "apiVersion": "v1"}, "apiVersion", 'is "v1"; write kind.x-k8s.io/v1alpha4'),
        ({**HEAD, "node": []}, "node", "is not a known key; write nodes"),
        ({**HEAD, "nodes": {}}, "nodes", "is a mapping, not a list"),
        ({**HEAD, "nodes": ["worker"]}, "nodes[0]", 'is "worker", not a mapping'),
        ({**HEAD, "nodes": [{"role": "worker"}]}, "nodes", "has workers only, and no control plane; add"),
        ({**HEAD, "nodes": [{"role": "master"}]}, "nodes[0].role", "write one of control-plane, worker"),
        ({**HEAD, "nodes": [{"extraPortMapping": []}]}, "nodes[0].extraPortMapping", "write extraPortMappings"),
        ({**HEAD, "nodes": [{"extraMounts": [{"readOnly": "no!"}]}]}, "nodes[0].extraMounts[0].readOnly", "true or"),
        ({**HEAD, "networking": {"apiServerPort": "a"}}, "networking.apiServerPort", "write a whole number"),
        ({**HEAD, "networking": {"ipFamily": "ipv5"}}, "networking.ipFamily", "write ipv"),
        ({**HEAD, "networking": {"podSubnet": ["10.0.0.0/8"]}}, "networking.podSubnet", "write a text"),
        ({**HEAD, "featureGates": {"A/b": "yes"}}, 'featureGates["A/b"]', "write true or false"),
    ],
)
def test_mistakes_in_kinds_configuration_are_told_with_their_place(config: Any, path: str, said: str) -> None:
    found = told(kindConfig=config)
    assert list(found) == [f"kindConfig.{path}"]
    assert said in found[f"kindConfig.{path}"]
    # The plugin says the same, whoever's program it is.
    assert list(option_problems(KindOptions, {"kindConfig": config})) == [f"kindConfig.{path}"]


@pytest.mark.parametrize(
    ("section", "path", "said"),
    [
        ({"nodeImages": "x"}, "nodeImages", "write nodeImage"),
        ({"nodeImage": "Not An Image"}, "nodeImage", "write its name, such as kindest/node:v1.35.4"),
        ({"provider": "dockr"}, "provider", "write docker"),
        ({"wait": 90}, "wait", "write 90s"),
        ({"wait": "long"}, "wait", "write a duration"),
        ({"adopt": "yes!"}, "adopt", "write adopt: true"),
    ],
)
def test_mistakes_in_the_section_are_told(section: dict[str, Any], path: str, said: str) -> None:
    assert said in told(kind=section)[f"kind.{path}"]
    assert list(option_problems(KindOptions, section)) == [path]


def test_a_port_of_this_machine_and_a_version_beside_an_image_have_no_effect() -> None:
    assert list(told(observability={"prometheusPort": 9090})) == ["observability.prometheusPort"]
    said = "has no effect with kind.nodeImage, which is of one version; leave one of the two out"
    assert told(kubernetesVersion="1.35.4", kind={"nodeImage": "example.com/node:v1"}) == {"kubernetesVersion": said}


def test_what_is_set_becomes_the_clusters_options() -> None:
    settings = {"nodeImage": "localhost:5000/node@sha256:ab", "provider": "podman", "wait": "90s", "adopt": True}
    assert ClusterSpec.checked({"runtime": "kind", "kind": settings}).kind.options() == settings
    assert ClusterSpec.checked({"runtime": "kind"}).kind.options() == {}
    assert option_problems(KindOptions, settings) == {}


# --- room for a fleet's addresses ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("networking", "subnet", "ranges"),
    [
        ({}, "100.64.0.0/10", 16_384),
        ({"ipFamily": "ipv6"}, "fd00:10:244::/48", 65_536),
        ({"ipFamily": "dual"}, "100.64.0.0/10,fd00:10:244::/48", 16_384),
    ],
)
def test_a_subnet_that_is_left_open_has_room_for_a_fleet(networking: Any, subnet: str, ranges: int) -> None:
    config = {**HEAD, "networking": networking} if networking else {}
    given = with_room(config)
    assert given == {**HEAD, "networking": {**networking, "podSubnet": subnet}}
    assert node_ranges(given) == ranges
    assert node_ranges(config) == 256


@pytest.mark.parametrize(
    "part",
    [
        {"networking": {"podSubnet": "10.1.0.0/16"}},
        {"networking": {"disableDefaultCNI": True}},
        {"kubeadmConfigPatches": ["kind: ClusterConfiguration\nnetworking: {podSubnet: 10.1.0.0/16}"]},
        {"nodes": [{"kubeadmConfigPatches": ["extraArgs: {node-cidr-mask-size: '26'}"]}]},
        {"kubeadmConfigPatchesJSON6902": [{"patch": '[{"path": "/x/cluster-cidr"}]'}]},
    ],
)
def test_a_configuration_that_says_where_pods_get_addresses_is_given_as_it_is(part: dict[str, Any]) -> None:
    assert with_room({**HEAD, **part}) == {**HEAD, **part}


@pytest.mark.parametrize(
    ("family", "address", "etcd"),
    [(None, "0.0.0.0", "0.0.0.0"), ("dual", "0.0.0.0", "0.0.0.0"), ("ipv6", "::", "[::]")],
)
def test_the_control_planes_metrics_can_be_had_from_pods(family: str | None, address: str, etcd: str) -> None:
    config = {**HEAD, "networking": {"ipFamily": family}} if family else HEAD
    cluster, proxy = map(yaml.safe_load, with_metrics(config)["kubeadmConfigPatches"])
    for component in ("controllerManager", "scheduler"):
        assert cluster[component] == {"extraArgs": {"bind-address": address}}
    assert cluster["etcd"]["local"]["extraArgs"] == {"listen-metrics-urls": f"http://{etcd}:2381"}
    assert proxy["metricsBindAddress"] == f"{etcd}:10249"
    # kind lays a patch without one on whichever version it writes.
    assert not {"apiVersion"} & {*cluster, *proxy}


def test_the_stacks_own_patches_come_last_and_win() -> None:
    own = "kind: ClusterConfiguration\nscheduler: {extraArgs: {bind-address: 127.0.0.1}}"
    config = {**HEAD, "kubeadmConfigPatches": [own]}
    given = with_metrics(config)
    assert given["kubeadmConfigPatches"][-1] == own
    assert config["kubeadmConfigPatches"] == [own]


def notices(replicas: int, config: Any = None) -> list[str]:
    template = {"capacity": {"cpu": "1", "pods": "10"}}
    group = {"name": "g", "placement": [{"availabilityZone": "z", "replicas": replicas}], "nodeTemplate": template}
    cluster = {"runtime": "kind", "nodeGroups": [group], "kindConfig": config}
    return [str(each) for each in load({"cluster": cluster}, "dev", Path()).notices]


def test_a_fleet_larger_than_the_stacks_own_subnet_is_told_before_it_is_made() -> None:
    config = {**HEAD, "networking": {"podSubnet": "10.1.0.0/16"}}
    assert notices(255, config) == []
    (said,) = notices(256, config)
    assert said.startswith("kindConfig.networking.podSubnet: has address ranges for 256 nodes, and the stack has 257")
    assert notices(16_000) == []
    patched = {**HEAD, "kubeadmConfigPatches": ["node-cidr-mask-size: 28"]}
    assert notices(16_000, patched) == []

"""What a stack needs: by the table, by what its program registers, and as `kumulus doctor -s` says it."""

import argparse
import json
import socket
from pathlib import Path
from typing import Any

import pytest
import yaml

from kumulus import EmulatedCluster
from kumulus.cli import doctor_stack, needs, stack_file, tools
from kumulus.cli.doctor import Finding, report
from kumulus.cli.errors import UserError
from kumulus.cli.main import main
from kumulus.host import inotify
from kumulus.stackfile.load import load
from kumulus.toolchain import images, pins, supply
from kumulus.toolchain.plugins import COMMAND, PROVIDER
from tests.support.program import run

ROOT = Path(__file__).resolve().parents[3]
CONTROL_PLANE = {"etcd", "kwok", "kwokctl", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubectl"}
GROUP: dict[str, Any] = {
    "name": "a",
    "gpuProduct": "NVIDIA-L40S",
    "placement": [{"availabilityZone": "z", "replicas": 1}],
    "nodeTemplate": {"capacity": {"cpu": "8", "memory": "32Gi", "pods": "110", "nvidia.com/gpu": "8"}},
}
ADDON = {"name": "p", "chart": "c", "repoURL": "https://x.example", "repoName": "x", "namespace": "n", "version": "1"}
OBSERVED = {"metrics-server", "prometheus", "kube-state-metrics", "promtool"}
SELECTED = {"name": "t", "selector": {"labels": {"app": "t"}}}
KIND = {"runtime": "kind", "kindConfig": {"kind": "Cluster", "apiVersion": "kind.x-k8s.io/v1alpha4"}}

CASES: list[tuple[dict[str, Any], set[str]]] = [
    ({}, CONTROL_PLANE),
    ({"nodeGroups": [GROUP]}, CONTROL_PLANE),
    ({"clusterAddons": [ADDON]}, {*CONTROL_PLANE, "helm", PROVIDER}),
    ({"clusterAddons": []}, CONTROL_PLANE),
    ({"observability": {}}, CONTROL_PLANE | OBSERVED),
    ({"podUsage": [{**SELECTED, "cpu": "80%"}]}, {*CONTROL_PLANE, "metrics-server"}),
    ({"podLifecycles": [{**SELECTED, "run": "10m"}]}, {*CONTROL_PLANE}),
    ({"tenants": [{"name": "research"}]}, {*CONTROL_PLANE}),
    ({"nodeGroups": [{**GROUP, "resourceSlices": {}}]}, {*CONTROL_PLANE}),
    (
        {"gpuOperator": {}, "nodeGroups": [{**GROUP, "gpuOperator": {}}]},
        {*CONTROL_PLANE, "gpu-status-updater", "kwok-gpu-device-plugin"},
    ),
    ({"hostCommands": [{"name": "b", "create": "true"}]}, {*CONTROL_PLANE, COMMAND}),
    (KIND, {"kind", "helm", PROVIDER}),
    ({**KIND, "observability": {}}, {"kind", "helm", PROVIDER}),
    ({**KIND, "loadImages": ["my-app:dev"]}, {"kind", "helm", PROVIDER, COMMAND}),
    ({"runtime": "existing", "existing": {"context": "x"}}, {"helm", PROVIDER}),
]


@pytest.mark.parametrize(("cluster", "expected"), CASES, ids=[" ".join(cluster) or "empty" for cluster, _ in CASES])
def test_each_section_brings_its_tools_and_no_others(cluster: dict[str, Any], expected: set[str]) -> None:
    wanted = needs.of_loaded(load({"cluster": cluster}, "dev", ROOT))
    assert set(wanted.tools) == expected | set(needs.ENGINE)
    assert wanted.kubernetes is None


# Those of another cluster, and of images, are declared only where there is one and where Docker has them.
REGISTERING = [cluster for cluster, _ in CASES if cluster.get("runtime") != "existing" and "loadImages" not in cluster]


@pytest.mark.parametrize("cluster", REGISTERING, ids=lambda value: " ".join(value) or "empty")
def test_providers_are_needed_by_those_stacks_that_register_them(cluster: dict[str, Any]) -> None:
    loaded = load({"cluster": cluster}, "dev", ROOT)
    wanted = needs.of_loaded(loaded)
    types = {each.type for each in run(lambda: EmulatedCluster("dev", loaded=loaded, base=ROOT)).resources}
    assert (PROVIDER in wanted.tools) == ("pulumi:providers:kubernetes" in types)
    assert (COMMAND in wanted.tools) == ("command:local:Command" in types)


def test_built_from_nothing_the_quickstarts_tools_take_two_thirds_of_what_all_took_at_most() -> None:
    known = pins.load()
    described = stack_file.described_by(ROOT / "stacks" / "Pulumi.quickstart.yaml")
    assert described is not None
    assert described.only is not None
    seconds = {tool.name: tool.cpu for tool in known.shared}
    assert all(each is not None for each in seconds.values())
    needed = sum(seconds[name] or 0 for name in needs.of_loaded(described.only).tools)
    assert 0 < needed <= 2 / 3 * sum(each or 0 for each in seconds.values())


def test_another_kubernetes_version_brings_its_own_control_plane_only() -> None:
    other = f"v{pins.load().other_kubernetes[0]}"
    assert needs.of_loaded(load({"cluster": {"kubernetesVersion": other}}, "dev", ROOT)).kubernetes == other
    default = f"v{pins.load().default_kubernetes}"
    several = [
        load({"cluster": each}, "dev", ROOT) for each in ({"kubernetesVersion": other}, {"clusterAddons": [ADDON]})
    ]
    both = needs.of_all(several)
    assert (both.kubernetes, both.further, PROVIDER in both.tools) == (None, (other,), True)
    assert needs.of_loaded(load({"cluster": {"kubernetesVersion": default}}, "dev", ROOT)).kubernetes is None
    with pytest.raises(UserError, match=rf"kubernetesVersion: is v1.2.3, which .*; write one of {default}, {other}"):
        needs.of_loaded(load({"cluster": {"kubernetesVersion": "1.2.3"}}, "dev", ROOT))


@pytest.fixture
def stack(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The file of a stack x, in a project of its own."""
    (tmp_path / "stacks").mkdir()
    (tmp_path / "Pulumi.yaml").write_text("name: sample\nruntime: python\nstackConfigDir: stacks\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("PULUMI_HOME", str(tmp_path / "pulumi"))
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    return tmp_path / "stacks" / "Pulumi.x.yaml"


def write(file: Path, **config: Any) -> None:
    file.write_text(yaml.safe_dump({"config": config}))


def test_the_tools_of_a_stack_are_those_of_every_version_in_it(stack: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    other, another = (f"v{each}" for each in pins.load().other_kubernetes[:2])
    write(stack, **{"kumulus:clusters": [{"name": "a"}, {"name": "b", "kubernetesVersion": other}]})
    provided: list[str | None] = []
    monkeypatch.setattr(supply, "provide", lambda names, version: provided.append(version))
    assert main(["tools", "-s", "x"]) == 0
    assert main(["tools", "-s", "x", "--kubernetes", another]) == 0
    assert provided == [None, other, None, other, another]


def test_a_file_that_does_not_say_brings_all_that_is_usual(stack: Path) -> None:
    write(stack, **{"kumulus:cluster": {"secure": "v1:abc"}})
    assert set(needs.of_stack("x").tools) == {*CONTROL_PLANE, *needs.ENGINE, PROVIDER}


def test_a_program_of_ones_own_brings_no_kubernetes_provider_which_takes_long_to_build(stack: Path) -> None:
    for config in ({}, {"mine:size": 3}):
        write(stack, **config)
        assert set(needs.of_stack("x").tools) == {*CONTROL_PLANE, *needs.ENGINE}, config


def test_mistakes_are_told_before_anything_is_fetched_and_do_not_keep_a_stack_from_going(stack: Path) -> None:
    write(stack, **{"kumulus:cluster": {"runtime": "kwak"}})
    with pytest.raises(UserError, match="runtime"):
        needs.of_stack("x")
    assert PROVIDER in needs.to_remove("x").tools
    stack.unlink()
    assert PROVIDER in needs.to_remove("x").tools


def test_to_remove_a_stack_whose_file_has_mistakes_takes_the_tools_of_its_runtime(
    stack: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(stack, **{"kumulus:cluster": {"runtime": "kind", "nodes": 3}})
    state = stack.parents[1] / "state" / ".pulumi" / "stacks" / "sample" / "x.json"
    state.parent.mkdir(parents=True)
    resources = [{"type": "kumulus:index:Cluster", "outputs": {"runtime": "kind"}}]
    state.write_text(json.dumps({"checkpoint": {"latest": {"resources": resources}}}))
    monkeypatch.setenv("PULUMI_BACKEND_URL", "s3://elsewhere")
    assert "kind" not in needs.to_remove("x").tools
    monkeypatch.setenv("PULUMI_BACKEND_URL", f"file://{stack.parents[1] / 'state'}")
    assert set(needs.to_remove("x").tools) == {*needs.everything().tools, "kind", "helm"}


def test_a_secret_within_a_stack_file_does_not_hide_the_rest(stack: Path) -> None:
    secret = {"secure": "v1:abc"}
    for values in (secret, {"adminPassword": secret}):
        write(stack, **{"kumulus:cluster": {"clusterAddons": [{**ADDON, "valuesObject": values}]}})
        assert "helm" in needs.of_stack("x").tools
    # What cannot be left out may be anything.
    write(stack, **{"kumulus:cluster": {"clusterAddons": [{**ADDON, "name": {"a": secret}}]}})
    assert needs.of_stack("x") == needs.everything()


def found(which: str | Path) -> dict[str, Finding]:
    return {finding.name: finding for finding in doctor_stack.examine(which)}


def test_the_doctor_says_how_missing_tools_would_be_had(stack: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(stack, **{"kumulus:cluster": {}})
    monkeypatch.setattr("os.cpu_count", lambda: 2)
    built = found("x")
    assert (built["kube-apiserver"].state, built["kube-apiserver"].place) == ("due", "build, about 3 min")
    assert built["in all"].place == "build, about 9 min"
    assert "\n\nTo be fetched first: " in report(list(built.values()))
    assert report([built["memory"]]).endswith("\n\nEverything needed is there.")
    assert built["kubectl"].state == "due"
    assert built["memory"].state == "ok"
    monkeypatch.setenv("KUMULUS_TOOLS", "auto")
    monkeypatch.setattr("kumulus.toolchain.releases.platform", lambda: "linux-amd64")
    pins.load.cache_clear()
    downloaded = found(stack)
    pins.load.cache_clear()
    assert downloaded["kwok"].place == "download, about 64 MB"
    assert downloaded["pulumi-language-python"].place == "download, with pulumi"
    assert downloaded["in all"].place == "download, about 219 MB; build, about 4 min"


def test_the_doctor_sees_a_port_that_is_taken_and_a_fleet_that_is_too_large(stack: Path) -> None:
    group = {**GROUP, "placement": [{"availabilityZone": zone, "replicas": 100_000} for zone in "abc"]}
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen()
        port = listening.getsockname()[1]
        write(stack, **{"kumulus:cluster": {"kwok": {"apiServerPort": port}, "nodeGroups": [group]}})
        findings = found("x")
        assert (findings[f"port {port}"].state, findings["memory"].state) == ("missing", "low")
        assert "memory:" in findings["memory"].note
    assert found("x")[f"port {port}"].state == "ok"


def test_the_doctor_asks_for_docker_where_a_stack_is_of_kind(stack: Path, tmp_path: Path) -> None:
    write(stack, **{"kumulus:cluster": KIND})
    program = tmp_path / "docker"
    answers = {"echo 28.1": ("ok", "28.1", ""), "echo no daemon >&2; exit 1": ("missing", "-", "no daemon")}
    for script, expected in answers.items():
        program.write_text(f"#!/bin/sh\n{script}\n")
        program.chmod(0o755)
        with pytest.MonkeyPatch.context() as patched:
            patched.setenv("PATH", str(tmp_path))
            docker = found("x")["docker"]
        assert (docker.state, docker.version, docker.note) == expected


def test_the_doctor_says_whether_all_clusters_may_watch_their_files(
    stack: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(inotify, "limit", lambda: 128)
    monkeypatch.setattr(inotify, "used", lambda: 10)
    clusters = [{"name": "hub", "nodeGroups": []}, {"name": "worker", "count": 20, "nodeGroups": []}]
    write(stack, **{"kumulus:hub": "hub", "kumulus:clusters": clusters})
    low = found("x")["inotify"]
    assert (low.state, low.version, low.place) == ("low", "147", "of 128 for this user, 10 in use")
    assert "fs.inotify.max_user_instances=1024" in low.note
    # Kueue watches certificates of its own.
    write(stack, **{"kumulus:hub": "hub", "kumulus:clusters": clusters, "kumulus:federation": {"kind": "multikueue"}})
    missing = found("x")["inotify"]
    assert (missing.state, missing.version, missing.note) == ("missing", "189", "Kueue ends if there is none left")
    assert "fs.inotify.max_user_instances=1024" in missing.remedy
    write(stack, **{"kumulus:cluster": {"nodeGroups": []}})
    assert (found("x")["inotify"].state, found("x")["inotify"].version) == ("ok", "7")
    monkeypatch.setattr(inotify, "limit", lambda: None)
    assert "inotify" not in found("x")


def fetch(*words: str) -> int:
    parser = argparse.ArgumentParser()
    tools.add_arguments(parser)
    return tools.run(parser.parse_args(words))


def test_digests_are_accepted_for_what_a_stack_needs_and_what_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    done: list[object] = []
    monkeypatch.setattr(tools, "enter_venv", lambda: None)
    monkeypatch.setattr(needs, "of_stack", lambda _: needs.Needs(("kai-crds",)))
    monkeypatch.setattr(images, "accept", lambda found: done.append([each.name for each in found]))
    monkeypatch.setattr(supply, "provide", lambda names, _: done.append(names))
    assert fetch("-s", "dev", "--with", "kai-podgrouper", "--accept-digest") == 0
    assert done == [["kai-podgrouper", "kai-crds"]] * 2
    with pytest.raises(UserError, match="write --with TOOL or -s STACK"):
        fetch("--accept-digest")


def test_how_a_tool_without_a_sum_is_had_can_be_typed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kumulus.toolchain.accepted.layers", dict)
    pins.load.cache_clear()
    said = doctor_stack.how([pins.load().tool("kai-crds"), pins.load().tool("kai-podgrouper")])
    assert said.endswith("tools --with kai-crds --with kai-podgrouper --accept-digest")

"""A thousand planted names, in files as kubectl and must-gather write them: the command lets none of them out."""

import json
import stat
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from kumulus.cli.main import main
from kumulus.host import files

CANARY = "zqcanary"


class Planted:
    """Texts that are found again wherever they get to."""

    def __init__(self) -> None:
        self.count = 0

    def name(self) -> str:
        self.count += 1
        return f"{CANARY}{self.count:04d}"

    def key(self) -> str:
        return f"{self.name()}.example/{self.name()}"

    def labels(self) -> dict[str, str]:
        # Keys of their own, well-known ones, and some that only look well known.
        return {
            self.key(): self.name(),
            self.name(): self.name(),
            "app": self.name(),
            "topology.kubernetes.io/zone": self.name(),
            f"kubernetes.io/{self.name()}": self.name(),
            "nvidia.com/gpu.product": self.name(),
            f"nvidia.com/cuda.{CANARY}.{CANARY}": "1",
        }

    def metadata(self, namespace: str | None = None) -> dict[str, Any]:
        return {
            "name": self.name(),
            **({"namespace": namespace} if namespace else {}),
            "generateName": f"{self.name()}-",
            "labels": self.labels(),
            "annotations": {
                "kubectl.kubernetes.io/last-applied-configuration": json.dumps({self.name(): [self.name()]}),
                "scheduling.k8s.io/group-name": self.name(),
                "kumulus.io/owner": f"Other/{self.name()}",
                self.key(): self.name(),
            },
            "finalizers": [self.key()],
            "managedFields": [{"manager": self.name(), "fieldsV1": {f"f:{self.name()}": {}}}],
            "ownerReferences": [{"kind": "ReplicaSet", "name": self.name(), "uid": self.name(), "controller": True}],
            "uid": self.name(),
            "selfLink": f"/{self.name()}",
        }

    def conditions(self) -> list[dict[str, str]]:
        told = {"reason": self.name(), "message": f"because of {self.name()}"}
        return [{"type": "Ready", "status": "False", **told}, {"type": self.name(), "status": "True", **told}]


def node(planted: Planted) -> dict[str, Any]:
    amounts = {"cpu": "8", "memory": "32Gi", "pods": "110", planted.key(): "4"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": planted.metadata(),
        "spec": {
            "providerID": f"aws:///{planted.name()}",
            "podCIDR": planted.name(),
            "taints": [{"key": planted.key(), "value": planted.name(), "effect": "NoSchedule"}],
        },
        "status": {
            "capacity": amounts,
            "allocatable": amounts,
            "addresses": [{"type": "Hostname", "address": planted.name()}],
            "conditions": planted.conditions(),
            "declaredFeatures": [planted.name()],
            "images": [{"names": [planted.name()], "sizeBytes": 1}],
            "nodeInfo": {"architecture": planted.name(), "machineID": planted.name(), "kernelVersion": planted.name()},
            "volumesAttached": [{"name": planted.name(), "devicePath": planted.name()}],
            "config": {"error": planted.name()},
        },
    }


def pod(planted: Planted, namespace: str) -> dict[str, Any]:
    selector = {"matchLabels": planted.labels(), "matchExpressions": [expression(planted)]}
    term = {"labelSelector": selector, "topologyKey": planted.key(), "namespaces": [planted.name()]}
    wanted = {"matchExpressions": [expression(planted)], "matchFields": [expression(planted, "metadata.name")]}
    required = "requiredDuringSchedulingIgnoredDuringExecution"
    container = {
        "name": planted.name(),
        "image": f"{planted.name()}.example/{planted.name()}:{planted.name()}",
        "command": [planted.name()],
        "args": [f"--password={planted.name()}"],
        "env": [{"name": planted.name(), "value": planted.name()}],
        "envFrom": [{"secretRef": {"name": planted.name()}}],
        "ports": [{"name": planted.name(), "containerPort": 80, "hostPort": 80, "hostIP": planted.name()}],
        "resources": {"requests": {"cpu": "1", planted.key(): "1", planted.name(): planted.name()}},
        "volumeMounts": [{"name": planted.name(), "mountPath": f"/{planted.name()}"}],
        "livenessProbe": {"httpGet": {"path": f"/{planted.name()}"}},
        "workingDir": f"/{planted.name()}",
    }
    spec = {
        "nodeName": planted.name(),
        "schedulerName": planted.name(),
        "priorityClassName": planted.name(),
        "serviceAccountName": planted.name(),
        "hostname": planted.name(),
        "subdomain": planted.name(),
        "imagePullSecrets": [{"name": planted.name()}],
        "hostAliases": [{"ip": "10.0.0.1", "hostnames": [planted.name()]}],
        "nodeSelector": planted.labels(),
        "affinity": {
            "nodeAffinity": {required: {"nodeSelectorTerms": [wanted]}},
            "podAntiAffinity": {required: [term]},
        },
        "tolerations": [{"key": planted.key(), "value": planted.name(), "operator": planted.name()}],
        "topologySpreadConstraints": [{"maxSkew": 1, "topologyKey": planted.key(), "labelSelector": selector}],
        "schedulingGates": [{"name": planted.key()}],
        "containers": [container],
        "initContainers": [{**container, "name": planted.name()}],
        "ephemeralContainers": [{"name": planted.name(), "image": planted.name()}],
        "volumes": [
            {"name": planted.name(), "persistentVolumeClaim": {"claimName": planted.name()}},
            {"name": planted.name(), "secret": {"secretName": planted.name()}},
            {"name": planted.name(), "ephemeral": {"volumeClaimTemplate": {"metadata": planted.metadata()}}},
            {"name": planted.name(), "hostPath": {"path": f"/{planted.name()}"}},
        ],
    }
    status = {
        "phase": "Running",
        "message": planted.name(),
        "nominatedNodeName": planted.name(),
        "conditions": planted.conditions(),
        "containerStatuses": [{"name": planted.name(), "imageID": planted.name()}],
    }
    return {"apiVersion": "v1", "kind": "Pod", "metadata": planted.metadata(namespace), "spec": spec, "status": status}


def expression(planted: Planted, key: str = "") -> dict[str, Any]:
    return {"key": key or planted.key(), "operator": "In", "values": [planted.name()]}


def others(planted: Planted, namespace: str) -> Iterator[dict[str, Any]]:
    """What pods refer to, queues, and what a dump has beside what a capture reads."""
    yield {"apiVersion": "v1", "kind": "Namespace", "metadata": {**planted.metadata(), "name": namespace}}
    quotas = [{"name": "cpu", "nominalQuota": "9"}, {"name": planted.key(), "nominalQuota": "9"}]
    flavor = {"coveredResources": ["cpu", planted.key()], "flavors": [{"name": planted.name(), "resources": quotas}]}
    specs: dict[tuple[str, str], dict[str, Any]] = {
        ("kueue.x-k8s.io/v1beta1", "ClusterQueue"): {"cohort": planted.name(), "resourceGroups": [flavor]},
        ("kueue.x-k8s.io/v1beta1", "LocalQueue"): {"clusterQueue": planted.name()},
        ("scheduling.volcano.sh/v1beta1", "Queue"): {"parent": planted.name(), "capability": {planted.key(): "1"}},
        ("scheduling.volcano.sh/v1beta1", "PodGroup"): {"queue": planted.name(), "minMember": 2},
        ("policy/v1", "PodDisruptionBudget"): {"minAvailable": 1, "selector": {"matchLabels": planted.labels()}},
        ("v1", "ResourceQuota"): {"hard": {"cpu": "9", planted.key(): "9"}, "scopes": [planted.name()]},
        ("v1", "PersistentVolumeClaim"): {"volumeName": planted.name(), "storageClassName": planted.name()},
        ("v1", "PersistentVolume"): {
            "csi": {"driver": planted.key(), "volumeHandle": planted.name(), "volumeAttributes": planted.labels()},
            "claimRef": {"namespace": namespace, "name": planted.name(), "uid": planted.name()},
        },
        ("apps/v1", "ReplicaSet"): {"selector": {"matchLabels": planted.labels()}},
        (f"{CANARY}.example/v1", "Queue"): {"parent": planted.name()},
        (f"scheduling.volcano.sh/v1{CANARY}", "Queue"): {"parent": planted.name()},
    }
    for (version, kind), spec in specs.items():
        yield {
            "apiVersion": version,
            "kind": kind,
            "metadata": planted.metadata(namespace),
            "spec": spec,
            "status": {"conditions": planted.conditions()},
        }
    yield {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": planted.metadata(),
        "value": 5,
        "description": planted.name(),
    }
    yield from devices(planted)
    for kind in ("Secret", "ConfigMap"):
        data = {planted.name(): planted.name()}
        yield {"apiVersion": "v1", "kind": kind, "metadata": planted.metadata(namespace), "data": data}
    yield {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": planted.metadata(namespace),
        "message": f"Failed to schedule {planted.name()}",
        "reason": planted.name(),
        "involvedObject": {"kind": "Pod", "name": planted.name(), "namespace": namespace},
        "source": {"component": planted.name(), "host": planted.name()},
    }


def devices(planted: Planted) -> Iterator[dict[str, Any]]:
    """What drivers of DRA say, and classes; of one of them the rule cannot be renamed."""
    driver, attribute, text = planted.name(), planted.name(), planted.name()
    rule = f"device.driver == '{driver}' && device.attributes['{driver}'].{attribute} in ['{text}', '{planted.name()}']"
    for expression in (rule, f'{rule} || device.driver.startsWith("{planted.name()}")'):
        yield {
            "apiVersion": "resource.k8s.io/v1",
            "kind": "DeviceClass",
            "metadata": planted.metadata(),
            "spec": {
                "selectors": [{"cel": {"expression": expression}}],
                "config": [{"opaque": {"driver": driver, "parameters": {"kind": planted.name()}}}],
                "extendedResourceName": planted.key(),
            },
        }
    counters = {planted.name(): {"value": "4"}}
    device = {
        "name": planted.name(),
        "attributes": {
            attribute: {"string": text},
            planted.key(): {"version": f"1.2.3-{planted.name()}"},
            "type": {"string": planted.name()},
        },
        "capacity": {planted.key(): {"value": "80Gi"}, planted.name(): {"value": planted.name()}},
        "consumesCounters": [{"counterSet": planted.name(), "counters": counters}],
        "taints": [{"key": planted.key(), "value": planted.name(), "effect": "NoSchedule"}],
        "bindingConditions": [planted.key()],
        "nodeAllocatableResources": {
            planted.key(): {"mapping": {"capacityKey": planted.key(), "deviceMultiplier": planted.name()}},
        },
    }
    spec = {
        "driver": driver,
        "nodeName": planted.name(),
        "pool": {"name": planted.name(), "generation": 3, "resourceSliceCount": 1},
        "sharedCounters": [{"name": planted.name(), "counters": counters}],
        "devices": [device],
    }
    yield {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceSlice", "metadata": planted.metadata(), "spec": spec}


def as_yaml(value: object) -> str:
    """As kubectl writes it: without aliases for what stands in two places."""
    return str(yaml.safe_dump(json.loads(json.dumps(value))))


def gathered(directory: Path, planted: Planted) -> None:
    """A directory as must-gather makes one, whose paths have names, too; lists, single objects, YAML and JSON."""
    nodes = directory / "cluster-scoped-resources" / "core" / "nodes"
    nodes.mkdir(parents=True)
    while planted.count < 1000:
        one = node(planted)
        (nodes / f"{one['metadata']['name']}.yaml").write_text(as_yaml(one))
        namespace = planted.name()
        core = directory / "namespaces" / namespace / "core"
        core.mkdir(parents=True)
        listed = {"kind": "PodList", "apiVersion": "v1", "items": [pod(planted, namespace), pod(planted, namespace)]}
        (core / "pods.yaml").write_text(as_yaml(listed))
        for number, each in enumerate(others(planted, namespace)):
            (core / f"{number}.json").write_text(json.dumps(each))


def captured(capsys: pytest.CaptureFixture[str], *arguments: str | Path) -> str:
    """What the command prints, on either stream."""
    assert main(["capture", *map(str, arguments)]) == 0
    printed = capsys.readouterr()
    return printed.out + printed.err


def texts(directory: Path) -> str:
    """The files of a directory, the hidden ones and their paths as well."""
    every = [each for each in directory.rglob("*") if each.is_file()]
    return "".join(f"{each}\n{each.read_text()}" for each in every)


def test_of_a_thousand_names_none_is_in_what_the_command_writes_and_prints(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    planted = Planted()
    gathered(tmp_path / "gathered", planted)
    assert planted.count >= 1000
    nodes = len(list((tmp_path / "gathered" / "cluster-scoped-resources" / "core" / "nodes").iterdir()))
    printed = captured(capsys, "--from", tmp_path / "gathered", "--to", tmp_path / "plain")
    assert f"captured {nodes} nodes" in printed
    assert f"and {2 * nodes} pods" in printed
    # They strike: of those that are where a capture looks, hundreds are in one with names.
    kept = texts(tmp_path / "plain")
    assert sum(f"{CANARY}{number + 1:04d}" in kept for number in range(planted.count)) > 250
    printed = captured(capsys, "--from", tmp_path / "gathered", "--to", tmp_path / "shared", "--anonymise")
    assert CANARY not in texts(tmp_path / "shared")
    assert CANARY not in printed
    assert CANARY in (tmp_path / "shared-translation.json").read_text()
    # A Queue of somebody else's group, or of a version that says more than that, is none that a capture reads.
    assert kept.count('"kind": "Queue"') == nodes


def unpacked(archive: Path, to: Path) -> Path:
    with tarfile.open(archive) as packed:
        packed.extractall(to, filter="data")
    return to


def test_an_archive_has_words_for_names_unless_it_is_to_have_names(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    gathered(tmp_path / "gathered", Planted())
    for name in ("one", "two"):
        printed = captured(capsys, "--from", tmp_path / "gathered", "--to", tmp_path / name / "shared.tar.gz")
        assert CANARY not in printed
        assert "every name is a word; what each stands for is in" in printed
        there = {each.name for each in (tmp_path / name).iterdir()}
        assert there == {"shared.tar.gz", "shared-translation.json"}, "nothing else is left beside it"
    archive = tmp_path / "one" / "shared.tar.gz"
    files = unpacked(archive, tmp_path / "unpacked")
    assert CANARY not in texts(files)
    assert sorted(each.name for each in (files / "shared").iterdir()) == ["left-out.md", "stack.yaml", "workload.yaml"]
    # Other words were drawn for the second; with the first one's table it is the same file.
    again, table = tmp_path / "again" / "shared.tar.gz", tmp_path / "one" / "shared-translation.json"
    captured(capsys, "--from", tmp_path / "gathered", "--to", again, "--table", table)
    assert again.read_bytes() == archive.read_bytes()
    named = tmp_path / "named.tgz"
    printed = captured(capsys, "--from", tmp_path / "gathered", "--to", named, "--no-anonymise")
    assert "names are unchanged" in printed
    assert CANARY in texts(unpacked(named, tmp_path / "names"))
    assert stat.S_IMODE(named.stat().st_mode) == 0o600


def test_what_was_read_is_kept_until_the_archive_is_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    gathered(tmp_path / "gathered", Planted())
    # The archive cannot be written, as on a full disk.
    in_the_way = files.unfinished(tmp_path / "shared.tar.gz")
    in_the_way.mkdir()
    arguments = ["capture", "--from", str(tmp_path / "gathered"), "--to", str(tmp_path / "shared.tar.gz")]
    assert main(arguments) == 1
    assert f"{in_the_way.name}: Is a directory" in capsys.readouterr().err
    assert (tmp_path / ".shared.tar.gz.parts" / ".unfinished" / "Node.jsonl").exists()
    in_the_way.rmdir()
    assert main(arguments) == 0
    assert {each.name for each in tmp_path.iterdir()} == {"gathered", "shared.tar.gz", "shared-translation.json"}


@pytest.mark.parametrize("name", ["stack.yaml", "workload.yaml", "left-out.md", "all.tar.gz"])
def test_a_file_of_the_users_is_not_overwritten_and_one_of_a_capture_is(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    gathered(tmp_path / "gathered", Planted())
    directory = tmp_path / "mine"
    directory.mkdir()
    to = directory / name if name == "all.tar.gz" else directory
    (directory / name).write_text("mine: 1\n")
    arguments = ["capture", "--from", str(tmp_path / "gathered"), "--to", str(to)]
    assert main(arguments) == 1
    said = capsys.readouterr().err
    assert (
        f"{directory / name} is there already, and was not written by a capture\n  Name another, or delete it" in said
    )
    assert [each.name for each in directory.iterdir()] == [name], "nothing is read before"
    assert (directory / name).read_text() == "mine: 1\n"
    (directory / name).unlink()
    assert main(arguments) == main(arguments) == 0


def test_where_a_directory_is_there_is_no_archive(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    gathered(tmp_path / "gathered", Planted())
    archive = tmp_path / "shared.tar.gz"
    archive.mkdir()
    assert main(["capture", "--from", str(tmp_path / "gathered"), "--to", str(archive)]) == 1
    assert "shared.tar.gz is a directory, and by its name the place of an archive" in capsys.readouterr().err
    assert {each.name for each in tmp_path.iterdir()} == {"gathered", "shared.tar.gz"}

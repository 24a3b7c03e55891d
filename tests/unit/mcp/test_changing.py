"""What an agent asks for that would reach out of its clusters: programs and files of the user's machine."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import yaml

from kumulus.mcp.changing import Changing
from kumulus.mcp.held import Held
from kumulus.testing import AsyncCluster, ClusterError
from kumulus.testing.manifests import read


@pytest.mark.parametrize(
    ("fields", "place"),
    [
        ({"timeline": [{"at": "1s", "scheduler": "restart"}, {"run": {"command": "id"}}]}, "timeline[1].run"),
        ({"policy": "/tmp/x.py"}, "policy"),
        ({"why": True, "whyPolicy": "x.py"}, "whyPolicy"),
        ({"scheduler": {"name": "kube-scheduler", "binary": "/bin/sh"}}, "scheduler.binary"),
        ({"scheduler": {"name": "kube-scheduler", "config": "/etc/passwd"}}, "scheduler.config"),
        ({"setup": ["/etc/passwd"]}, "setup[0]"),
        (
            {"baseline": "../x.json", "expect": [{"measure": "makespan", "within": "10% of baseline"}]},
            "baseline",
        ),
        ({"workloads": [{"name": "w", "manifest": "/etc/passwd"}]}, "workloads[0].manifest"),
        ({"workloads": [{"name": "w", "replay": {"file": "/etc/passwd"}}]}, "workloads[0].replay.file"),
    ],
)
async def test_an_experiment_starts_no_program_and_reads_no_file(fields: dict[str, object], place: str) -> None:
    experiment = yaml.safe_dump({"name": "x", "workloads": [{"name": "w"}], **fields})
    with pytest.raises(ClusterError) as refused:
        await Changing(Held({})).measure(experiment)
    assert str(refused.value).splitlines() == [
        f"{place}: an agent starts no programs of this machine, and reads none of its files",
        "  Leave it out, or run it yourself: kumulus experiment run FILE --kubeconfig KUBECONFIG",
    ]


async def test_an_experiment_of_workloads_faults_and_a_known_policy_is_run() -> None:
    experiment = {"name": "x", "policy": "FGD", "workloads": [{"name": "w"}], "timeline": [{"scheduler": "restart"}]}
    with pytest.raises(ClusterError, match="which cluster"):
        await Changing(Held({})).measure(yaml.safe_dump(experiment))


async def test_manifests_are_texts_and_no_path_of_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "secret.yaml"
    file.write_text("{apiVersion: v1, kind: Secret, metadata: {name: mine}}\n")
    asked: list[Any] = []

    class Made:
        async def apply(self, manifests: Any) -> list[dict[str, Any]]:
            asked.extend(read(manifests))
            return asked

    @asynccontextmanager
    async def changing(self: Held, name: str) -> AsyncIterator[Any]:
        yield SimpleNamespace(cluster=Made())

    monkeypatch.setattr(Held, "changing", changing)
    found = await Changing(Held({})).apply("{apiVersion: v1, kind: Secret, metadata: {name: mine}}")
    assert found == {"applied": ["Secret mine"]}
    with pytest.raises(ClusterError, match="the text has a document without apiVersion"):
        await Changing(Held({})).apply(str(file))


@pytest.mark.parametrize(
    ("sections", "place"),
    [
        ({"kwok": {"processes": {"web": "./run"}}}, "kwok.processes"),
        ({"autoscaler": {"name": "cluster-autoscaler", "binary": "./run"}}, "autoscaler.binary"),
        ({"gpuOperator": {"binaries": "."}}, "gpuOperator.binaries"),
    ],
)
async def test_a_cluster_of_a_stack_file_starts_no_program_of_the_users(
    sections: dict[str, object], place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    started: list[AsyncCluster] = []
    monkeypatch.setattr(AsyncCluster, "start", started.append)
    for name in ("run", "status-updater", "kwok-gpu-device-plugin"):
        (tmp_path / name).write_text("#!/bin/sh\n")
        (tmp_path / name).chmod(0o755)
    group: dict[str, object] = {
        "name": "a",
        "instanceType": "a3-highgpu-8g",
        "placement": [{"availabilityZone": "z", "replicas": 1}],
    }
    group |= {"minReplicas": 0, "maxReplicas": 3} if "autoscaler" in sections else {}
    group |= {"gpuOperator": {}} if "gpuOperator" in sections else {}
    file = tmp_path / "Pulumi.mine.yaml"
    file.write_text(yaml.safe_dump({"config": {"kumulus:cluster": {"nodeGroups": [group], **sections}}}))
    with pytest.raises(ClusterError) as refused:
        await Changing(Held({})).create(stack_file=str(file))
    assert str(refused.value).splitlines() == [
        f"{place}: an agent starts no programs of this machine, and reads none of its files",
        "  Leave it out, or start it yourself: kumulus cluster up FILE",
    ]
    assert not started

"""A kind cluster under load, a clone of its capture, and the same experiment on both."""

import asyncio
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import yaml

from benchmarks.fidelity import places
from benchmarks.fidelity.situations import IMAGE, Object
from kumulus.extras.capture.lived import grouped
from kumulus.extras.capture.putting import put
from kumulus.kube import Client, load_kubeconfig
from kumulus.testing import Cluster
from tests.support.api import Api
from tests.support.pods import TOLERATE_ALL
from tests.support.project import ROOT

MEASURES = {
    "makespan": "makespan",
    "timeToSchedule.p50": "wait, median",
    "timeToSchedule.p99": "wait, p99",
    "timeToRun.p50": "time to run, median",
}
_JOBS, _LOAD, _CALIBRATING, _RUNS_S, _GPU = 24, 4, 16, 15, "example.com/gpu"
_NAMESPACE = "load"
_SAID = (
    f"{_JOBS} Jobs of one GPU and {_RUNS_S} s, one a second on average, on a kind cluster where others hold {_LOAD} of "
    f"12 GPUs, and on a clone of its capture. The clone's lifecycle was fitted to {_CALIBRATING} such Jobs that ran "
    "before, one a second (`kumulus lifecycle fit`)."
)
"""What is done, in words; part of the recording, which may be older than the words here."""


def record(times: int) -> dict[str, Any]:
    """The measures of each repetition in both places, and what the clone was told of pods."""
    with tempfile.TemporaryDirectory() as home:
        folder = Path(home)
        (folder / "job.yaml").write_text(json.dumps(_job("work")))
        experiment = {
            "name": "cloned", "repetitions": times, "until": "completed", "timeout": "10m", "seed": 47,
            "workloads": [{"name": "work", "jobs": _JOBS, "arrival": {"poisson": 1}, "manifest": "job.yaml"}],
        }  # fmt: skip
        (folder / "cloned.yaml").write_text(json.dumps(experiment))
        with places.kind() as place:
            api = Api(place.kubeconfig)
            lives = _under_load(api)
            _kumulus("capture", "--kubeconfig", str(place.kubeconfig), "--to", str(folder / "capture"))
            real = _measured(folder, place.kubeconfig, "kind")
        stack = yaml.safe_load((folder / "capture" / "stack.yaml").read_text())
        stack["config"]["kumulus:cluster"]["podLifecycles"] = lives
        (folder / "Pulumi.clone.yaml").write_text(json.dumps(stack))
        with Cluster(folder / "Pulumi.clone.yaml") as clone:
            asyncio.run(_put(clone.kubeconfig, folder / "capture" / "workload.yaml"))
            emulated = _measured(folder, clone.kubeconfig, "clone")
    return {"said": _SAID, "kind": real, "clone": emulated, "lifecycles": lives}


def _under_load(api: Api) -> list[Object]:
    """Put load on the cluster: GPUs that stay taken, and Jobs like the experiment's; returns the lives of these."""
    api.create("/api/v1/namespaces", {"metadata": {"name": _NAMESPACE}})
    jobs, pods = (f"/apis/batch/v1/namespaces/{_NAMESPACE}/jobs", f"/api/v1/namespaces/{_NAMESPACE}/pods")
    labels = {"app": "stays"}
    template = {"metadata": {"labels": labels}, "spec": _spec("sleep", "inf")}
    stays = {"replicas": _LOAD, "selector": {"matchLabels": labels}, "template": template}
    deployments = f"/apis/apps/v1/namespaces/{_NAMESPACE}/deployments"
    api.create(deployments, {"metadata": {"name": "stays"}, "spec": stays})
    api.until(deployments, lambda found: found["stays"]["status"].get("readyReplicas") == _LOAD, 300)
    for number in range(_CALIBRATING):
        # As they come in the experiment: many at once keep each other from starting.
        api.create(jobs, _job(f"known-{number}"))
        time.sleep(1)
    api.until(jobs, lambda found: all(each["status"].get("succeeded") for each in found.values()), 300)
    groups, _ = grouped(api.list(pods))
    return [groups["Job"].lifecycle("jobs")]


def _job(name: str) -> Object:
    template = {"spec": {**_spec("sleep", str(_RUNS_S)), "restartPolicy": "Never"}}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name}, "spec": {"template": template}}


def _spec(*command: str) -> Object:
    container = {"name": "main", "image": IMAGE, "command": list(command), "imagePullPolicy": "Never"}
    resources = {"requests": {_GPU: "1"}, "limits": {_GPU: "1"}}
    return {"containers": [{**container, "resources": resources}], "tolerations": TOLERATE_ALL}


async def _put(kubeconfig: Path, workload: Path) -> None:
    async with Client(load_kubeconfig(kubeconfig)) as client:
        found = await put(client, workload, lambda *_: None)
    if found.refused:
        raise SystemExit(f"the clone refused {found.refused}")


def _measured(folder: Path, kubeconfig: Path, name: str) -> list[dict[str, float]]:
    """The measures of the experiment's repetitions on a cluster."""
    results = folder / name
    _kumulus(
        "experiment", "run", str(folder / "cloned.yaml"), "--kubeconfig", str(kubeconfig), "--results", str(results)
    )
    (report,) = results.glob("cloned/*/report.json")
    tests = json.loads(report.read_text())["results"]["tests"]
    known = [each["details"]["measures"] for each in tests]
    return [{name: of[name] for name in MEASURES if name in of} for of in known]


def _kumulus(*arguments: str) -> None:
    subprocess.run([sys.executable, str(ROOT / "kumulus"), *arguments], check=True)

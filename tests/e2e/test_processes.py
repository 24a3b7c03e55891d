"""An add-on whose code runs on the runtime kwok: Kueue by its own chart, with its webhooks, and nothing left of it."""

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import psutil
import pytest

from kumulus import toolchain
from tests.support.api import Api, Refused
from tests.support.project import Project

pytestmark = pytest.mark.e2e
IMAGE = "us-central1-docker.pkg.dev/k8s-staging-images/kueue/kueue"
JOBS = "/apis/batch/v1/namespaces/default/jobs"
KUEUE = "/apis/kueue.x-k8s.io/v1beta2"
GROUP = {
    "name": "gpu",
    "placement": [{"availabilityZone": "z", "replicas": 4}],
    "nodeTemplate": {"capacity": {"cpu": "8", "memory": "32Gi", "pods": "110"}, "taints": []},
}


@pytest.fixture
def chart(tmp_path: Path) -> Path:
    """Kueue's chart, out of the Go module that its program is built from."""
    version = toolchain.version("kueue")
    if not shutil.which("go"):
        pytest.skip("there is no go to fetch Kueue's module with")
    command = ["go", "mod", "download", "-json", f"sigs.k8s.io/kueue@v{version}"]
    found = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    if found.returncode:
        pytest.skip(f"Kueue's module cannot be fetched: {found.stdout}")
    return Path(shutil.copytree(Path(json.loads(found.stdout)["Dir"], "charts", "kueue"), tmp_path / "kueue"))


def job(name: str, cpu: str) -> dict[str, Any]:
    container = {"name": "c", "image": "none", "resources": {"requests": {"cpu": cpu}}}
    metadata = {"name": name, "labels": {"kueue.x-k8s.io/queue-name": "queue"}}
    return {
        "metadata": metadata,
        "spec": {"suspend": False, "template": {"spec": {"restartPolicy": "Never", "containers": [container]}}},
    }


def make(api: Api, kind: str, name: str, spec: dict[str, Any], within: str = "") -> None:
    """Make an object of Kueue's."""
    body = {"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": kind, "metadata": {"name": name}, "spec": spec}
    api.create(f"{KUEUE}/{within}{kind.lower()}s", body)


def test_kueue_by_its_chart_queues_jobs_and_refuses_by_its_webhook_and_goes_with_the_stack(
    project: Project, chart: Path
) -> None:
    for tool in ("kueue", "helm"):
        try:
            toolchain.find(tool)
        except toolchain.ToolMissing as error:
            pytest.skip(str(error))
    project.install_plugins()
    addon = {"name": "kueue", "namespace": "kueue-system", "chart": str(chart)}
    project.write_stack({"nodeGroups": [GROUP], "clusterAddons": [addon], "kwok": {"processes": {IMAGE: "kueue"}}})
    foreseen = project.foresee()
    assert f"pods of {IMAGE} run on this machine" in json.dumps(list(foreseen.messages.values()))
    project.up()
    api = project.api()
    [manager] = api.list("/api/v1/namespaces/kueue-system/pods")
    assert manager["spec"]["nodeName"] == "local"
    assert {each["type"]: each["status"] for each in manager["status"]["conditions"]}["Ready"] == "True"
    assert '"msg":"Starting manager"' in project.kubectl("logs", "-n", "kueue-system", manager["metadata"]["name"])

    flavor = {"name": "default", "resources": [{"name": "cpu", "nominalQuota": "4"}]}
    groups = [{"coveredResources": ["cpu"], "flavors": [flavor]}]
    make(api, "ResourceFlavor", "default", {})
    make(api, "ClusterQueue", "all", {"namespaceSelector": {}, "resourceGroups": groups})
    make(api, "LocalQueue", "queue", {"clusterQueue": "all"}, "namespaces/default/")
    for name, cpu in (("fits", "4"), ("waits", "4")):
        assert api.create(JOBS, job(name, cpu))["spec"]["suspend"] is True, "by its webhook"
    found = api.until(JOBS, lambda found: sorted(each["spec"]["suspend"] for each in found.values()) == [False, True])
    [admitted] = [name for name, each in found.items() if not each["spec"]["suspend"]]
    with pytest.raises(Refused, match=r"admission webhook .* denied the request"):
        api.merge(f"{JOBS}/{admitted}", {"metadata": {"labels": {"kueue.x-k8s.io/queue-name": "other"}}})

    kubelets = [pid for name, pids in project.processes().items() if name.endswith("local-node") for pid in pids]
    programs = [each for pid in kubelets for each in psutil.Process(pid).children(recursive=True)]
    assert any(each.name() == "manager" for each in programs)
    project.destroy()
    assert psutil.wait_procs(programs, timeout=10)[1] == []
    assert not project.cluster().exists()

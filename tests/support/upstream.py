"""Kubernetes' own e2e.test on a cluster of ours: built from its module, run, and compared with what is expected of it.

``python -m tests.support.upstream build FOLDER`` makes e2e.test and ginkgo, which takes some ten minutes of CPU;
``python -m tests.support.upstream run FOLDER [SUITE ...]`` runs suites with what is on PATH, writes their reports into
the folder and prints what differs from tests/data/upstream-e2e.yaml.
"""

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from kumulus import toolchain
from kumulus.kwok.claim_stages import PROVISIONER
from kumulus.testing import Cluster
from tests.support.project import ROOT

EXPECTED = ROOT / "tests" / "data" / "upstream-e2e.yaml"
PROGRAMS = ("e2e.test", "ginkgo")
# What is not of every cluster, or takes long.
_LEFT_OUT = "!Slow && !Disruptive && !Flaky && !/^Feature/"
_OF_NODE = (
    "Pod|InitContainer|Ephemeral|NodeLease|Lease|RuntimeClass|NoExecute|Node Life|Events"
    "|ConfigMap should (fail|run|update)|Secrets should (fail|patch)"
)
# What the API server and the controllers do, without traffic and without files.
_OF_NETWORK = (
    "API Server|DefaultIngressClass|EndpointSlice should (create|support creating)|EndpointSliceMirroring.*Endpoints"
    "|Endpoints|Ingress|Netpol API|Networking.*static URL|ServiceCIDR|Service endpoints latency"
    "|Services should (check|complete|delete a|find|prevent)"
)
_OF_STORAGE = (
    "CSINodes|CSIInlineVolumes|CSIStorageCapacity|StorageClasses|VolumeAttachment|PersistentVolumes CSI"
    "|PVC? Protection|Ephemeralstorage|(ConfigMap|Secrets) should be immutable"
)
SUITES = {
    "scheduling": "sig-scheduling",
    "apps": "sig-apps",
    "api-machinery": "sig-api-machinery",
    "auth": "sig-auth",
    "dra": "DRA",
    "node": "sig-node && !DRA",
    "cli": "sig-cli",
    "network-storage": "sig-network || sig-storage || sig-instrumentation",
}
"""The label filter of each suite."""
_FOCUS = {
    "node": rf"\[sig-node\] ({_OF_NODE})",
    "network-storage": rf"\[sig-(network\] ({_OF_NETWORK})|storage\] ({_OF_STORAGE})|instrumentation\] Events)",
}
# Some specs take 20 % of the nodes for one node at most, or skip themselves where there are more than six.
_NODES = [{"availabilityZone": zone, "replicas": nodes} for zone, nodes in (("z1", 2), ("z2", 2), ("z3", 1))]
_CAPACITY = {"cpu": "8", "memory": "32Gi", "pods": "110", "ephemeral-storage": "100Gi"}
# The images that specs take for missing, which no emulated node can know.
_MISSING = ["webserver:404", "localhost/some-image-that-doesnt-exist"]
STACK = {
    "name": "upstream",
    "kwok": {"events": "kubelet"},
    "nodeGroups": [{"name": "plain", "placement": _NODES, "nodeTemplate": {"taints": [], "capacity": _CAPACITY}}],
    "faults": [{"name": "missing", "kind": "image-pull-error", "pods": {"images": _MISSING}}],
}
_STORAGE = {
    "apiVersion": "storage.k8s.io/v1",
    "kind": "StorageClass",
    "metadata": {"name": "standard", "annotations": {"storageclass.kubernetes.io/is-default-class": "true"}},
    "provisioner": PROVISIONER,
}
_PROCESSES, _LIMIT = 6, "50m"


@dataclass(frozen=True)
class Result:
    """What came of a spec: `passed`, `skipped`, or how it failed, and what it said then."""

    state: str
    message: str = ""


@cache
def expected() -> dict[str, Any]:
    """What is in the file."""
    found: dict[str, Any] = yaml.safe_load(EXPECTED.read_text())
    return found


def needing_containers() -> list[str]:
    """The specs, as regular expressions, that are not run, since something has to run in a container of theirs."""
    return [each for reason in expected()["needContainers"] for each in reason["specs"]]


def listed(kind: str) -> set[str]:
    """The specs of a list, `fail` or `unsteady`."""
    return {each for reason in expected()[kind] for each in reason["specs"]}


@contextmanager
def cluster() -> Iterator[Cluster]:
    """The cluster on which the suites are run."""
    with Cluster(STACK) as made:
        made.apply(_STORAGE)
        yield made


def run(suite: str, kubeconfig: str, folder: Path) -> dict[str, Result]:
    """Run a suite; returns what came of each of its specs."""
    folder.mkdir(parents=True, exist_ok=True)
    options = [f"--procs={_PROCESSES}", f"--timeout={_LIMIT}", "--no-color", "--succinct", f"--output-dir={folder}"]
    options += [f"--label-filter=({SUITES[suite]}) && {_LEFT_OUT}", f"--json-report={suite}.json"]
    options += [f"--focus={_FOCUS[suite]}"] if suite in _FOCUS else []
    options += [f"--skip={each}" for each in needing_containers()]
    about = ["--provider=skeleton", "--allowed-not-ready-nodes=-1", f"--kubeconfig={kubeconfig}"]
    about += ["--disable-log-dump=true", f"--kubectl-path={toolchain.find('kubectl')}"]
    with (folder / f"{suite}.log").open("w") as log:
        command = ["ginkgo", *options, str(shutil.which("e2e.test")), "--", *about]
        subprocess.run(command, stdout=log, stderr=subprocess.STDOUT, cwd=folder, check=False)
    return results(folder / f"{suite}.json")


def results(report: Path) -> dict[str, Result]:
    """What came of each spec, by ginkgo's report."""
    found = {}
    for each in (spec for suite in json.loads(report.read_text()) for spec in suite["SpecReports"] or []):
        # Those that a filter leaves out are skipped without a word.
        if each["LeafNodeType"] == "It" and (each["State"] != "skipped" or "Failure" in each):
            name = " ".join([*(each["ContainerHierarchyTexts"] or []), each["LeafNodeText"]])
            found[name] = Result(each["State"], each.get("Failure", {}).get("Message", ""))
    return found


def changes(suite: str, found: dict[str, Result]) -> list[str]:
    """What differs from the list of expected results, in words."""
    steady = {name: each for name, each in found.items() if name not in listed("unsteady")}
    failed = {name for name, each in steady.items() if each.state not in ("passed", "skipped")}
    passed = {name for name, each in steady.items() if each.state == "passed"}
    said = [f"fails, and should pass: {name}: {found[name].message[:300]}" for name in sorted(failed - listed("fail"))]
    said += [f"passes, and is in the list of failures: {name}" for name in sorted(passed & listed("fail"))]
    count = expected()["passed"][suite]
    return said if said or len(passed) == count else [f"{len(passed)} specs pass, and {count} should"]


def build(folder: Path) -> None:
    """Make e2e.test and ginkgo of the default version's module in a folder; needs go, and the Go module proxy."""
    version = toolchain.kubernetes_versions()[0]
    environment = {**os.environ, "GOFLAGS": "-mod=mod -trimpath -buildvcs=false", "CGO_ENABLED": "0"}

    def go(*arguments: str, where: Path = folder) -> str:
        done = subprocess.run(["go", *arguments], cwd=where, env=environment, check=True, stdout=subprocess.PIPE)
        return done.stdout.decode()

    folder.mkdir(parents=True, exist_ok=True)
    module = json.loads(go("mod", "download", "-json", f"k8s.io/kubernetes@v{version}"))["Dir"]
    source = folder / "kubernetes"
    shutil.copytree(module, source, ignore=shutil.ignore_patterns("vendor", "go.work*"), copy_function=shutil.copy)
    for each in (source, *source.rglob("*")):
        each.chmod(0o755)
    staging = f"v0.{version.partition('.')[2]}"
    text = re.sub(r"^\s+k8s\.io/\S+ => .*\n", "", (source / "go.mod").read_text(), flags=re.MULTILINE)
    (source / "go.mod").write_text(re.sub(r"(k8s\.io/\S+) v0\.0\.0\b(?!-)", rf"\1 {staging}", text))
    for each in (source / "test").rglob("*.go"):
        each.write_text(_sooner(each.read_text()))
    go("build", "-o", "../ginkgo", "github.com/onsi/ginkgo/v2/ginkgo", where=source)
    words = f"-X k8s.io/component-base/version.gitVersion=v{version}"
    go("test", "-c", "-o", "../e2e.test", "-ldflags", words, "./test/e2e", where=source)


def _sooner(text: str) -> str:
    """A file with 150 s where it has 5 to 15 minutes: what has not come by then never does; a CronJob takes 120."""
    # What is added to a time is no timeout: PodCertificateRequests have a least duration.
    return re.sub(r"(?<!\.Add\()\b(5|10|15) \* time\.Minute\b", "150 * time.Second", text)


def _all(folder: Path, suites: list[str]) -> Iterator[str]:
    with cluster() as made:
        for suite in suites or SUITES:
            found = run(suite, str(made.kubeconfig), folder)
            passed = sum(each.state == "passed" for each in found.values())
            yield f"{suite}: {passed} pass of {len(found)}"
            yield from (f"  {each}" for each in changes(suite, found))


if __name__ == "__main__":
    what, where, *rest = sys.argv[1:]
    if what == "build":
        build(Path(where).resolve())
    else:
        for line in _all(Path(where).resolve(), rest):
            print(line, flush=True)

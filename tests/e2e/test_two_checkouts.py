"""Two checkouts of one project, with the same everything, on one cluster of a third: the second is refused."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.api import Refused
from tests.support.project import NODES, Project, node_group

pytestmark = pytest.mark.e2e

YES = ("--yes", "--skip-preview")
_CONFIG_MAPS = "/api/v1/namespaces/kube-system/configmaps"
KINDS = (
    NODES,
    "/api/v1/namespaces",
    _CONFIG_MAPS,
    "/api/v1/namespaces/research/serviceaccounts",
    "/api/v1/namespaces/research/resourcequotas",
    "/apis/rbac.authorization.k8s.io/v1/namespaces/research/rolebindings",
    "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings",
    "/apis/resource.k8s.io/v1/deviceclasses",
    "/apis/resource.k8s.io/v1/resourceslices",
)
_NOT_READY = {"NoSchedule", "NoExecute"}
# Those say when somebody wrote, not what.
_TIMES = ("resourceVersion", "managedFields", "lastHeartbeatTime", "lastProbeTime")


def timeless(found: Any) -> Any:
    if isinstance(found, dict):
        return {key: timeless(value) for key, value in found.items() if key not in _TIMES}
    return [timeless(each) for each in found] if isinstance(found, list) else found


def effects(node: Any) -> set[str]:
    """What the taint of a node that is not ready does to pods."""
    taints = node["spec"].get("taints", [])
    return {each["effect"] for each in taints if each["key"] == "node.kubernetes.io/not-ready"}


class Shared:
    """The cluster, and the two checkouts in the order in which they come."""

    def __init__(self, root: Path) -> None:
        self.owner = Project(root / "owner")
        self.first, self.second = self.checkouts = (Project(root / "one"), Project(root / "two"))

    def begin(self) -> None:
        """Bring the cluster up, and write the checkouts' stack files."""
        self.owner.write_stack({"nodeGroups": [node_group("own", 1, gpus=8)]})
        self.owner.up()
        for project in self.checkouts:
            project.install_plugins()
            self.write(project, 3)
        # kube-controller-manager writes it into each namespace some seconds after its start.
        self.owner.api().until(_CONFIG_MAPS, lambda found: "kube-root-ca.crt" in found)

    def write(self, project: Project, replicas: int) -> None:
        gpus = node_group("a100", replicas, gpus=8) | {"gpuProduct": "NVIDIA-A100-SXM4-80GB", "resourceSlices": {}}
        fault = {"name": "tired", "kind": "not-ready", "target": {"names": ["a100-z-0"]}}
        cluster = {
            "runtime": "existing",
            "existing": {"kubeconfig": str(self.owner.kubeconfig())},
            "kwokCharts": {"install": False},
            "nodeGroups": [gpus],
            "tenants": [{"name": "research", "quota": {"pods": 3}}],
            "faults": [fault],
        }
        project.write_stack(cluster, stack="shared")

    def settled(self) -> None:
        """Wait for the second of the taints that Kubernetes puts on a node that is not ready.

        kube-controller-manager writes NoSchedule at once and NoExecute at its eviction rate, up to 23 s later on a busy
        machine: a picture that is taken between the two differs from the next, whatever Kumulus does.
        """
        self.owner.api().until(NODES, lambda found: effects(found["a100-z-0"]) >= _NOT_READY, timeout=120)

    def objects(self) -> dict[str, str]:
        """What is there, byte for byte, but for when it was written."""
        api = self.owner.api()
        found: dict[str, str] = {}
        for kind in KINDS:
            try:
                items = api.list(kind)
            except Refused:
                continue
            found |= {
                f"{kind}/{each['metadata']['name']}": json.dumps(timeless(each), sort_keys=True) for each in items
            }
        return found

    def refused(self, *command: str) -> str:
        """The second's command is refused, and leaves what is there as it is."""
        before = self.objects()
        answer = self.second.pulumi(*command)
        assert answer.code != 0, answer.text
        assert "belongs to the stack" in answer.text, answer.text
        assert "Traceback" not in answer.text
        assert self.objects() == before, command
        return answer.text

    def close(self) -> None:
        for project in (*self.checkouts, self.owner):
            project.close()


@pytest.fixture
def shared(tmp_path: Path) -> Iterator[Shared]:
    made = Shared(tmp_path)
    try:
        made.begin()
        yield made
    finally:
        made.close()


def test_the_second_is_refused_in_the_preview_and_the_first_stays_as_it_is(shared: Shared) -> None:
    empty = shared.objects()
    shared.first.up()
    shared.settled()
    # Which object is named, a node, the namespace or the device class, is a matter of time: Pulumi ends at the first.
    shared.refused("preview")
    shared.refused("up", *YES)
    shared.write(shared.first, 5)
    shared.first.up()
    shared.refused("up", *YES)
    before = shared.objects()
    shared.second.destroy()
    assert shared.objects() == before
    shared.first.preview("--refresh", "--expect-no-changes")

    shared.first.destroy()
    assert shared.objects() == empty
    # With the first gone, there is nothing in the second's way.
    shared.second.up()
    shared.second.destroy()
    assert shared.objects() == empty

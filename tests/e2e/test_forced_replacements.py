"""`pulumi up --replace`, `pulumi state taint` and another name: afterwards a cluster is what the program says."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from kumulus.provider.resources.registry import CLASSES
from tests.support.pods import TOLERATE_ALL, is_ready
from tests.support.project import CLUSTER, NODES, POOL, Project, node_group

pytestmark = pytest.mark.e2e

FAULT, NAMESPACE, IDENTITY = (f"kumulus:index:{name}" for name in ("Fault", "Namespace", "StackIdentity"))
GPU = "nvidia.com/gpu"
STACK: dict[str, Any] = {
    "name": "dev",
    "nodeGroups": [node_group("a100", 4, cpu="96", memory="1360Gi", gpus=8)],
    "faults": [{"name": "lost-gpu", "kind": "gpu-fell-off-bus", "target": {"names": ["a100-z-0"]}}],
    "tenants": [{"name": "research", "quota": {"pods": 3}}],
}
TEAM = "/api/v1/namespaces/research"


def pod() -> dict[str, Any]:
    spec = {"containers": [{"name": "c", "image": "none"}], "tolerations": TOLERATE_ALL, "nodeName": "a100-z-1"}
    return {"metadata": {"name": "theirs"}, "spec": spec}


@dataclass
class Replacing:
    """A stack that is up, with a pod that somebody has put into it."""

    project: Project

    def urns(self, *types: str) -> list[str]:
        """The resources of these types, or all that the plugin serves; components are none."""
        found = [each for each in self.project.state()["resources"] if each.get("custom")]
        ours = {each.token for each in CLASSES}
        return [each["urn"] for each in found if each["type"] in (types or ours)]

    def seen(self) -> dict[str, Any]:
        """What is there: nodes, pods and the tenant's objects by UID, and what the fault takes."""
        api = self.project.api("dev")
        named = (f"{TEAM}/{kind}" for kind in ("pods", "resourcequotas", "serviceaccounts", "secrets"))
        rights = "/apis/rbac.authorization.k8s.io/v1/namespaces/research/rolebindings"
        return {
            "nodes": self.project.node_uids("dev"),
            "ready": all(map(is_ready, api.list(NODES))),
            "gpus": sorted(node["status"]["allocatable"][GPU] for node in api.list(NODES)),
            "namespace": api.get(TEAM)["metadata"]["uid"],
            **{path: {each["name"]: each["uid"] for each in api.metadata(path)} for path in (*named, rights)},
        }

    def unchanged(self) -> None:
        """The next update finds nothing to do, nor does one that refreshes first."""
        self.project.up("--expect-no-changes")
        self.project.preview("--refresh", "--expect-no-changes")


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Replacing]:
    project = Project(tmp_path_factory.mktemp("project"))
    project.write_stack(STACK, stack="dev")
    project.up()
    project.api("dev").create(f"{TEAM}/pods", pod())
    project.api("dev").until(f"{TEAM}/pods", lambda pods: pods["theirs"]["status"]["phase"] == "Running")
    yield Replacing(project)
    project.close()


def test_whatever_is_replaced_in_a_cluster_stays_with_all_that_is_in_it(stack: Replacing) -> None:
    before = stack.seen()
    assert (len(before["nodes"]), before["gpus"]) == (4, ["7", "8", "8", "8"])
    for urn in stack.urns(POOL, FAULT, NAMESPACE):
        assert "1 replaced" in stack.project.up("--replace", urn).text
        assert stack.seen() == before, urn
    stack.unchanged()
    urns = [urn for urn in stack.urns() if not urn.endswith(("-control-plane", "stack-identity"))]
    assert stack.project.pulumi("state", "taint", *urns, "--yes").code == 0
    assert f"{len(urns)} replaced" in stack.project.up().text
    assert stack.seen() == before
    stack.unchanged()


def test_a_replaced_identity_marks_all_anew_and_keeps_it(stack: Replacing) -> None:
    before = stack.seen()
    stack.project.up("--replace", *stack.urns(IDENTITY))
    assert stack.seen() == before
    [identity] = [each["outputs"]["stackId"] for each in stack.project.state()["resources"] if each["type"] == IDENTITY]
    nodes = stack.project.api("dev").list(NODES)
    assert {node["metadata"]["labels"]["kumulus.io/stack-id"] for node in nodes} == {identity}
    assert identity in (stack.project.cluster("dev") / "kumulus.json").read_text()
    stack.unchanged()


def test_a_cluster_is_replaced_with_consent_and_has_everything_again(stack: Replacing) -> None:
    before, [urn] = stack.seen(), stack.urns(CLUSTER)
    refused = stack.project.pulumi("up", "--yes", "--skip-preview", "--replace", urn)
    assert refused.code != 0
    assert "cluster dev is there and would be made again, without the pods, Jobs" in refused.text
    assert stack.seen() == before
    stack.unchanged()

    shown = stack.project.up("--replace", urn, shown=True)
    assert "cluster dev is there and is made again, without the pods, Jobs" in shown.text
    after = stack.seen()
    assert after["namespace"] != before["namespace"]
    assert after["nodes"].keys() == before["nodes"].keys()
    assert not {*after["nodes"].values()} & {*before["nodes"].values()}
    assert (after["ready"], after["gpus"], after[f"{TEAM}/pods"]) == (True, before["gpus"], {})
    assert {*after[f"{TEAM}/resourcequotas"]} == {*before[f"{TEAM}/resourcequotas"]}
    stack.unchanged()


def test_nothing_is_left_of_it_by_a_destroy_that_runs_the_program(stack: Replacing) -> None:
    stack.project.destroy("--run-program")
    assert stack.project.processes() == {}
    assert not stack.project.home.exists()


RAW = """
import pulumi

config = pulumi.Config("raw")
parent = pulumi.ComponentResource("raw:index:Parent", "parent") if config.get("parent") else None
renamed = lambda name: f"{name}{config.get('suffix') or ''}"


class Raw(pulumi.CustomResource):
    def __init__(self, kind, called, outputs, /, *, within=None, aliased="", **properties):
        opts = pulumi.ResourceOptions(replace_on_changes=["labels"], parent=within)
        opts.aliases = [pulumi.Alias(name=aliased, parent=pulumi.ROOT_STACK_RESOURCE)] if config.get("alias") else None
        super().__init__(f"kumulus:index:{kind}", called, {**dict.fromkeys(outputs), **properties}, opts)


stack_id = pulumi.get(Raw("StackIdentity", "identity", ["stackId"], aliased="identity"), "stackId")
called = {"name": "dev", "stackId": stack_id, "aliased": "cluster"}
cluster = Raw("Cluster", "cluster" + (config.get("cluster") or ""), ["identity", "kubeconfig"], **called)
place = {
    "clusterName": "dev",
    "kubeconfig": pulumi.get(cluster, "kubeconfig"),
    "clusterIdentity": pulumi.get(cluster, "identity"),
    "stackId": stack_id,
}
labels = {"example.com/team": config.get("team") or "a"}
spec = {"name": "p", "replicas": 3, "labels": labels, "capacity": {"cpu": "8"}}
pool = Raw("NodePool", renamed("pool"), ["replicas"], within=parent, aliased="pool", **spec, **place)
nodes = pulumi.get(pool, "replicas").apply(lambda _: {"p": "0"})
node = {"labels": {"example.com/state": "odd"}}
Raw("Fault", renamed("fault"), [], within=parent, aliased="fault", name="f", nodes=nodes, node=node, **place)
space = {"name": "research", "stack": "organization/raw/dev", "labels": labels}
Raw("Namespace", renamed("namespace"), [], within=parent, aliased="namespace", **space, **place)
"""


@pytest.fixture
def raw(project: Project) -> Project:
    """A program that declares the plugin's resources without the components."""
    (project.directory / "__main__.py").write_text(RAW)
    return project


def raw_seen(project: Project) -> dict[str, Any]:
    nodes = project.api("dev").list(NODES)
    labels = [node["metadata"]["labels"] for node in nodes]
    namespace = project.api("dev").get(TEAM)["metadata"]
    return {
        "nodes": {node["metadata"]["name"]: node["metadata"]["uid"] for node in nodes},
        "teams": {*(each["example.com/team"] for each in labels), namespace["labels"]["example.com/team"]},
        "odd": sum("example.com/state" in each for each in labels),
        "namespace": namespace["uid"],
    }


# The new one comes first; tests/unit/provider/test_replacements.py has both orders for each kind of resource.
def test_a_program_without_our_components_is_safe(raw: Project) -> None:
    def up(*arguments: str, **config: str) -> dict[str, Any]:
        known.update(config)
        raw.write_config({f"raw:{key}": value for key, value in known.items()}, stack="dev")
        raw.up(*arguments)
        return raw_seen(raw)

    def unchanged() -> None:
        """The next update finds nothing to do; tests/unit/provider/test_replacements.py looks after each kind."""
        found = raw_seen(raw)
        raw.up("--expect-no-changes")
        assert raw_seen(raw) == found

    def urns(*names: str) -> list[str]:
        found = [each["urn"] for each in raw.state()["resources"]]
        return [part for urn in found if urn.endswith(names) for part in ("--replace", urn)]

    known: dict[str, str] = {}
    made = up(team="a")
    assert (len(made["nodes"]), made["teams"], made["odd"]) == (3, {"a"}, 1)
    assert up(*urns("::pool", "::fault", "::namespace")) == made
    # `replaceOnChanges`; then other names with an alias, without one, and another parent.
    made["teams"] = {"b"}
    assert up(team="b") == made
    assert up(suffix="-aliased", alias="yes") == made
    assert up(suffix="-renamed", alias="") == made
    assert up(parent="yes") == made
    unchanged()
    for again in (up(cluster="-renamed"), up(*urns("::cluster-renamed"))):
        assert {**again, "nodes": {*again["nodes"]}, "namespace": ""} == {
            **made,
            "nodes": {*made["nodes"]},
            "namespace": "",
        }
        assert not {*again["nodes"].values()} & {*made["nodes"].values()}
        made = again
    unchanged()
    assert len(raw.processes()) == 5
    raw.destroy()
    assert raw.processes() == {}

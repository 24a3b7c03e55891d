"""Benchmarks of other projects as experiments: what they become, and what is said to be left out.

The files here are miniatures in the form of the projects' own, not copies.
"""

from pathlib import Path
from typing import Any

import pytest
import yaml

from kumulus.cli import main
from kumulus.extras.lab.file.load import load

POD = """
apiVersion: v1
kind: Pod
metadata: {generateName: small-, labels: {color: blue}}
spec:
  priority: 7
  containers: [{name: c, image: none, resources: {requests: {cpu: 100m}}}]
"""
NODE = """
apiVersion: v1
kind: Node
metadata: {generateName: n-, labels: {disk: ssd}}
spec: {taints: [{key: gone, effect: NoSchedule}]}
status: {capacity: {cpu: "2", memory: 4Gi, pods: "20"}}
"""
CASES = """
- name: Basic
  featureGates: {GangScheduling: false}
  defaultPodTemplatePath: templates/pod.yaml
  workloadTemplate:
  - {opcode: createNodes, countParam: $nodes}
  - {opcode: createNodes, count: 3, nodeTemplatePath: templates/node.yaml,
     labelNodePrepareStrategy: {labelKey: zone, labelValues: [a, b]}}
  - {opcode: createPods, countParam: $before}
  - {opcode: churn, mode: create}
  - {opcode: createPods, count: 2, countMultiplierParam: $nodes, podTemplatePath: templates/indexed.yaml,
     collectMetrics: true}
  workloads:
  - {name: 4Nodes_Fast, threshold: 270, params: {nodes: 4, before: 400}}
  - {name: 5Nodes, params: {nodes: 5, before: 0}}
- name: Latency
  workloadTemplate:
  - {opcode: createPods, count: 1, podTemplatePath: templates/pod.yaml, collectMetrics: true}
  workloads:
  - {name: one, threshold: 5, thresholdMetricSelector: {name: scheduler_seconds}}
- name: Templated
  workloadTemplate:
  - {opcode: createPods, count: 1, podTemplatePath: templates/pod.yaml, skipWaitToCompletion: true}
  - {opcode: createPods, count: 1, podTemplatePath: templates/conditional.yaml, collectMetrics: true}
  workloads: [{name: one}]
"""
GENERATOR = """
cohorts:
- className: cohort
  count: 2
  queuesSets:
  - className: cq
    count: 1
    nominalQuota: 96
    borrowingLimit: 10
    reclaimWithinCohort: Any
    withinClusterQueue: LowerPriority
    workloadsSets:
    - {count: 3, creationIntervalMs: 500, workloads: [{className: small, runtimeMs: 200, priority: 50, request: 2}]}
"""
RANGES = """
cmd: {maxWallMs: 425_000, maxrss: 5}
clusterQueueClassesMinUsage: {cq: 55}
wlClassesMaxAvgTimeToAdmissionMs: {small: 2_000, large: 11_000}
"""
LOADER = """
{{$count := DefaultParam .CL2_COUNT 3}}
name: Load
namespace: {number: 2}
tuningSets: [{name: even, qpsLoad: {qps: 5}}]
steps:
- name: measure
  measurements:
  - {Identifier: a, Method: SchedulingThroughput, Params: {action: gather, threshold: 100}}
  - {Identifier: b, Method: APIResponsivenessPrometheus, Params: {action: start}}
- name: create
  phases:
  - namespaceRange: {min: 1, max: 2}
    replicasPerNamespace: {{$count}}
    tuningSet: even
    objectBundle:
    - {basename: web, objectTemplatePath: deployment.yaml, templateFillMap: {Replicas: 4}}
    - {basename: conf, objectTemplatePath: configmap.yaml}
- name: delete
  phases:
  - namespaceRange: {min: 1, max: 2}
    replicasPerNamespace: 0
    tuningSet: even
    objectBundle: [{basename: web, objectTemplatePath: deployment.yaml}]
"""
DEPLOYMENT = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: {{.Name}}}
spec:
  replicas: {{.Replicas}}
  selector: {matchLabels: {name: {{.Name}}}}
  template:
    metadata: {labels: {name: {{.Name}}}}
    spec: {containers: [{name: c, image: none}]}
"""


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory with the miniatures, and the current one."""
    templates = tmp_path / "templates"
    templates.mkdir()
    indexed = POD.replace("generateName: small-", "name: pod-{{.Index}}")
    conditional = POD.replace("priority: 7", "priority: {{with .high}}9{{end}}")
    for name, text in (("pod", POD), ("node", NODE), ("indexed", indexed), ("conditional", conditional)):
        (templates / f"{name}.yaml").write_text(text)
    (tmp_path / "baseline").mkdir()
    (tmp_path / "baseline" / "generator.yaml").write_text(GENERATOR)
    (tmp_path / "baseline" / "rangespec.yaml").write_text(RANGES)
    (tmp_path / "performance-config.yaml").write_text(CASES)
    (tmp_path / "loader.yaml").write_text(LOADER)
    (tmp_path / "deployment.yaml").write_text(DEPLOYMENT)
    (tmp_path / "configmap.yaml").write_text("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: {{.Name}}}\n")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def imported(*arguments: str) -> int:
    return main.main(["experiment", "import", *arguments])


def stack(place: Path, name: str) -> dict[str, Any]:
    made: dict[str, Any] = yaml.safe_load((place / "imported" / f"Pulumi.{name}.yaml").read_text())
    found: dict[str, Any] = made["config"]["kumulus:cluster"]
    return found


def test_a_case_of_scheduler_perf_is_an_experiment_on_its_nodes_with_its_threshold(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert imported("scheduler_perf", "performance-config.yaml", "--case", "Basic", "--workload", "4Nodes_Fast") == 0
    loaded = load(place / "imported" / "basic-4nodes-fast.yaml")
    before, measured = loaded.experiment.workloads
    assert (before.jobs, before.measured, before.arrival.once) == (400, False, None)
    assert (measured.jobs, measured.measured, measured.arrival.once) == (8, True, "scheduled")
    assert measured.replace == {"KUMULUS_INDEX": "{index}"}
    assert [(each.measure, each.atLeast) for each in loaded.experiment.expect] == [("scheduling.rate", 270)]
    (made,) = loaded.setup
    assert (made["kind"], made["value"]) == ("PriorityClass", 7)
    (pod,) = yaml.safe_load_all(loaded.manifests["before-1"])
    assert pod["metadata"] == {"generateName": "small-", "labels": {"color": "blue"}}
    assert pod["spec"]["priorityClassName"] == made["metadata"]["name"]
    cluster = stack(place, "basic-4nodes-fast")
    assert cluster["kwok"] == {"featureGates": {"GangScheduling": False}}
    groups = [(each["placement"][0]["replicas"], each["nodeTemplate"]) for each in cluster["nodeGroups"]]
    assert [replicas for replicas, _ in groups] == [4, 2, 1]
    assert groups[0][1] == {"capacity": {"cpu": "4", "memory": "32Gi", "pods": "110"}, "taints": []}
    assert groups[2][1]["metadata"]["labels"] == {"disk": "ssd", "zone": "b"}
    assert groups[2][1]["taints"] == [{"key": "gone", "effect": "NoSchedule"}]
    said = capsys.readouterr().out
    assert "  not expressed: churn: no field of an experiment does this" in said


def test_affinity_to_pods_of_other_namespaces_is_to_those_of_the_run(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    term = "{topologyKey: zone, namespaces: [sched-0], labelSelector: {matchLabels: {color: blue}}}"
    near = f"affinity: {{podAffinity: {{requiredDuringSchedulingIgnoredDuringExecution: [{term}]}}}}"
    (place / "templates" / "indexed.yaml").write_text(POD.replace("priority: 7", near))
    assert imported("scheduler_perf", "performance-config.yaml", "--case", "Basic", "--workload", "5Nodes") == 0
    (pod,) = yaml.safe_load_all(load(place / "imported" / "basic-5nodes.yaml").manifests["measured-1"])
    ((kept,),) = pod["spec"]["affinity"]["podAffinity"].values()
    assert kept == {"topologyKey": "zone", "labelSelector": {"matchLabels": {"color": "blue"}}}
    assert "not expressed: namespaces of affinity: all pods are in one" in capsys.readouterr().out


def test_all_cases_are_imported_unless_one_is_named_and_what_is_measured_is_never_left_out(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert imported("scheduler_perf", "performance-config.yaml") == 0
    there = {each.name for each in (place / "imported").glob("*.yaml")}
    assert {"basic-4nodes-fast.yaml", "basic-5nodes.yaml", "latency-one.yaml"} <= there
    said = capsys.readouterr().out
    assert "not written: templated-one: createPods: conditional.yaml, line 6: {{with .high}} of Go's templates" in said
    assert "  not expressed: threshold 5 of scheduler_seconds" in said
    assert not load(place / "imported" / "latency-one.yaml").experiment.expect
    assert load(place / "imported" / "basic-5nodes.yaml").experiment.workloads[0].arrival.after == 0


def test_kueues_generator_is_its_queues_with_their_workloads_and_the_ranges_beside_it(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert imported("kueue", "baseline/generator.yaml") == 0
    loaded = load(place / "imported" / "kueue-baseline.yaml")
    experiment = loaded.experiment
    assert (experiment.scheduler.name, experiment.until) == ("kueue", "completed")
    assert [(each.queue, each.jobs, each.priority) for each in experiment.workloads] == [
        ("cohort-0-cq-0", 3, 50),
        ("cohort-1-cq-0", 3, 50),
    ]
    assert experiment.workloads[0].arrival.rate == 2
    queues = [each["spec"] for each in loaded.setup if each["kind"] == "ClusterQueue"]
    assert [each["cohortName"] for each in queues] == ["cohort-0", "cohort-1"]
    assert queues[0]["preemption"] == {"reclaimWithinCohort": "Any", "withinClusterQueue": "LowerPriority"}
    assert [(each.measure, each.atMost) for each in experiment.expect] == [
        ("makespan", "425000ms"),
        ("jobTimeToSchedule.mean", "11000ms"),
    ]
    assert stack(place, "kueue-baseline")["nodeGroups"][0]["placement"][0]["replicas"] == 3
    said = capsys.readouterr().out
    for lack in (
        "thresholds of each class's time to admission",
        "threshold cmd.maxrss",
        "the queues' usage: {'cq': 55}",
    ):
        assert lack in said


def test_a_topology_of_kueues_is_that_of_the_nodes(place: Path) -> None:
    topology = """
topology:
  name: t
  levels:
  - {name: block, count: 2, nodeLabel: cloud.provider.com/topology-block}
  - {name: rack, count: 3, nodeLabel: cloud.provider.com/topology-rack}
  - {name: node, count: 4, nodeLabel: kubernetes.io/hostname, capacity: {cpu: "96", memory: 256Gi}}
"""
    text = GENERATOR.replace("request: 2", "request: 2, podCount: 4, tasConstraint: required, tasLevel: x.example/rack")
    (place / "baseline" / "generator.yaml").write_text(text + topology)
    assert imported("kueue", "baseline/generator.yaml") == 0
    (group,) = stack(place, "kueue-baseline")["nodeGroups"]
    assert group["placement"][0]["replicas"] == 24
    assert group["topology"] == {"preset": "kueue", "nodesPerRack": 4, "racksPerBlock": 3}
    loaded = load(place / "imported" / "kueue-baseline.yaml")
    assert loaded.experiment.workloads[0].annotations == {"kueue.x-k8s.io/podset-required-topology": "x.example/rack"}
    assert loaded.setup[0]["kind"] == "Topology"
    assert loaded.setup[1]["spec"] == {"topologyName": "t"}


def test_a_test_of_clusterloader_is_its_phases_of_objects_with_pods(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert imported("clusterloader2", "loader.yaml") == 0
    loaded = load(place / "imported" / "cl2-load.yaml")
    (web,) = loaded.experiment.workloads
    assert (web.name, web.jobs, web.arrival.rate) == ("web", 6, 5)
    assert "replicas: 4" in loaded.manifests["web"]
    assert [(each.measure, each.atLeast) for each in loaded.experiment.expect] == [("scheduling.ratePeak", 100)]
    said = capsys.readouterr().out
    for lack in (
        "conf: ConfigMap has no pods",
        "a later phase that changes or deletes web",
        "measurement APIResponsivenessPrometheus",
        "one step after the other",
    ):
        assert f"  not expressed: {lack}" in said


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("scheduler_perf", "loader.yaml"), "loader.yaml"),
        (("scheduler_perf", "deployment.yaml"), "deployment.yaml"),
        (("scheduler_perf", "baseline/generator.yaml"), "is no list of cases with workloadTemplate"),
        (
            ("scheduler_perf", "performance-config.yaml", "--case", "Basics"),
            "there is no case Basics\n  Write one of Bas",
        ),
        (("scheduler_perf", "performance-config.yaml", "--workload", "9"), "there is no workload 9"),
        (("kueue", "performance-config.yaml"), "has no cohorts"),
        (("kueue", "baseline/rangespec.yaml"), "has no cohorts"),
        (("kueue", "nowhere.yaml"), "nowhere.yaml"),
        (("clusterloader2", "performance-config.yaml"), "has no steps"),
        (("clusterloader2", "deployment.yaml"), "line 4: {{.Name}} of Go's templates is not read\n  Write its value"),
        (("clusterloader2", "loader.yaml", "--case", "Basic"), "--case and --workload are of scheduler_perf"),
    ],
)
def test_a_file_of_another_kind_is_refused_in_words(
    place: Path, capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], said: str
) -> None:
    assert imported(*arguments) == 1
    error = capsys.readouterr().err
    assert said in error
    assert "Traceback" not in error
    assert not (place / "imported").exists()


@pytest.mark.parametrize(
    "broken", ["cohorts: [1]", "cohorts: [{count: 1}]", "cohorts: [{className: a, queuesSets: 1}]"]
)
def test_a_file_with_something_missing_is_refused_in_words(
    place: Path, capsys: pytest.CaptureFixture[str], broken: str
) -> None:
    (place / "baseline" / "generator.yaml").write_text(broken)
    assert imported("kueue", "baseline/generator.yaml") == 1
    assert "generator.yaml is not as a file of kueue is written" in capsys.readouterr().err


def test_an_import_goes_over_an_earlier_one_and_over_nothing_else(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert imported("kueue", "baseline/generator.yaml") == 0
    assert imported("kueue", "baseline/generator.yaml") == 0
    file = place / "imported" / "kueue-baseline.yaml"
    file.write_text("name: mine\n")
    assert imported("kueue", "baseline/generator.yaml") == 1
    assert "kueue-baseline.yaml is there already, and was not written by an import" in capsys.readouterr().err
    assert file.read_text() == "name: mine\n"

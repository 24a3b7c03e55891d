"""What a workload's files ask for, as a scheduler counts it."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from kumulus.extras.advise.apart import HOST, Pods
from kumulus.extras.advise.demand import ORDERS, PodShape, Unadvisable, WorkloadDemand, largest_first, made
from kumulus.extras.advise.workloads import Workloads, of_files, of_objects

CONTAINERS = [{"name": "c", "resources": {"requests": {"cpu": "1"}}}]


def pod_spec(cpu: str = "1", memory: str = "1Gi", **fields: Any) -> dict[str, Any]:
    return {"containers": [{"name": "c", "resources": {"requests": {"cpu": cpu, "memory": memory}}}], **fields}


def workload(kind: str, name: str, spec: dict[str, Any], **fields: Any) -> dict[str, Any]:
    template = {"metadata": {"labels": {"app": name}}, "spec": spec}
    return {"kind": kind, "metadata": {"name": name}, "spec": {"template": template, **fields}}


def demand_of(found: Workloads) -> WorkloadDemand:
    return made(found.pods, found.daemons, found.uncounted)


def demand_for(*objects: dict[str, Any]) -> WorkloadDemand:
    return demand_of(of_objects(objects))


def test_pods_that_are_alike_are_counted_together() -> None:
    found = demand_for(
        workload("Deployment", "a", pod_spec(), replicas=3),
        workload("Job", "b", pod_spec(), parallelism=4, completions=2),
        workload("StatefulSet", "c", pod_spec("500m", "1025Ki"), replicas=5),
        {"kind": "Pod", "metadata": {"name": "d"}, "spec": pod_spec()},
        {"kind": "Service", "metadata": {"name": "e"}, "spec": {}},
    )
    assert [(each.name, each.count) for each in found.shapes] == [("a", 6), ("c", 5)]
    assert found.shapes[1].wants == {"pods": 1, "cpu": 500, "memory": 1025 << 10}
    assert found.pods == 11


def test_a_limit_counts_where_there_is_no_request() -> None:
    limits = {"cpu": "2", "nvidia.com/gpu": "1"}
    spec: dict[str, Any] = {"containers": [{"resources": {"limits": limits, "requests": {"cpu": "1"}}}]}
    [found] = demand_for({"kind": "Pod", "metadata": {"name": "p"}, "spec": spec}).shapes
    assert found.wants == {"pods": 1, "cpu": 1000, "nvidia.com/gpu": 1}
    spec = {"containers": [{"name": "c"}], "resources": {"limits": {"cpu": "4"}}}
    [found] = demand_for({"kind": "Pod", "metadata": {"name": "p"}, "spec": spec}).shapes
    assert found.wants == {"pods": 1, "cpu": 4000}, "of the pod as a whole, too"


def test_each_node_has_one_pod_of_a_daemon_set() -> None:
    found = demand_for(workload("DaemonSet", "logs", pod_spec("100m")), workload("Deployment", "a", pod_spec()))
    assert found.everywhere == {"pods": 1, "cpu": 100, "memory": 1 << 30}
    assert found.pods == 1


def test_a_job_set_has_the_pods_of_all_its_jobs() -> None:
    job = {"spec": {"parallelism": 4, "completions": 4, "template": {"spec": pod_spec()}}}
    job_set = {
        "kind": "JobSet",
        "metadata": {"name": "j"},
        "spec": {"replicatedJobs": [{"replicas": 3, "template": job}]},
    }
    assert demand_for(job_set).pods == 12


def test_what_has_pods_but_not_how_many_is_named() -> None:
    cron = {"kind": "CronJob", "metadata": {"name": "nightly"}, "spec": {"jobTemplate": {"spec": {}}}}
    cron["spec"]["jobTemplate"]["spec"] = {"parallelism": 50, "template": {"spec": pod_spec()}}  # type: ignore[index]
    worker = {"replicas": 16, "template": {"spec": pod_spec()}}
    train = {"kind": "PyTorchJob", "metadata": {"name": "train"}, "spec": {"pytorchReplicaSpecs": {"Worker": worker}}}
    service = {"kind": "Service", "metadata": {"name": "s"}, "spec": {}}
    found = of_objects([cron, train, service, workload("Deployment", "none", pod_spec(), replicas=0)])
    assert found.uncounted == ("CronJob nightly", "PyTorchJob train")
    with pytest.raises(Unadvisable, match="not known how many pods these have: CronJob nightly, PyTorchJob train"):
        demand_of(found)
    demand = demand_of(found.plus(of_objects([cron, workload("Deployment", "a", pod_spec())])))
    assert (demand.pods, demand.uncounted) == (1, ("CronJob nightly", "PyTorchJob train"))


def test_devices_that_pods_claim_are_left_to_the_scheduler() -> None:
    claims = [{"name": "gpu", "resourceClaimTemplateName": "two"}]
    found = demand_for(workload("Deployment", "a", pod_spec(resourceClaims=claims)))
    assert found.unmodelled == ("resourceClaims",)


def test_rules_between_pods_are_named_but_for_one_on_each_node() -> None:
    own = {"labelSelector": {"matchLabels": {"app": "a"}}, "topologyKey": HOST}
    apart = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [own]}}
    found = demand_for(workload("Deployment", "a", pod_spec(affinity=apart), replicas=2))
    assert found.shapes[0].apart
    assert found.unmodelled == ()
    spread = pod_spec(topologySpreadConstraints=[{"maxSkew": 1}], affinity={"podAffinity": {"x": 1}})
    found = demand_for(workload("Deployment", "b", spread))
    assert not found.shapes[0].apart
    assert found.unmodelled == ("podAffinity", "topologySpreadConstraints")


def test_an_experiments_pods_are_those_that_its_run_creates(tmp_path: Path) -> None:
    file = tmp_path / "experiment.yaml"
    file.write_text(
        "name: e\nworkloads: [{name: w, jobs: 3, workers: 4, requests: {cpu: '2'}, gpuProduct: X},"
        " {name: d, kind: Deployment, jobs: 1, workers: 5, requests: {cpu: '1'}}]"
    )
    found = demand_of(of_files([file]))
    assert [(each.name, each.count, each.wants["cpu"]) for each in found.shapes] == [("w", 12, 2000), ("d", 5, 1000)]
    assert found.shapes[0].spec == {"nodeSelector": {"nvidia.com/gpu.product": "X"}}


@pytest.mark.parametrize(("second", "later"), [(0, False), (60, True)])
def test_that_pods_come_one_after_the_other_is_known(tmp_path: Path, second: int, later: bool) -> None:
    (tmp_path / "t.csv").write_text(f"arrival,cpu\n0,1\n{second},1\n")
    file = tmp_path / "experiment.yaml"
    trace = "{file: t.csv, columns: {arrival: arrival, cpu: cpu}}"
    file.write_text(f"name: e\nworkloads: [{{name: w, arrival: {{trace: {trace}}}}}]")
    assert of_files([file]).later is later
    assert of_objects([]).plus(of_files([file])).later is later


def test_a_trace_that_asks_for_a_share_of_the_fleet_is_no_workload_of_its_own(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("arrival,cpu,gpus\n0,1,8\n0,1,0\n")
    trace = "{file: t.csv, stay: true, inflate: 1.3, columns: {cpu: cpu, gpus: gpus}}"
    file = tmp_path / "e.yaml"
    file.write_text(f"name: e\nworkloads: [{{name: w, kind: Pod, arrival: {{trace: {trace}}}}}]")
    with pytest.raises(Unadvisable, match=r"arrival\.trace\.inflate asks for a share of the GPUs of a fleet"):
        of_files([file])
    file.write_text(file.read_text().replace(" inflate: 1.3,", ""))
    assert sorted(each.wants.get("nvidia.com/gpu", 0) for each in demand_of(of_files([file])).shapes) == [0, 8]


def test_manifests_and_experiments_add_up(tmp_path: Path) -> None:
    (tmp_path / "e.yaml").write_text("name: e\nworkloads: [{name: w, jobs: 1, workers: 4, requests: {cpu: '2'}}]")
    (tmp_path / "m.yaml").write_text(
        "kind: Pod\napiVersion: v1\nmetadata: {name: a}\nspec: {containers: [{name: c}]}\n---\n"
        "kind: Pod\napiVersion: v1\nmetadata: {name: b}\nspec: {containers: [{name: c}]}\n"
    )
    found = demand_of(of_files([tmp_path / "e.yaml", tmp_path / "m.yaml"]))
    assert [(each.name, each.count) for each in found.shapes] == [("w", 4), ("a", 2)]


@pytest.mark.parametrize(
    ("objects", "said"),
    [
        ([], "the workload has no pods"),
        ([workload("Deployment", "a", pod_spec(), replicas=0)], "the workload has no pods"),
        ([{"kind": "Deployment", "spec": {"template": {}}}], "workload: the Deployment has no pod template with"),
        ([workload("Deployment", "a", {"containers": [{"resources": {"requests": {"cpu": None}}}]})], "is no quantity"),
        ([workload("Deployment", "a", pod_spec("much"))], "a: a request is no quantity"),
        ([workload("Deployment", "a", pod_spec("-1"))], "a: asks for a negative amount of cpu"),
    ],
)
def test_what_cannot_be_advised_on_is_told(objects: list[dict[str, Any]], said: str) -> None:
    with pytest.raises(Unadvisable, match=said):
        demand_of(of_objects(objects))


def test_the_largest_come_first_by_whatever_they_ask_most_of() -> None:
    found = made(
        [
            Pods("small", pod_spec("1", "1Gi"), {}, 1),
            Pods("wide", pod_spec("9", "1Gi"), {}, 1),
            Pods("tall", pod_spec("1", "60Gi"), {}, 1),
            Pods("middle", pod_spec("5", "1Gi"), {}, 1),
        ]
    )
    assert [each.name for each in largest_first(found.shapes)] == ["wide", "tall", "middle", "small"]


def test_the_pods_to_create_keep_the_rules_that_are_left_to_the_scheduler() -> None:
    spread = {"maxSkew": 1, "topologyKey": "zone", "labelSelector": {"matchLabels": {"app": "a"}}}
    found = demand_for(
        workload("Deployment", "a", pod_spec(topologySpreadConstraints=[spread]), replicas=2),
        workload("Deployment", "b", pod_spec(tolerations=[{"operator": "Exists"}]), replicas=3),
    )
    # Alike for the programme, which counts requests, and not for a scheduler.
    assert [each.count for each in found.shapes] == [5]
    assert [(each.count, dict(each.spec), dict(each.labels)) for each in found.whole] == [
        (2, {"topologySpreadConstraints": [spread]}, {"app": "a"}),
        (3, {"tolerations": [{"operator": "Exists"}]}, {"app": "b"}),
    ]


def test_labels_make_no_difference_where_nothing_selects_pods() -> None:
    found = demand_for(*(workload("Deployment", name, pod_spec(), replicas=2) for name in ("a", "b")))
    assert [(each.count, dict(each.labels)) for each in found.whole] == [(4, {})]


def test_pods_that_need_what_few_machines_have_come_first_then_the_largest() -> None:
    gpu = {"containers": [{"resources": {"requests": {"cpu": "1", "nvidia.com/gpu": "1"}}}]}
    found = demand_for(
        workload("Deployment", "small", pod_spec("1")),
        workload("Deployment", "large", pod_spec("9", "9Gi")),
        workload("Deployment", "gpu", gpu),
    )
    assert [each.name for each in largest_first(found.shapes)] == ["gpu", "large", "small"]


def test_pods_are_ordered_by_one_resource_after_what_only_some_machines_have() -> None:
    gpu = "nvidia.com/gpu"
    shapes = [
        PodShape("memory", {"cpu": 1000, "memory": 9000}, 1),
        PodShape("cpu", {"cpu": 9000, "memory": 1000}, 1),
        PodShape("one", {"cpu": 2000, "memory": 9000, gpu: 1}, 1),
        PodShape("one-busy", {"cpu": 8000, "memory": 1000, gpu: 1}, 1),
        PodShape("two", {"cpu": 1000, "memory": 1000, gpu: 2}, 1),
    ]
    named = {by: [each.name for each in largest_first(shapes, by)] for by in ORDERS}
    assert named["cpu"] == ["two", "one-busy", "one", "cpu", "memory"]
    assert named["memory"] == ["two", "one", "one-busy", "memory", "cpu"]
    assert named["share"] == ["one", "two", "one-busy", "memory", "cpu"]


def away_from(*, key: str = HOST, **labels: str) -> dict[str, Any]:
    """A rule to have no node with pods of these labels."""
    return {"topologyKey": key, "labelSelector": {"matchLabels": labels}}


def pods(name: str, *terms: dict[str, Any], count: int = 3, namespace: str = "default", **labels: str) -> Pods:
    rules = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": list(terms)}} if terms else {}
    spec = {"containers": CONTAINERS, "affinity": rules}
    return Pods(name, spec, {"app": name, **labels}, count, namespace)


def groups(found: WorkloadDemand) -> list[tuple[str, int, bool]]:
    return [(each.name, each.count, bool(each.apart)) for each in found.shapes]


def test_workloads_that_keep_away_from_each_other_are_one_group() -> None:
    term = away_from(tier="db")
    found = made([pods("a", term, tier="db"), pods("b", term, tier="db"), pods("c")])
    # Of what they ask for they are alike, so that they are one shape.
    assert groups(found) == [("a", 6, True), ("c", 3, False)]
    assert found.unmodelled == ()


def test_a_stateful_sets_live_pods_are_one_group_though_each_has_a_label_of_its_own() -> None:
    term = away_from(app="a")
    live = [
        pods("a", term, count=1, **{"app": "a", "statefulset.kubernetes.io/pod-name": f"a-{at}"}) for at in range(3)
    ]
    assert groups(made(live)) == [("a", 3, True)]


def test_pods_that_ask_for_different_amounts_are_different_shapes_of_one_group() -> None:
    term = away_from(tier="db")
    large = pods("b", term, tier="db")
    large = replace(large, spec={**large.spec, "containers": [*CONTAINERS, *CONTAINERS]})
    one, two = made([pods("a", term, tier="db"), large]).shapes
    assert one.apart == two.apart != ""


def test_the_same_labels_in_another_namespace_are_other_pods() -> None:
    term = away_from(tier="db")
    found = made([pods("a", term, tier="db"), pods("b", term, tier="db", namespace="other")])
    one, two = found.shapes
    assert one.apart != two.apart
    assert found.unmodelled == ()


def test_a_rule_that_no_group_expresses_is_left_to_the_scheduler() -> None:
    own, of_tier = away_from(app="a"), away_from(tier="db")
    for some in (
        # From another workload, which does not keep away itself; from it and from itself; from only some of a group.
        [pods("a", away_from(app="b")), pods("b")],
        [pods("a", of_tier, tier="db"), pods("b", tier="db")],
        [pods("a", own, away_from(app="b")), pods("b", away_from(app="b")), pods("c", away_from(app="c"))],
        [
            pods("a", of_tier, tier="db"),
            pods("b", of_tier, tier="db"),
            pods("c", away_from(app="a"), away_from(app="c")),
        ],
        # By zone; and where it is not known whom it selects.
        [pods("a", away_from(key="topology.kubernetes.io/zone", app="a"))],
        [pods("a", {**own, "namespaceSelector": {"matchLabels": {"x": "y"}}})],
    ):
        assert made(some).unmodelled == ("podAntiAffinity",), some


def test_a_label_that_a_controller_adds_tells_workloads_apart() -> None:
    term = {**away_from(tier="db"), "matchLabelKeys": ["pod-template-hash"]}
    found = made([pods("a", term, tier="db"), pods("b", term, tier="db", other="x")])
    assert groups(found) == [("a", 3, True), ("b", 3, True)]
    assert found.unmodelled == ()

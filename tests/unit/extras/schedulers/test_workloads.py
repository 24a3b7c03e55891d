"""Gangs and queues in the words of each scheduler."""

import json
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
import yaml

from kumulus.extras.schedulers import SchedulerError, registry, templates, workloads
from kumulus.extras.schedulers.templates import Manifest
from kumulus.extras.schedulers.volcano import places
from kumulus.extras.schedulers.yunikorn import workloads as yunikorn

GANGS = [name for name in registry.NAMES if registry.get(name).gangs]


def pod_spec(cpu: str = "500m") -> Manifest:
    resources = {"requests": {"cpu": cpu, "nvidia.com/gpu": "1"}, "limits": {"cpu": "2", "memory": "1Gi"}}
    return {
        "containers": [{"name": "c", "image": "none", "resources": resources}],
        "nodeSelector": {"zone": "a"},
        "tolerations": [{"operator": "Exists"}],
        "priorityClassName": "high",
    }


def job(name: str = "train", pods: int = 4, **spec: Any) -> Manifest:
    template = {"metadata": {"labels": {"app": name}}, "spec": pod_spec()}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name, "namespace": "team"},
        "spec": {"parallelism": pods, "completions": pods, "template": template, **spec},
    }


def test_volcano_has_a_pod_group_that_its_pods_name() -> None:
    group, made = workloads.gang("volcano", [job()], "train", queue="research")
    assert (group["kind"], group["apiVersion"]) == ("PodGroup", "scheduling.volcano.sh/v1beta1")
    assert group["metadata"] == {"name": "train", "namespace": "team"}
    assert group["spec"] == {
        "minMember": 4,
        "minResources": {"cpu": "2", "memory": "4Gi", "nvidia.com/gpu": "4"},
        "queue": "research",
        "priorityClassName": "high",
    }
    template = made["spec"]["template"]
    assert template["metadata"]["annotations"] == {"scheduling.k8s.io/group-name": "train"}
    assert template["spec"]["schedulerName"] == "volcano"


def test_a_gang_of_volcano_is_in_one_hypernode_of_a_levels_tier() -> None:
    for level, tier in (("rack", "rack"), ("nvlinkDomain", "nvlink-domain")):
        group, _ = workloads.gang("volcano", [job()], "train", topology=level)
        assert group["spec"]["networkTopology"] == {"mode": "hard", "highestTierName": tier}


@pytest.mark.parametrize(
    ("tiers", "said"),
    [
        ([], "knows no rack in this cluster: it has no HyperNodes\n"),
        ([("zone", 2), ("block", 1), ("", 1)], "the tiers of its HyperNodes are block, zone\n  Name one of them"),
        ([("rack", 1), ("block", 2), ("rack", 2)], "the HyperNodes of rack are of the tiers 1 and 2"),
    ],
)
def test_a_level_that_volcano_would_ignore_is_refused(tiers: list[tuple[str, int]], said: str) -> None:
    with pytest.raises(SchedulerError) as raised:
        places.check(tiers, ["rack"])
    assert said in str(raised.value)
    places.check([("rack", 1), ("zone", 2)], ["rack", "zone"])


def test_coscheduling_has_a_pod_group_that_its_pods_are_labelled_with() -> None:
    group, made = workloads.gang("coscheduling", [job()], "train", minimum=3)
    assert (group["kind"], group["apiVersion"]) == ("PodGroup", "scheduling.x-k8s.io/v1alpha1")
    assert group["spec"] == {"minMember": 3}
    template = made["spec"]["template"]
    assert template["metadata"]["labels"] == {"app": "train", "scheduling.x-k8s.io/pod-group": "train"}
    assert template["spec"]["schedulerName"] == "coscheduling"


def test_kai_has_a_pod_group_that_the_podgrouper_leaves_its_pods_in() -> None:
    group, made = workloads.gang("kai", [job()], "train", minimum=3, queue="research", topology="example.com/rack")
    assert (group["kind"], group["apiVersion"]) == ("PodGroup", "scheduling.run.ai/v2alpha2")
    assert group["metadata"] == {"name": "train", "namespace": "team"}
    assert group["spec"] == {
        "minMember": 3,
        "queue": "research",
        "priorityClassName": "high",
        "topologyConstraint": {"topology": "research", "requiredTopologyLevel": "example.com/rack"},
    }
    skip = {"kai.scheduler/skip-podgrouper": "true"}
    template = made["spec"]["template"]
    assert made["metadata"]["annotations"] == skip
    assert template["metadata"]["annotations"] == {"pod-group-name": "train", **skip}
    assert template["metadata"]["labels"] == {"app": "train", "kai.scheduler/queue": "research"}
    assert template["spec"]["schedulerName"] == "kai-scheduler"


def test_a_queue_of_kai_counts_in_millicores_megabytes_and_gpus_below_the_root() -> None:
    (made,) = workloads.queue("kai", "research", "", {"cpu": "1500m", "memory": "1Gi", "nvidia.com/gpu": "8"})
    assert made["apiVersion"] == "scheduling.run.ai/v2"
    shares = made["spec"]["resources"]
    assert made["spec"]["parentQueue"] == "kumulus-root"
    assert {kind: (share["quota"], share["limit"]) for kind, share in shares.items()} == {
        "cpu": (1500, 1500),
        "memory": (1073.741824, 1073.741824),
        "gpu": (8, 8),
    }
    levels = ("example.com/rack", "kubernetes.io/hostname")
    topology, unlimited = workloads.queue("kai", "other", "", {"cpu": "1"}, levels)
    assert (topology["apiVersion"], topology["metadata"]["name"]) == ("kai.scheduler/v1alpha1", "other")
    assert topology["spec"] == {"levels": [{"nodeLabel": each} for each in levels]}
    assert unlimited["spec"]["resources"]["gpu"] == {"quota": -1, "limit": -1, "overQuotaWeight": 1}
    for quota, said in (({"example.com/fpga": "1"}, "has no example.com/fpga"), ({"cpu": "much"}, "Write a quantity")):
        with pytest.raises(SchedulerError, match=said):
            workloads.queue("kai", "research", "", quota)


def test_a_single_workload_of_kai_is_in_a_queue_and_grouped_by_the_podgrouper() -> None:
    (made,) = workloads.single("kai", job())
    template = made["spec"]["template"]
    assert template["metadata"]["labels"]["kai.scheduler/queue"] == "default"
    assert "annotations" not in template["metadata"]


def test_a_job_is_a_gang_of_kubernetes_own_by_itself_in_a_place_of_the_topology() -> None:
    (made,) = workloads.gang("native", [job()], "train", minimum=3, topology="example.com/rack", disruption="all")
    assert made["spec"]["scheduling"] == {
        "schedulingPolicy": {"gang": {"minCount": 3}},
        "schedulingConstraints": {"topology": [{"key": "example.com/rack"}]},
        "disruptionMode": {"all": {}},
    }
    assert "schedulerName" not in made["spec"]["template"]["spec"]


def test_pods_of_several_workloads_are_a_gang_of_kubernetes_own_by_a_group_of_their_priority() -> None:
    group, one, other = workloads.gang("native", [job("a"), job("b", 2)], "train", topology="zone", disruption="single")
    assert (group["apiVersion"], group["kind"]) == ("scheduling.k8s.io/v1beta1", "PodGroup")
    assert group["metadata"] == {"name": "train", "namespace": "team"}
    assert group["spec"] == {
        "schedulingPolicy": {"gang": {"minCount": 6}},
        "priorityClassName": "high",
        "schedulingConstraints": {"topology": [{"key": "zone"}]},
        "disruptionMode": {"single": {}},
    }
    for made in (one, other):
        assert made["spec"]["template"]["spec"]["schedulingGroup"] == {"podGroupName": "train"}
        assert "scheduling" not in made["spec"]


def test_a_job_that_never_preempts_has_a_group_of_that_policy_as_its_controller_could_not_make_it() -> None:
    never = job()
    never["spec"]["template"]["spec"] |= {"priorityClassName": "patient", "preemptionPolicy": "Never"}
    for made, policy in (
        (workloads.gang("native", [never], "train"), {"gang": {"minCount": 4}}),
        (workloads.single("native", never), {"basic": {}}),
    ):
        group, its = made
        assert (group["kind"], group["metadata"]["name"]) == ("PodGroup", "train")
        never_of = {"priorityClassName": "patient", "preemptionPolicy": "Never"}
        assert group["spec"] == {"schedulingPolicy": policy, **never_of}
        assert its["spec"]["template"]["spec"]["schedulingGroup"] == {"podGroupName": "train"}
        assert "scheduling" not in its["spec"]
    (alone,) = workloads.single("native", job())
    assert "schedulingGroup" not in alone["spec"]["template"]["spec"]


@pytest.mark.parametrize("policy", ["", "Never"])
def test_slices_of_a_gang_of_kubernetes_own_are_groups_in_a_group(policy: str) -> None:
    asked = job()
    if policy:
        asked["spec"]["template"]["spec"]["preemptionPolicy"] = policy
    gang = workloads.gang("native", [asked], "train", topology="block", disruption="all")
    workload, whole, *parts = workloads.slices("native", gang, "rack", 2)
    same = {"priorityClassName": "high", "disruptionMode": {"all": {}}}
    if policy:
        same["preemptionPolicy"] = policy
    of_gang = {
        **same,
        "schedulingPolicy": {"gang": {"minGroupCount": 2}},
        "schedulingConstraints": {"topology": [{"key": "block"}]},
    }
    of_slice = {
        **same,
        "schedulingPolicy": {"gang": {"minCount": 2}},
        "schedulingConstraints": {"topology": [{"key": "rack"}]},
    }
    assert (workload["kind"], workload["metadata"]) == ("Workload", {"name": "train", "namespace": "team"})
    assert workload["spec"]["compositePodGroupTemplates"] == [
        {"name": "gang", **of_gang, "podGroupTemplates": [{"name": "slice", **of_slice}]}
    ]
    assert (whole["kind"], whole["apiVersion"]) == ("CompositePodGroup", "scheduling.k8s.io/v1alpha3")
    assert whole["metadata"] == workload["metadata"]
    assert whole["spec"] == {**of_gang, "workloadRef": {"workloadName": "train", "templateName": "gang"}}
    belongs = {
        "workloadRef": {"workloadName": "train", "templateName": "slice"},
        "parentCompositePodGroupName": "train",
    }
    for number, (group, its) in enumerate(zip(parts[::2], parts[1::2], strict=True)):
        name = f"train-{number}"
        assert (group["kind"], group["metadata"]) == ("PodGroup", {"name": name, "namespace": "team"})
        assert group["spec"] == {**of_slice, **belongs}
        assert (its["kind"], its["metadata"]["name"]) == ("Job", name)
        assert (its["spec"]["parallelism"], its["spec"]["completions"]) == (2, 2)
        assert its["spec"]["template"]["spec"]["schedulingGroup"] == {"podGroupName": name}
        assert "scheduling" not in its["spec"]
    assert len(parts) == 4


def test_a_gang_of_which_some_pods_suffice_has_as_many_slices_as_these_fill() -> None:
    gang = workloads.gang("native", [job()], "train", minimum=3)
    _, whole, *parts = workloads.slices("native", gang, "rack", 2)
    assert whole["spec"]["schedulingPolicy"] == {"gang": {"minGroupCount": 2}}
    assert templates.size([each for each in parts if each["kind"] == "Job"]) == 4
    assert "scheduling" in gang[0]["spec"], "the gang is as it was"


def test_slices_of_a_gang_of_kueue_are_annotations_of_its_pods() -> None:
    (made,) = workloads.slices("kueue", workloads.gang("kueue", [job()], "train", topology="block"), "rack", 2)
    assert made["spec"]["template"]["metadata"]["annotations"] == {
        "kueue.x-k8s.io/podset-required-topology": "block",
        "kueue.x-k8s.io/podset-slice-required-topology": "rack",
        "kueue.x-k8s.io/podset-slice-size": "2",
    }


def test_kueue_takes_a_suspended_job_and_leaves_its_pods_to_the_default_scheduler() -> None:
    (made,) = workloads.gang("kueue", [job()], "train", queue="research")
    assert made["metadata"]["labels"] == {"kueue.x-k8s.io/queue-name": "research"}
    assert made["spec"]["suspend"] is True
    assert "schedulerName" not in made["spec"]["template"]["spec"]


def test_yunikorn_has_task_groups_in_annotations() -> None:
    (made,) = workloads.gang("yunikorn", [job()], "train", queue="research")
    template = made["spec"]["template"]
    (group,) = json.loads(template["metadata"]["annotations"]["yunikorn.apache.org/task-groups"])
    assert group == {
        "name": "train-0",
        "minMember": 4,
        "minResource": {"cpu": "500m", "memory": "1Gi", "nvidia.com/gpu": "1"},
        "nodeSelector": {"zone": "a"},
        "tolerations": [{"operator": "Exists"}],
    }
    assert template["metadata"]["annotations"]["yunikorn.apache.org/task-group-name"] == "train-0"
    assert template["metadata"]["labels"] == {"app": "train", "applicationId": "train", "queue": "root.research"}
    assert template["spec"]["schedulerName"] == "yunikorn"


def test_a_placeholder_of_yunikorn_has_the_labels_by_which_its_gangs_pods_look_for_each_other() -> None:
    selectors = [{"matchLabels": {"app": "train"}}, {"matchExpressions": [{"key": "tier", "operator": "Exists"}]}]
    near, apart = ({"labelSelector": each, "topologyKey": "zone"} for each in selectors)
    affinity = {
        "podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [near]},
        "podAntiAffinity": {
            "preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 1, "podAffinityTerm": apart}]
        },
    }
    spread = [{"labelSelector": {"matchLabels": {"set": "one", "app": "other"}}, "topologyKey": "rack"}]
    for spec, sought in (
        ({"affinity": affinity}, {"app": "train", "tier": "1"}),
        ({"topologySpreadConstraints": spread}, {"app": "train", "set": "one"}),
        ({}, {}),
    ):
        together = job()
        together["spec"]["template"]["metadata"]["labels"] |= {"tier": "1", "set": "one", "user": "someone"}
        together["spec"]["template"]["spec"] |= spec
        (made,) = workloads.gang("yunikorn", [together], "train")
        annotations = made["spec"]["template"]["metadata"]["annotations"]
        (group,) = json.loads(annotations["yunikorn.apache.org/task-groups"])
        assert group.get("labels", {}) == sought
        assert spec.items() <= group.items()


def test_a_gang_of_several_templates_counts_the_pods_of_all() -> None:
    jobset = {
        "apiVersion": "jobset.x-k8s.io/v1alpha2",
        "kind": "JobSet",
        "metadata": {"name": "set", "namespace": "team"},
        "spec": {
            "replicatedJobs": [
                {"name": "driver", "template": {"spec": job(pods=1)["spec"]}},
                {"name": "workers", "replicas": 2, "template": {"spec": job(pods=3)["spec"]}},
            ]
        },
    }
    group, _ = workloads.gang("volcano", [jobset], "set")
    assert group["spec"]["minMember"] == 7
    (made,) = workloads.gang("yunikorn", [jobset], "set", minimum=5)
    first = made["spec"]["replicatedJobs"][0]["template"]["spec"]["template"]
    groups = json.loads(first["metadata"]["annotations"]["yunikorn.apache.org/task-groups"])
    assert [(each["name"], each["minMember"]) for each in groups] == [("set-0", 1), ("set-1", 4)]


@pytest.mark.parametrize("name", registry.NAMES)
def test_the_callers_manifests_stay_as_they_are(name: str) -> None:
    given = job()
    workloads.single(name, given)
    if name in GANGS:
        workloads.gang(name, [given], "train")
    assert given == job()


@pytest.mark.parametrize("name", registry.NAMES)
def test_a_single_workload_names_its_scheduler(name: str) -> None:
    (made,) = workloads.single(name, job())
    expected = "default-scheduler" if name == "kueue" else registry.get(name).scheduler_name
    assert made["spec"]["template"]["spec"].get("schedulerName", "default-scheduler") == expected


def test_a_users_configuration_can_name_another_scheduler() -> None:
    (made,) = workloads.single("kube-scheduler", job(), scheduler_name="mine")
    assert made["spec"]["template"]["spec"]["schedulerName"] == "mine"
    group, made = workloads.gang("coscheduling", [job()], "train", scheduler_name="mine")
    assert made["spec"]["template"]["spec"]["schedulerName"] == "mine"
    assert "template" not in group["spec"]


def test_queues_have_quotas() -> None:
    (made,) = workloads.queue("volcano", "research", "team", {"cpu": "64"})
    assert made["spec"] == {"weight": 1, "reclaimable": True, "capability": {"cpu": "64"}}
    flavor, cluster_queue, local_queue = workloads.queue("kueue", "research", "team", {"cpu": "64", "memory": "1Ti"})
    (group,) = cluster_queue["spec"]["resourceGroups"]
    assert group["coveredResources"] == ["cpu", "memory"]
    assert group["flavors"][0]["name"] == flavor["metadata"]["name"]
    assert group["flavors"][0]["resources"][1] == {"name": "memory", "nominalQuota": "1Ti"}
    assert local_queue["metadata"] == {"name": "research", "namespace": "team"}
    assert local_queue["spec"] == {"clusterQueue": "research"}
    topology, flavor, *_ = workloads.queue("kueue", "research", "team", {"cpu": "64"}, ["zone", "rack"])
    assert topology["spec"] == {"levels": [{"nodeLabel": "zone"}, {"nodeLabel": "rack"}]}
    assert flavor["spec"] == {"nodeLabels": {"kubernetes.io/os": "linux"}, "topologyName": "research"}
    (partition,) = yaml.safe_load(yunikorn.queues({"research": {"vcore": "64"}, "rest": {}}))["partitions"]
    assert partition["queues"][0]["queues"] == [
        {"name": "research", "resources": {"max": {"vcore": "64"}}},
        {"name": "rest"},
    ]


def test_requests_count_limits_init_containers_and_overhead_as_the_scheduler_does() -> None:
    spec = pod_spec()
    spec["initContainers"] = [{"name": "i", "resources": {"requests": {"cpu": "3"}}}]
    spec["overhead"] = {"memory": "100Mi"}
    found = templates.written(templates.requests({"spec": spec}))
    assert found == {"cpu": "3", "memory": "1124Mi", "nvidia.com/gpu": "1"}


@pytest.mark.parametrize("scheduler", registry.NAMES)
def test_a_key_without_a_value_is_one_that_is_missing(scheduler: str) -> None:
    spec = {"parallelism": None, "completions": None, "template": {"metadata": None, "spec": pod_spec()}}
    bare = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "train", "labels": None}, "spec": spec}
    made = workloads.single(scheduler, bare)
    if registry.get(scheduler).gangs:
        made += workloads.gang(scheduler, [bare], "train")
    assert {templates.size([each]) for each in made if each["kind"] == "Job"} == {1}


def parts(*pods: int) -> list[Manifest]:
    return [{"name": str(at), "template": {"spec": job(pods=count)["spec"]}} for at, count in enumerate(pods)]


@pytest.mark.parametrize("scheduler", ["coscheduling", "native", "volcano"])
def test_a_gang_whose_pods_are_not_created_together_is_refused_as_it_would_wait_for_itself(scheduler: str) -> None:
    spec: Manifest = {"replicas": 3, "template": {"metadata": {}, "spec": pod_spec()}}
    one_by_one: Manifest = {"kind": "StatefulSet", "metadata": {"name": "db"}, "spec": spec}
    order = {"startupPolicy": {"startupPolicyOrder": "InOrder"}, "replicatedJobs": parts(2, 4)}
    in_order = {"kind": "JobSet", "metadata": {"name": "train"}, "spec": order}
    for each in (one_by_one, in_order):
        with pytest.raises(SchedulerError, match="are created only once others run"):
            workloads.gang(scheduler, [each], "g")
    # As many as come at first suffice, and all come at first.
    assert workloads.gang(scheduler, [in_order], "g", minimum=2)
    assert workloads.gang(scheduler, [{**one_by_one, "spec": {**spec, "replicas": 1}}], "g")
    assert workloads.gang(scheduler, [{**one_by_one, "spec": {**spec, "podManagementPolicy": "Parallel"}}], "g")
    # YuniKorn holds the gang's place by pods of its own.
    assert workloads.gang("yunikorn", [one_by_one], "g")


def test_a_job_has_no_more_pods_at_once_than_it_has_completions() -> None:
    assert templates.size([job(pods=8, completions=3)]) == 3
    assert templates.size([job(pods=8, completions=None)]) == 8


def later(act: Callable[..., object]) -> Callable[..., Callable[[], object]]:
    return lambda *given, **more: partial(act, *given, **more)


gang, single, queue = later(workloads.gang), later(workloads.single), later(workloads.queue)
slices = later(workloads.slices)
UNCLEAR = job(template={"spec": {"containers": [{"resources": {"requests": {"cpu": "1x"}}}]}})


def other(kind: str, **fields: Any) -> Manifest:
    return {"kind": kind, "metadata": {"name": "d"}, **fields}


@pytest.mark.parametrize(
    ("act", "words"),
    [
        (single("slurm", job()), "there is no scheduler 'slurm'\n  Write one of kube-scheduler,"),
        (gang("kube-scheduler", [job()], "g"), "knows no gangs\n  Use one of native, coscheduling, volcano"),
        (gang("volcano", [], "g"), "gang 'g' has no workload"),
        (gang("volcano", [job()], "g", minimum=5), "a minimum of 5 of 4 pods\n  Write a number from 1"),
        (gang("coscheduling", [job()], "g", queue="q"), "'g': coscheduling has no queues\n  Leave queue 'q' out, or"),
        (gang("volcano", [job()], "g", disruption="all"), "takes no disruption for it\n  Leave it out, or use native"),
        (gang("coscheduling", [job()], "g", topology="zone"), "Leave it out, or use native or volcano or kueue"),
        (slices("volcano", [job()], "rack", 2), "takes no slices of a gang\n  Leave them out, or use native or kueue"),
        (slices("native", [job()], "rack", 3), "Job team/train: 4 pods are no whole slices of 3\n  Write a multiple"),
        (
            slices("native", [job(pods=2, completions=4)], "rack", 2),
            "slices are of one Job, whose pods all run at once",
        ),
        (slices("native", [job(), job("b")], "rack", 2), "slices are of one Job"),
        (slices("kueue", [other("JobSet", spec={"replicatedJobs": parts(2)})], "rack", 2), "slices are of one Job"),
        (gang("kueue", [job(), job("b")], "g"), "one Job or JobSet at a time"),
        (gang("kueue", [job()], "g", minimum=2), "all pods of a Job or none, and 2 of 4"),
        (single("native", job(), queue="q"), "Job team/train: native has no queues\n  Leave queue 'q' out, or use"),
        (queue("coscheduling", "q", "team", {"cpu": "1"}), "coscheduling has no queues"),
        (queue("yunikorn", "q", "team", {"cpu": "1"}), "Start it with a queues.yaml"),
        (queue("kueue", "q", "team", {}), "kueue needs a quota"),
        (single("kueue", other("Deployment", spec={})), "Deployment default/d: kueue is set up for Job and JobSet"),
        (single("volcano", other("CronJob", spec={})), "default/d: a CronJob has no pod template that is known here"),
        (gang("volcano", [UNCLEAR], "g"), "cpu: '1x' is not a Kubernetes quantity; write a quantity"),
        (single("volcano", other("Job", spec=None)), "default/d has no pod template\n  Write one with a list of"),
        (gang("volcano", [job(), {**job(), **other("Job")}], "g"), "its workloads are in several namespaces"),
    ],
)
def test_what_a_scheduler_cannot_do_is_told(act: Callable[[], object], words: str) -> None:
    with pytest.raises(SchedulerError) as raised:
        act()
    assert words in str(raised.value)

"""What is read of nodes and pods."""

from typing import Any

import pytest

from kumulus.extras.schedulers import kai, kueue, readers, volcano, yunikorn
from kumulus.extras.schedulers.kinds import JobReport, QueueMember, Quota
from kumulus.extras.watch.live import reports
from kumulus.extras.watch.live.amounts import Amounts
from kumulus.extras.watch.live.node import PlaceLabels, node_from
from kumulus.extras.watch.live.pod import NOT_SEEN, explain, pod_from
from kumulus.stackfile.group_topology import PRESETS
from tests.support.messages import node_message, pod_message, quantities

PLACES = PlaceLabels.of(PRESETS.values())
GI = 2**30
# What Kubernetes 1.35's scheduler wrote on this project's control plane.
NO_NODE_FITS = (
    "0/1000 nodes are available: 334 Insufficient nvidia.com/gpu, 666 node(s) didn't match Pod's node "
    "affinity/selector."
    " no new claims to deallocate, preemption: 0/1000 nodes are available: 1000 Preemption is not helpful for "
    "scheduling."
)
JOB = {"kind": "Job", "name": "train"}


def read(**more: Any) -> Any:
    return node_from(node_message(**more), PLACES)


def test_a_node_says_where_it_stands_and_what_it_has() -> None:
    labels = {
        "topology.kubernetes.io/zone": "use1",
        "kumulus.io/group": "h100",
        "kumulus.io/pool": "h100-use1",
        "nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3",
        "cloud.provider.com/topology-rack": "h100-use1-r3",
        "cloud.provider.com/topology-block": "h100-use1-b0",
    }
    node = read(name="h100-use1-7", labels=labels)
    assert (node.name, node.zone, node.group, node.pool) == ("h100-use1-7", "use1", "h100", "h100-use1")
    assert (node.rack, node.block, node.product) == ("h100-use1-r3", "h100-use1-b0", "NVIDIA-H100-80GB-HBM3")
    assert node.allocatable == Amounts(96_000, 1360 * GI, 8, 110)


@pytest.mark.parametrize(
    ("labels", "capacity", "product"),
    [
        ({"datastrophic.io/gpu-type": "nvidia-a100-80gb", "kumulus.io/group": "a"}, {"gpu": "8"}, "nvidia-a100-80gb"),
        ({"kumulus.io/group": "a"}, {"gpu": "8"}, "a"),
        ({"node.kubernetes.io/instance-type": "p5"}, {"gpu": "8"}, "p5"),
        ({"kumulus.io/group": "a"}, {"cpu": "8"}, ""),
    ],
)
def test_gpus_without_discovery_are_called_after_kemus_label_or_the_group(
    labels: dict[str, str], capacity: dict[str, str], product: str
) -> None:
    assert read(labels=labels, capacity=quantities(**capacity)).product == product


@pytest.mark.parametrize(
    ("more", "state"),
    [
        ({}, "ready"),
        ({"unschedulable": True}, "cordoned"),
        ({"conditions": [{"type": "XidError", "status": "True"}], "unschedulable": True}, "faulted"),
        ({"conditions": [{"type": "MemoryPressure", "status": "False"}]}, "ready"),
        ({"annotations": {"kumulus.io/faults": "xid79,hot"}}, "faulted"),
        ({"allocatable": quantities(cpu="96", gpu="7")}, "faulted"),
        ({"ready": "False"}, "not ready"),
        ({"ready": "Unknown", "annotations": {"kumulus.io/faults": "dead"}}, "not ready"),
        ({"ready": ""}, "not ready"),
    ],
)
def test_a_nodes_state_is_the_worst_there_is_to_say(more: dict[str, Any], state: str) -> None:
    assert read(**more).state == state


def test_taints_are_told_except_kwoks_own() -> None:
    taints = [
        {"key": "kwok.x-k8s.io/node", "value": "fake", "effect": "NoSchedule"},
        {"key": "gpu", "effect": "NoExecute"},
        {"key": "team", "value": "a", "effect": "NoSchedule"},
    ]
    assert read(taints=taints).taints == ("gpu:NoExecute", "team=a:NoSchedule")


def asks(**amounts: str) -> dict[str, Any]:
    return {"resources": {"requests": quantities(**amounts)}}


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({"containers": [asks(cpu="500m", gpu="2"), asks(cpu="1", memory="1Gi")]}, Amounts(1500, GI, 2, 1)),
        ({"containers": [asks(cpu="1")], "initContainers": [asks(cpu="4"), asks(cpu="2")]}, Amounts(4000, 0, 0, 1)),
        (
            # The sidecar stays beside what comes after it: 1 + max(3, 2).
            {
                "containers": [asks(cpu="2")],
                "initContainers": [{**asks(cpu="1"), "restartPolicy": "Always"}, asks(cpu="3")],
            },
            Amounts(4000, 0, 0, 1),
        ),
        (
            {"containers": [asks(cpu="2")], "initContainers": [{**asks(cpu="1"), "restartPolicy": "Always"}]},
            Amounts(3000, 0, 0, 1),
        ),
        ({"containers": [asks(cpu="1")], "overhead": quantities(cpu="250m")}, Amounts(1250, 0, 0, 1)),
        (
            {"containers": [asks(cpu="1", gpu="4")], "resources": {"requests": quantities(cpu="3")}},
            Amounts(3000, 0, 4, 1),
        ),
        ({"containers": [asks(cpu="nonsense")]}, Amounts(0, 0, 0, 1)),
    ],
)
def test_a_pods_requests_are_counted_as_the_scheduler_does(spec: dict[str, Any], expected: Amounts) -> None:
    assert pod_from(pod_message(**spec)).requests == expected


def test_a_pod_belongs_to_what_made_it() -> None:
    found = pod_from(pod_message(metadata={"ownerReferences": [{"kind": "Job", "name": "train"}]}))
    assert (found.owner, found.namespace, found.name) == ("Job/train", "default", "p")


@pytest.mark.parametrize(
    ("reason", "message", "expected"),
    [
        (
            "Unschedulable",
            NO_NODE_FITS,
            ("Insufficient nvidia.com/gpu", "node(s) didn't match Pod's node affinity/selector"),
        ),
        ("Unschedulable", "0/3 nodes are available: 3 Insufficient cpu.", ("Insufficient cpu",)),
        (
            "Unschedulable",
            "0/2 nodes are available: 1 node(s) had untolerated taint(s), 1 Too many pods. preemption: not eligible",
            ("node(s) had untolerated taint(s)", "Too many pods"),
        ),
        ("SchedulingGated", "Scheduling is blocked due to non-empty scheduling gates", ("SchedulingGated",)),
        ("Unschedulable", "3/4 tasks in gang unschedulable\nmore", ("3/4 tasks in gang unschedulable",)),
        ("SchedulerError", "running Bind plugin: timeout", ("SchedulerError",)),
        ("Unschedulable", "", ("Unschedulable",)),
        ("", "", (NOT_SEEN,)),
    ],
)
def test_why_a_pod_waits_is_told_without_numbers(reason: str, message: str, expected: tuple[str, ...]) -> None:
    assert explain(reason, message) == expected


def scheduled(status: str, **more: Any) -> list[dict[str, Any]]:
    return [{"type": "PodScheduled", "status": status, **more}]


def test_only_a_pod_that_waits_has_reasons() -> None:
    no = scheduled("False", reason="Unschedulable", message="0/3 nodes are available: 3 Insufficient cpu.")
    assert pod_from(pod_message(conditions=no)).reasons == ("Insufficient cpu",)
    assert pod_from(pod_message()).reasons == (NOT_SEEN,)
    assert pod_from(pod_message(node="n", conditions=no)).reasons == ()
    assert pod_from(pod_message(phase="Failed", conditions=no)).reasons == ()


@pytest.mark.parametrize(
    ("more", "holds", "waits"),
    [
        ({}, False, True),
        ({"node": "n"}, True, False),
        ({"node": "n", "phase": "Running"}, True, False),
        ({"node": "n", "phase": "Succeeded"}, False, False),
        ({"phase": "Failed"}, False, False),
    ],
)
def test_a_pod_holds_room_from_its_binding_to_its_end(more: dict[str, Any], holds: bool, waits: bool) -> None:
    found = pod_from(pod_message(**more))
    assert (found.holds, found.waits) == (holds, waits)


def made(spec: dict[str, Any], status: dict[str, Any] | None = None, **metadata: Any) -> dict[str, Any]:
    return {"metadata": {"name": "train", "namespace": "a", **metadata}, "spec": spec, "status": status or {}}


def condition(kind: str, status: str, message: str = "") -> dict[str, str]:
    return {"type": kind, "status": status, "message": message}


def test_a_job_asks_for_as_many_pods_as_run_at_once_or_are_left() -> None:
    assert reports.job(made({"parallelism": 8, "completions": 8})) == JobReport("Job", "train", "a", 8)
    assert reports.job(made({"parallelism": 8, "completions": 3})) == JobReport("Job", "train", "a", 3)
    assert reports.job(made({})) == JobReport("Job", "train", "a", 1)
    suspended = reports.job(made({"suspend": True}, labels={"kueue.x-k8s.io/queue-name": "q"}))
    assert suspended == JobReport("Job", "train", "a", 1, "q", 0, "suspended")
    complete = reports.job(made({}, {"conditions": [condition("Complete", "True")]}))
    assert complete is not None
    assert complete.says == "Complete"


def test_a_job_of_a_job_set_is_the_sets() -> None:
    assert reports.job(made({}, ownerReferences=[{"kind": "JobSet", "name": "set"}])) is None
    spec = {"replicatedJobs": [{"replicas": 2, "template": {"spec": {"parallelism": 4}}}, {"template": {}}]}
    assert reports.job_set(made(spec)) == JobReport("JobSet", "train", "a", 9)


def test_when_it_was_made_is_known() -> None:
    found = reports.job(made({}, creationTimestamp="1970-01-01T00:01:00Z"))
    assert found is not None
    assert found.created == 60


def test_a_workload_speaks_for_the_job_that_owns_it() -> None:
    waits = condition("QuotaReserved", "False", "couldn't assign flavors")
    spec = {"queueName": "q", "priority": 7, "podSets": [{"count": 4}, {"count": 2}]}
    found = kueue.objects.workload(made(spec, {"conditions": [waits]}, name="job-train-1", ownerReferences=[JOB]))
    assert found == JobReport("Job", "train", "a", 6, "q", 7, "couldn't assign flavors")
    admitted = {"conditions": [condition("QuotaReserved", "True"), condition("Admitted", "True")]}
    assert (kueue.objects.workload(made(spec, admitted, ownerReferences=[JOB])) or found).says == "Admitted"
    pods = [{"kind": "Pod", "name": "a"}, {"kind": "Pod", "name": "b"}]
    assert (kueue.objects.workload(made(spec, ownerReferences=pods)) or found).kind == "PodGroup"


def test_a_pod_group_speaks_for_itself_or_for_its_job() -> None:
    status = {"phase": "Inqueue", "conditions": [condition("Unschedulable", "True", "3/4 tasks in gang unschedulable")]}
    found = readers.pod_group(made({"minMember": 4, "queue": "q"}, status))
    assert found == JobReport("PodGroup", "train", "a", 4, "q", 0, "Inqueue: 3/4 tasks in gang unschedulable")
    placed = readers.pod_group(made({}, {**status, "phase": "Running"}))
    assert placed is not None
    assert placed.says == "Running", "the condition stays when the group is placed after all"
    assert (readers.pod_group(made({}, ownerReferences=[JOB])) or found)[:2] == ("Job", "train")


def test_queues_have_quota_use_and_what_waits() -> None:
    flavors = [{"name": f, "resources": [{"name": "cpu", "nominalQuota": n}]} for f, n in (("a", "10"), ("b", 5))]
    status = {
        "pendingWorkloads": 3,
        "admittedWorkloads": 2,
        "flavorsUsage": [{"name": "a", "resources": [{"name": "cpu", "total": "8"}]}],
    }
    (found,) = kueue.objects.cluster_queue(made({"resourceGroups": [{"flavors": flavors}]}, status))
    assert found == Quota("ClusterQueue", "train", {"cpu": "10 + 5"}, {"cpu": "8"}, 3, 2)
    assert kueue.objects.local_queue(made({}, status)) == [Quota("LocalQueue", "a/train", {}, {}, 3, 2)]
    assert volcano.objects.queues(made({"capability": {"cpu": 9}}, {"allocated": {"cpu": "4"}})) == [
        Quota("Queue", "train", {"cpu": "9"}, {"cpu": "4"}, 0, 0)
    ]
    hard = {"hard": {"pods": "5"}, "used": {"pods": "1"}}
    assert reports.resource_quota(made({}, hard)) == [
        Quota("ResourceQuota", "a/train", {"pods": "5"}, {"pods": "1"}, 0, 0)
    ]


def test_a_group_of_kai_says_why_it_waits() -> None:
    message = "Resources were found for 5 pods while 20 are required for gang scheduling"
    condition = {"type": "UnschedulableOnNodePool", "reason": "Unschedulable", "message": message}
    status = {"schedulingConditions": [{**condition, "reasons": [{"reason": "NotEnough", "message": message}]}]}
    waits = kai.objects.group(made({"minMember": 20, "queue": "q"}, status))
    assert waits == JobReport("PodGroup", "train", "a", 20, "q", 0, f"NotEnough: {message}")
    older = kai.objects.group(made({}, {"schedulingConditions": [condition]}))
    assert older is not None
    assert older.says == f"Unschedulable: {message}"


def test_who_stands_in_a_queue_of_volcano_its_groups_say() -> None:
    phases = {"": False, "Pending": False, "Inqueue": False, "Running": True, "Unknown": True}
    for phase, admitted in phases.items():
        assert volcano.objects.member(made({"queue": "q"}, {"phase": phase})) == QueueMember("Queue", "q", admitted), (
            phase
        )
    assert volcano.objects.member(made({"queue": "q"}, {"phase": "Completed"})) is None
    assert volcano.objects.member(made({})) == QueueMember("Queue", "default", admitted=False)


def test_an_object_without_anything_is_no_error() -> None:
    for read in (*reports.JOBS.values(), *reports.QUEUES.values(), *reports.MEMBERS.values()):
        assert read({"metadata": {"name": "x"}}) is not None
        assert read({"metadata": {"name": "x"}, "spec": None, "status": None}) is not None


def test_yunikorns_quotas_stand_in_its_configuration() -> None:
    text = """
    partitions:
      - name: default
        queues:
          - name: root
            queues:
              - name: research
                resources: {max: {vcore: 8, nvidia.com/gpu: 16}}
                queues:
                  - name: vision
                    resources: {max: {vcore: 4}}
              - name: free
    """
    found = yunikorn.objects.queues({"metadata": {"name": "yunikorn-configs"}, "data": {"queues.yaml": text}})
    assert found == [
        Quota("YuniKorn queue", "root.research", {"vcore": "8", "nvidia.com/gpu": "16"}, {}, 0, 0),
        Quota("YuniKorn queue", "root.research.vision", {"vcore": "4"}, {}, 0, 0),
    ]


@pytest.mark.parametrize(
    "text", ["", "[", "partitions: 5", "partitions: [{queues: [{}]}]", "a: &a [*a]", "x" * 5_000_000]
)
def test_a_configuration_that_yunikorn_would_refuse_has_no_queues(text: str) -> None:
    assert yunikorn.objects.queues({"data": {"queues.yaml": text}}) == []

"""What the page remembers of a live cluster."""

from dataclasses import replace
from typing import Any

import pytest

from kumulus.extras.watch.console.memory import Cursor, Memory
from kumulus.extras.watch.history.document import history_from
from kumulus.extras.watch.history.moment import moment
from kumulus.extras.watch.live.fleet import Live
from kumulus.extras.watch.live.node import NOWHERE
from kumulus.kube import Client, Connection
from kumulus.kube.watch import WatchEvent
from tests.support.fleets import node, pod


class Hands:
    """A clock that a test sets."""

    def __init__(self) -> None:
        self.at = 100.0

    def __call__(self) -> float:
        return self.at


@pytest.fixture
def hands() -> Hands:
    return Hands()


@pytest.fixture
def live() -> Live:
    return Live(Client(Connection("http://127.0.0.1:1", "none")), NOWHERE)


def told(memory: Memory, path: str, kind: str, **item: Any) -> None:
    memory.collections()[path](WatchEvent(kind, "a/train", {"metadata": {"name": "train", "namespace": "a"}, **item}))  # type: ignore[arg-type]


def test_what_was_there_before_and_what_comes_is_remembered(live: Live, hands: Hands) -> None:
    live.fleet.set_node("n-0", node("n-0"))
    live.fleet.set_pod("default/p", replace(pod("p", "n-0", 4), job="Job/train", queue="q", priority=3))
    memory = Memory("test", live, clock=hands)
    hands.at += 2
    live.fleet.set_pod("default/p", None)
    live.fleet.set_node("n-0", None)
    memory.tick()
    before, after = moment(memory.history, 1000), moment(memory.history, 2000)
    assert before.nodes["n-0"].taken.gpus == 4
    job = before.jobs["default/Job/train"]
    assert (job.held, job.queue, job.priority) == (1, "q", 3)
    assert after.nodes == {}
    assert [what for _, what in after.happened] == ["1 node fewer"]


def test_a_fault_begins_with_its_first_node_and_is_over_with_its_last(live: Live, hands: Hands) -> None:
    memory = Memory("test", live, clock=hands)
    for name in ("a", "b"):
        live.fleet.set_node(name, node(name, faults=("rack",)))
    live.fleet.set_node("a", node("a"))
    memory.tick()
    assert [what for _, what in moment(memory.history, 0).happened] == ["rack began", "2 nodes more"]
    live.fleet.set_node("b", node("b"))
    assert moment(memory.history, 0).happened[-1][1] == "rack is over"


def test_what_objects_and_pods_say_of_a_job_is_put_together(live: Live, hands: Hands) -> None:
    memory = Memory("test", live, clock=hands)
    told(memory, "/apis/batch/v1/jobs", "ADDED", spec={"parallelism": 4, "completions": 4, "suspend": True})
    job = moment(memory.history, 0).jobs["a/Job/train"]
    assert (job.size, job.says, job.state) == (4, "suspended", "waiting")
    owner = {"name": "w", "namespace": "a", "ownerReferences": [{"kind": "Job", "name": "train"}]}
    told(
        memory,
        "/apis/kueue.x-k8s.io/v1beta2/workloads",
        "ADDED",
        metadata=owner,
        spec={"queueName": "q", "priority": 9},
    )
    job = moment(memory.history, 0).jobs["a/Job/train"]
    assert (job.size, job.queue, job.priority) == (4, "q", 9)
    told(memory, "/apis/kueue.x-k8s.io/v1beta2/workloads", "DELETED")
    told(memory, "/apis/batch/v1/jobs", "DELETED")
    assert not moment(memory.history, 0).jobs["a/Job/train"].there
    assert memory._facts == {}


@pytest.mark.parametrize("kind", ["PodGroup", "CompositePodGroup"])
def test_kubernetes_own_groups_say_whether_they_are_placed(live: Live, hands: Hands, kind: str) -> None:
    memory = Memory("test", live, clock=hands)
    version = "v1beta1/podgroups" if kind == "PodGroup" else "v1alpha3/compositepodgroups"

    def says(*conditions: dict[str, str], **metadata: Any) -> tuple[str, int, int]:
        named = {"name": "train", "namespace": "a", **metadata}
        spec = {"schedulingPolicy": {"gang": {"minCount": 4}}, "priority": 9}
        told(memory, f"/apis/scheduling.k8s.io/{version}", "MODIFIED", metadata=named, spec=spec,
             status={"conditions": list(conditions)})  # fmt: skip
        job = moment(memory.history, 0).jobs[f"a/{'Job' if metadata else kind}/train"]
        return job.says, job.size, job.priority

    placed = {"type": f"{kind}InitiallyScheduled", "status": "False", "reason": "Unschedulable", "message": "no room"}
    assert says(placed) == ("Unschedulable: no room", 4, 9)
    placed = {**placed, "status": "True", "reason": "Scheduled", "message": ""}
    assert says(placed) == ("Scheduled", 4, 9)
    victim = {"type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler", "message": "for other"}
    assert says(placed, victim) == ("PreemptionByScheduler: for other", 4, 9)
    job = {"kind": "Job", "name": "train", "controller": True}
    assert says(placed, ownerReferences=[{"kind": "Workload", "name": "w"}, job]) == ("Scheduled", 4, 9)
    assert not moment(memory.history, 0).jobs[f"a/{kind}/train"].there


def test_who_listens_is_told_what_is_new_and_no_more(live: Live, hands: Hands) -> None:
    live.fleet.set_node("n-0", node("n-0"))
    memory = Memory("test", live, clock=hands)
    whole, cursor = memory.news(Cursor())
    assert whole is not None
    assert whole["whole"]
    assert memory.news(cursor) == (None, cursor)
    live.fleet.set_node("n-1", node("n-1"))
    more, cursor = memory.news(cursor)
    assert more is not None
    assert not more["whole"]
    assert [row[0] for row in more["nodes"]] == ["n-1"]
    tables = {name: [*whole[name], *more[name]] for name in whole if isinstance(whole[name], list)}
    both = history_from({"format": "kumulus-history", "version": 1, **whole, **tables}, "both")
    assert moment(both, 0).nodes == moment(memory.history, 0).nodes


@pytest.mark.parametrize(("span", "most"), [(60.0, 10**9), (10**9, 2000)], ids=["by age", "by number"])
def test_what_is_remembered_stays_within_bounds(live: Live, hands: Hands, span: float, most: int) -> None:
    live.fleet.set_node("n-0", node("n-0"))
    live.fleet.set_node("n-1", node("n-1"))
    memory = Memory("test", live, span, most, hands)
    _, cursor = memory.news(Cursor())
    largest = 0
    for number in range(4000):
        hands.at += 1
        key = f"default/p-{number}"
        live.fleet.set_pod(key, replace(pod(f"p-{number}", "n-0"), job=f"Job/j-{number}"))
        if number:
            live.fleet.set_pod(f"default/p-{number - 1}", None)
        memory.tick()
        largest = max(largest, len(memory.history.events) // 5, len(memory.history.pods))
    assert largest < 5000
    assert memory.history.begin > 0
    history_from(memory.history.to_plain(), "memory")
    now = moment(memory.history, memory.history.end)
    assert (len(now.nodes), now.nodes["n-0"].taken.pods) == (2, 1)
    again, _ = memory.news(cursor)
    assert again is not None
    assert again["whole"]
    # Going on after forgetting knows its nodes and pods still.
    live.fleet.set_pod("default/p-3999", None)
    live.fleet.set_node("n-1", None)
    assert moment(memory.history, memory.history.end).nodes["n-0"].taken.pods == 0


def test_what_is_there_does_not_count_as_what_can_be_forgotten(live: Live, hands: Hands) -> None:
    def pods(count: int, node: str) -> None:
        for number in range(count):
            live.fleet.set_pod(f"default/p-{number}", replace(pod(f"p-{number}", node), job=f"Pod/p-{number}"))

    for name in ("n-0", "n-1"):
        live.fleet.set_node(name, node(name))
    pods(20, "n-0")
    memory = Memory("test", live, most=10, clock=hands)
    _, cursor = memory.news(Cursor())
    forgotten = []
    for second in range(8):
        hands.at += 1
        if second == 3:
            pods(12, "n-1")
        memory.tick()
        news, cursor = memory.news(cursor)
        forgotten.append(news is not None and news["whole"])
    assert forgotten == [False, False, False, True, False, False, False, False]
    assert memory.news(cursor)[0] is None
    now = moment(memory.history, memory.history.end)
    assert (now.nodes["n-0"].taken.pods, now.nodes["n-1"].taken.pods) == (8, 12)


def test_another_cluster_has_other_jobs_and_queues(live: Live, hands: Hands) -> None:
    memory = Memory("test", live, clock=hands)
    told(memory, "/apis/batch/v1/jobs", "ADDED", spec={})
    told(memory, "/api/v1/resourcequotas", "ADDED", status={"hard": {"pods": "5"}})
    memory.cleared()
    found = moment(memory.history, 0)
    assert found.queues == {}
    assert not found.jobs["a/Job/train"].there


GROUPS = "/apis/scheduling.volcano.sh/v1beta1/podgroups"
VOLCANO_QUEUES = "/apis/scheduling.volcano.sh/v1beta1/queues"


def test_who_waits_in_a_queue_of_volcano_is_counted_from_its_groups(live: Live, hands: Hands) -> None:
    memory = Memory("test", live, clock=hands)

    def takes(path: str, kind: Any, name: str, **item: Any) -> None:
        memory.collections()[path](WatchEvent(kind, name, {"metadata": {"name": name}, **item}))

    def group(kind: Any, name: str, phase: str, queue: str = "q") -> None:
        takes(GROUPS, kind, name, spec={"queue": queue}, status={"phase": phase})

    def queue(name: str = "q") -> Any:
        return moment(memory.history, memory.history.end).queues.get(f"Queue/{name}")

    # Groups may be heard of before their queue.
    group("ADDED", "one", "Pending")
    assert queue() is None
    takes(VOLCANO_QUEUES, "ADDED", "q", spec={"capability": {"cpu": "5"}})
    assert queue() == [{"cpu": "5"}, {}, 1, 0]
    group("ADDED", "two", "Inqueue")
    group("MODIFIED", "one", "Running")
    takes(VOLCANO_QUEUES, "MODIFIED", "q", spec={"capability": {"cpu": "5"}}, status={"allocated": {"cpu": "4"}})
    assert queue() == [{"cpu": "5"}, {"cpu": "4"}, 1, 1]
    takes(VOLCANO_QUEUES, "ADDED", "other")
    group("MODIFIED", "two", "Pending", queue="other")
    group("MODIFIED", "one", "Completed")
    assert (queue(), queue("other")) == ([{"cpu": "5"}, {"cpu": "4"}, 0, 0], [{}, {}, 1, 0])
    group("DELETED", "one", "Completed")
    group("DELETED", "two", "Pending", queue="other")
    assert (queue()[2:], queue("other")) == ([0, 0], [{}, {}, 0, 0])
    takes(VOLCANO_QUEUES, "DELETED", "q")
    assert queue() is None
    group("ADDED", "three", "Running", queue="other")
    memory.cleared()
    assert queue("other") is None
    takes(VOLCANO_QUEUES, "ADDED", "other")
    assert queue("other") == [{}, {}, 0, 0], "of another cluster nobody stands in it"


def test_local_queues_of_one_name_in_two_namespaces_are_two(live: Live, hands: Hands) -> None:
    memory = Memory("test", live, clock=hands)
    path = "/apis/kueue.x-k8s.io/v1beta2/localqueues"
    for number, namespace in enumerate(("a", "b"), start=1):
        item = {"metadata": {"name": "q", "namespace": namespace}, "status": {"pendingWorkloads": number}}
        memory.collections()[path](WatchEvent("ADDED", f"{namespace}/q", item))
    assert moment(memory.history, 0).queues == {"LocalQueue/a/q": [{}, {}, 1, 0], "LocalQueue/b/q": [{}, {}, 2, 0]}


def job_pods(live: Live, *jobs: str) -> None:
    for job in jobs:
        found = replace(pod(f"{job}-0", "", 1), namespace="a", job=f"Job/{job}", group="train", phase="Pending")
        live.fleet.set_pod(f"a/{job}-0", found)


@pytest.mark.parametrize("pods_first", [True, False])
def test_a_group_without_an_owner_speaks_for_the_job_whose_pods_name_it(
    live: Live, hands: Hands, pods_first: bool
) -> None:
    memory = Memory("test", live, clock=hands)
    if pods_first:
        job_pods(live, "one")
    told(memory, GROUPS, "ADDED", spec={"minMember": 4, "queue": "q"}, status={"phase": "Inqueue"})
    if not pods_first:
        job_pods(live, "one")
    found = moment(memory.history, 0).jobs
    assert (found["a/Job/one"].size, found["a/Job/one"].queue, found["a/Job/one"].says) == (4, "q", "Inqueue")
    assert [job.there for name, job in found.items() if name == "a/PodGroup/train"] in ([], [False])
    job_pods(live, "two")
    found = moment(memory.history, 0).jobs
    assert [found[f"a/Job/{job}"].says for job in ("one", "two")] == ["", ""]
    assert found["a/PodGroup/train"].says == "Inqueue"
    told(memory, GROUPS, "DELETED")
    assert not moment(memory.history, 0).jobs["a/PodGroup/train"].there

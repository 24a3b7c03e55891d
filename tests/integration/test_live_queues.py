"""Jobs and queues as the page has them, of schedulers that run; where pods may go by the word of kube-scheduler."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from kumulus.extras.schedulers import registry, workloads
from kumulus.extras.schedulers.process import start
from kumulus.extras.schedulers.yunikorn.workloads import queues
from kumulus.extras.watch.console.memory import Memory
from kumulus.extras.watch.history.moment import HistoryMoment, moment
from kumulus.extras.watch.live.pod import NOT_SEEN
from kumulus.model.quantity import parse
from tests.integration.conftest import KWOK_TAINT, PODS, Plane, Pools, job, pod
from tests.integration.test_console import looking, until
from tests.integration.test_schedulers import remove, submit
from tests.support.tools import require

pytestmark = pytest.mark.integration
QUEUE = "research"
# What of the quota is in use is said by the queue itself, but for YuniKorn, of which only the quota can be read.
KINDS = {"kueue": ("ClusterQueue", QUEUE), "volcano": ("Queue", QUEUE), "yunikorn": ("YuniKorn queue", f"root.{QUEUE}")}


@asynccontextmanager
async def scheduling(name: str, plane: Plane, folder: Path) -> AsyncIterator[None]:
    """A scheduler that runs; one that is not built skips the test."""
    require(*registry.get(name).tools)
    config = None
    if name == "yunikorn":
        config = folder / "queues.yaml"
        config.write_text(queues({QUEUE: {"vcore": "5"}}))
    running = await start(name, Path(plane.observed.kubeconfig), folder / name, config)
    try:
        if name != "yunikorn":
            submit(plane.api, workloads.queue(name, QUEUE, "default", {"cpu": "5"}))
        yield
    finally:
        await running.stop()


def gang(name: str, scheduler: str, pool: str) -> list[Any]:
    workload = {"apiVersion": "batch/v1", "kind": "Job", **job(name, pool, "1h", parallelism=4, cpu="1")}
    workload["metadata"]["namespace"] = "default"
    return workloads.gang(scheduler, [workload], name, queue=QUEUE)


def as_it_is(name: str, found: HistoryMoment) -> bool:
    """Whether what a scheduler says of its queue and of both gangs has come: four of five CPUs in use, four wait."""
    kind, queue = KINDS[name]
    quota, used, waiting, admitted = found.queues[f"{kind}/{queue}"]
    first, second = (found.jobs[f"default/Job/{each}"] for each in ("first", "second"))
    if name == "yunikorn":
        # Its queues say nothing of themselves; of jobs only their pods do.
        return quota == {"vcore": "5"} and second.waiting == 4 and bool(second.reasons)
    assert isinstance(used, dict)
    in_use = quota == {"cpu": "5"} and parse(used.get("cpu", "0")) == parse("4")
    counted = (waiting, admitted) == (1, 1)
    if name == "volcano":
        return in_use and counted and first.says == "Running" and second.says.startswith("Pending")
    counted = counted and found.queues.get(f"LocalQueue/default/{queue}") == [{}, {}, 1, 1]
    return in_use and counted and first.says == "Admitted" and "insufficient" in second.says


@pytest.mark.parametrize("name", KINDS)
async def test_who_is_admitted_and_who_waits_and_why(name: str, plane: Plane, pools: Pools, tmp_path: Path) -> None:
    inputs = pools.inputs(replicas=4)
    await pools.create(inputs)
    kind, queue = KINDS[name]
    async with looking(plane) as live:
        memory = Memory("test", live)
        live.follow_also(memory.collections(), memory.cleared)

        def now() -> HistoryMoment:
            return moment(memory.history, memory.history.end)

        def held() -> int:
            return now().jobs["default/Job/first"].held if "default/Job/first" in now().jobs else 0

        try:
            async with scheduling(name, plane, tmp_path):
                submit(plane.api, gang("first", name, str(inputs["name"])))
                await until(lambda: held() == 4, "the first gang is placed", 120)
                submit(plane.api, gang("second", name, str(inputs["name"])))
                # A collection that was not there when first asked for is asked for again after 5 s.
                await until(lambda: f"{kind}/{queue}" in now().queues, "the queue is seen", 120)
                await until(lambda: "default/Job/second" in now().jobs, "the second gang is seen", 120)
                try:
                    await until(lambda: as_it_is(name, now()), f"{name} says who waits", 120)
                except AssertionError as error:
                    raise AssertionError(f"{error}: {now().queues}, {now().jobs}") from None
                first, second = (now().jobs[f"default/Job/{each}"] for each in ("first", "second"))
                assert (first.wanted, second.wanted, second.held, second.state) == (4, 4, 0, "waiting")
                assert first.queue.endswith(QUEUE)
                assert "default/PodGroup/first" not in {name for name, job in now().jobs.items() if job.there}
        finally:
            for each in ("first", "second"):
                remove(plane.api, each)


EMPTY_TERM: dict[str, Any] = {"matchExpressions": []}
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
REQUIRES: dict[str, dict[str, Any]] = {
    "nothing": {},
    "a-label": {"nodeSelector": {"speed": "2"}},
    "a-label-that-none-has": {"nodeSelector": {"speed": "3"}},
    "more": {"terms": [{"matchExpressions": [{"key": "speed", "operator": "Gt", "values": ["1"]}]}]},
    "one-of-two": {
        "terms": [
            {"matchExpressions": [{"key": "speed", "operator": "DoesNotExist"}]},
            {"matchExpressions": [{"key": "speed", "operator": "NotIn", "values": ["2"]}]},
        ]
    },
    "a-taint-passed": {"nodeSelector": {"speed": "tainted"}, "tolerations": [{"key": "own", "operator": "Exists"}]},
    "a-taint-not-passed": {"nodeSelector": {"speed": "tainted"}},
    "more-gpus-than-any": {"gpus": 9},
    "gpus": {"gpus": 8},
}


@pytest.mark.every_version
async def test_a_pod_goes_only_where_the_page_says_that_it_may(plane: Plane, pools: Pools, workloads: Any) -> None:
    taint = {"key": "own", "value": "", "effect": "NoSchedule"}
    found = [pools.inputs(1, labels={"speed": speed}) for speed in ("1", "2")]
    found.append(pools.inputs(1, labels={"speed": "tainted"}, taints=[KWOK_TAINT, taint]))
    for inputs in found:
        await pools.create(inputs)
    names = {f"{inputs['name']}-0" for inputs in found}
    for name, requires in REQUIRES.items():
        body = pod(f"requires-{name}", "")
        spec = body["spec"]
        spec.pop("nodeSelector", None)
        ours = {"key": "kumulus.io/pool", "operator": "In", "values": [str(each["name"]) for each in found]}
        terms = [
            {"matchExpressions": [ours, *each["matchExpressions"]]} for each in requires.get("terms", [EMPTY_TERM])
        ]
        spec["affinity"] = {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": terms}}}
        spec["tolerations"] = [*spec.get("tolerations", []), *requires.get("tolerations", [])]
        if "nodeSelector" in requires:
            spec["nodeSelector"] = requires["nodeSelector"]
        gpus = {"nvidia.com/gpu": str(requires["gpus"])} if "gpus" in requires else {}
        spec["containers"][0]["resources"] = {"limits": gpus}
        workloads(PODS, body)
    async with looking(plane) as live:

        def pods() -> dict[str, Any]:
            mine = {name: live.fleet.pods.get(f"default/requires-{name}") for name in REQUIRES}
            return {name: each for name, each in mine.items() if each is not None}

        def decided() -> bool:
            there = pods()
            return len(there) == len(REQUIRES) and all(
                each.node or each.reasons != (NOT_SEEN,) for each in there.values()
            )

        await until(decided, "kube-scheduler has looked at every pod", 120)
        nodes = {name: live.fleet.nodes[name] for name in names}
        for name, each in pods().items():
            may = {node for node, has in nodes.items() if each.rule.admits(node, has.nature)}
            assert each.node in may if each.node else not may, name
        assert {name for name, each in pods().items() if not each.node} == {
            "a-label-that-none-has",
            "a-taint-not-passed",
            "more-gpus-than-any",
        }

"""A policy as kube-scheduler's extender: what it answers, how it fails, and who may ask it."""

import asyncio
import json
import random
import time
from pathlib import Path
from typing import Any

import aiohttp
import pytest
import yaml

from kumulus.extras.lab.errors import LabError
from kumulus.extras.lab.extender.calling import Caller
from kumulus.extras.lab.extender.configuration import extended, served
from kumulus.extras.lab.extender.extender import Extender
from kumulus.extras.lab.offline.measuring import run
from kumulus.extras.lab.offline.placing import EmptyNode, in_order
from kumulus.extras.lab.plan.asked import pod_of
from kumulus.extras.lab.plan.stream import drawn
from kumulus.extras.lab.policies import Pod
from kumulus.extras.lab.policies.load import PolicyFailed, policy
from tests.unit.extras.lab.test_offline import ASKS, MACHINES, PODS


def spec_of(pod: Pod) -> dict[str, Any]:
    requests = {"cpu": f"{pod.cpu}m", "memory": f"{pod.memory}Mi"}
    if pod.shares_gpu:
        requests["kumulus.io/gpu-milli"] = str(pod.gpu_milli)
    elif pod.gpus:
        requests["nvidia.com/gpu"] = str(pod.gpus)
    return {"containers": [{"name": "main", "resources": {"requests": requests}}]}


def asked(pod: Pod, uid: str, names: list[str]) -> dict[str, Any]:
    return {"Pod": {"metadata": {"name": uid, "uid": uid}, "spec": spec_of(pod)}, "NodeNames": names}


def extender(name: str = "FGD", directory: Path = Path(), **options: Any) -> Extender:
    async def refresh() -> list[EmptyNode]:
        return [*MACHINES, EmptyNode("new-0", 8000, 8192, 2, "G2")]

    limit = options.pop("limit", 20.0)
    given: dict[str, Any] = {"ties": "name", "on_failure": "end", **options}
    made = Extender(
        policy(name, directory, limit),
        limit=limit,
        product_label="product",
        refresh=refresh,
        now=time.monotonic,
        **given,
    )
    made.begin(MACHINES, PODS, random.Random(1))
    return made


def nobody() -> Pod:
    raise AssertionError("what a pod asks for is known")


def own(tmp_path: Path, body: str) -> str:
    text = f"import time\nimport numpy as np\n\ndef score(pod, nodes, study):\n    {body}\n"
    (tmp_path / "mine.py").write_text(text)
    return "mine.py"


NAMES = [machine.name for machine in MACHINES]


def test_a_pod_is_read_as_kube_scheduler_sends_it() -> None:
    term = {"matchExpressions": [{"key": "product", "operator": "In", "values": ["T4", "G2"]}]}
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}}
    assert pod_of("p", spec_of(PODS[0]) | {"affinity": affinity}, "product") == Pod(
        "p", 500, 128, 1, 500, frozenset({"T4", "G2"})
    )
    assert pod_of("p", spec_of(PODS[1]) | {"nodeSelector": {"product": "T4"}}, "product").models == {"T4"}
    assert pod_of("p", spec_of(PODS[2]) | {"nodeSelector": {"product": "T4"}}, "product") == Pod("p", 2000, 512)
    either = [term, {"matchExpressions": [{"key": "zone", "operator": "In", "values": ["a"]}]}]
    affinity["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"] = either
    assert pod_of("p", spec_of(PODS[0]) | {"affinity": affinity}, "product").models == frozenset()


def test_nodes_stand_in_the_order_of_their_numbers() -> None:
    names = [f"pool-{number}" for number in range(12)]
    assert [each.name for each in in_order([EmptyNode(name, 1, 1) for name in sorted(names)])] == names


async def test_it_places_a_stream_as_a_run_without_a_cluster_does() -> None:
    for name in ("FGD", "BestFit", "Random"):
        source = random.Random(7)
        stream = drawn(PODS * 3, ASKS, 8000, 1.3, source)
        made = extender(name)
        made.begin(MACHINES, PODS * 3, source)
        placed = 0
        for number, pod in enumerate(stream):
            answer = await made.filter(asked(pod, f"p-{number}", NAMES))
            assert len(answer["NodeNames"]) <= 1
            if answer["NodeNames"]:
                placed += 1
                made.seen(f"p-{number}", f"p-{number}", answer["NodeNames"][0], False, nobody)
        offline = run(MACHINES, PODS * 3, policy(name, Path(), 20), seed=7, inflate=1.3)
        assert (placed, len(stream)) == (offline.placed, offline.pods), name
        assert 0 < placed < len(stream), "some fit nowhere"
        assert len(made.done.places) == placed
        assert made.done.elsewhere == 0
        made.close()


async def test_only_nodes_that_kube_scheduler_left_are_answered() -> None:
    made = extender()
    assert (await made.filter(asked(PODS[0], "a", ["m-2"])))["NodeNames"] == ["m-2"]
    assert (await made.filter(asked(PODS[0], "b", [])))["NodeNames"] == []
    made.close()


async def test_a_pod_that_is_tried_again_or_gone_holds_nothing_of_before() -> None:
    made = extender()
    for _ in range(3):
        assert (await made.filter(asked(PODS[1], "a", ["m-0"])))["NodeNames"] == ["m-0"]
    assert (await made.filter(asked(PODS[1], "b", ["m-0"])))["NodeNames"] == ["m-0"]
    assert (await made.filter(asked(PODS[1], "c", ["m-0"])))["NodeNames"] == [], "both GPUs are held"
    made.seen("b", "b", "", True, nobody)
    assert (await made.filter(asked(PODS[1], "c", ["m-0"])))["NodeNames"] == ["m-0"]
    made.close()


async def test_of_equally_good_nodes_kube_scheduler_draws_one_and_the_next_answer_waits_for_it() -> None:
    made = extender("BestFit", ties="random")
    best = (await made.filter(asked(PODS[1], "a", NAMES)))["NodeNames"]
    assert sorted(best) == NAMES, "four empty machines that are alike"
    next_one = asyncio.create_task(made.filter(asked(PODS[1], "b", NAMES)))
    await asyncio.sleep(0.05)
    assert not next_one.done(), "where the first one goes is not known yet"
    made.seen("a", "a", "m-2", False, nobody)
    assert (await next_one)["NodeNames"] == ["m-2"], "BestFit fills the machine that is in use"
    made.close()


@pytest.mark.parametrize("last", ["m-2", ""], ids=["completed", "deleted"])
async def test_a_pod_that_has_ended_before_the_next_one_comes_holds_nothing(last: str) -> None:
    made = extender("BestFit", ties="random")
    assert len((await made.filter(asked(PODS[1], "a", NAMES)))["NodeNames"]) > 1
    made.seen("a", "a", "m-2", False, nobody)
    made.seen("a", "a", last, True, nobody)
    both = Pod("both", 1, 1, 2, 1000)
    assert (await made.filter(asked(both, "b", ["m-2"])))["NodeNames"] == ["m-2"]
    assert made.done.places["a"] == [("m-2", (0,))]
    made.close()


async def test_a_pod_that_was_bound_elsewhere_is_counted_and_accounted_for_there() -> None:
    made = extender()
    chosen = (await made.filter(asked(PODS[1], "a", NAMES)))["NodeNames"][0]
    other = next(name for name in NAMES if name != chosen)
    made.seen("a", "a", other, False, lambda: PODS[1])
    assert made.done.elsewhere == 1
    assert made.done.places["a"] == [(other, (0,))]
    two = Pod("two", 1, 1, 2, 1000)
    assert (await made.filter(asked(two, "b", [other])))["NodeNames"] == []
    assert (await made.filter(asked(two, "c", [chosen])))["NodeNames"] == [chosen]
    made.close()


async def test_nodes_that_come_later_are_known_when_they_are_named() -> None:
    made = extender()
    await made.filter(asked(PODS[1], "a", ["m-1"]))
    assert (await made.filter(asked(PODS[1], "b", ["new-0"])))["NodeNames"] == ["new-0"]
    assert (await made.filter(asked(Pod("two", 1, 1, 2, 1000), "c", ["m-1"])))["NodeNames"] == [], "a still has its GPU"
    made.close()


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("raise ValueError('my own mistake')", "my own mistake"),
        ("return 'seven'", "answered no number"),
        ("return np.full(len(nodes), np.nan)", "answered no number"),
        ("return np.zeros(len(nodes) + 1)", "answered no number"),
        ("\n    while True:\n        pass", "took longer than 0.3 s"),
        ("time.sleep(20)", "took longer than 0.3 s and did not let itself be interrupted"),
    ],
)
async def test_a_policy_that_fails_ends_the_run_or_leaves_its_pod_without_a_node(
    body: str, said: str, tmp_path: Path
) -> None:
    bad = f"if pod.name == 'bad':\n        {body}\n    return np.zeros(len(nodes))".replace(
        "\n    while", "\n        while"
    )
    bad = bad.replace("\n        pass", "\n            pass")
    file = own(tmp_path, bad)
    made = extender(file, tmp_path, on_failure="skip", limit=0.3)
    assert await made.filter(asked(PODS[0], "bad", NAMES)) == {"NodeNames": [], "FailedNodes": {}, "Error": ""}
    assert said in made.done.failure
    assert (await made.filter(asked(PODS[0], "good", NAMES)))["NodeNames"], "it goes on"
    assert (await made.filter(asked(PODS[0], "bad", NAMES)))["NodeNames"] == []
    assert (made.done.failed, made.ended) == (2, "")
    made.close()
    ending = extender(file, tmp_path, on_failure="end", limit=0.3)
    assert (await ending.filter(asked(PODS[0], "bad", NAMES)))["Error"]
    assert ending.ended.startswith("the policy failed: policy mine: score") or "took longer" in ending.ended
    assert said in ending.done.failure
    ending.close()


async def test_the_traceback_is_of_the_policys_own_lines(tmp_path: Path) -> None:
    made = extender(own(tmp_path, "raise ValueError('my own mistake')"), tmp_path)
    await made.filter(asked(PODS[0], "a", NAMES))
    assert "mine.py" in made.done.failure
    assert "line 5, in score" in made.done.failure
    assert "calling.py" not in made.done.failure
    assert made.ended == "the policy failed: policy mine: score raised for pod a"
    made.close()


async def test_a_call_is_answered_while_another_never_comes_back() -> None:
    caller, left = Caller(0.2), asyncio.Event()

    def forever() -> None:
        time.sleep(5)
        left.set()

    with pytest.raises(PolicyFailed, match="did not let itself be interrupted"):
        await caller.call(forever)
    assert await caller.call(lambda: 7) == 7
    assert not left.is_set()
    caller.close()


async def test_only_who_knows_the_address_is_answered() -> None:
    made = extender()
    body = json.dumps(asked(PODS[0], "a", NAMES))
    async with served(made.filter) as url, aiohttp.ClientSession() as session:
        root = url.rpartition("/")[0]
        assert root.startswith("http://127.0.0.1:")
        assert len(url.rpartition("/")[2]) >= 43, "256 bits"
        for path in ("", "/", "/filter", f"/{'x' * 43}/filter", "/../filter", "//filter"):
            async with session.post(f"{root}{path}", data=body) as answer:
                assert answer.status == 404, path
                assert await answer.text() == "404: Not Found"
        assert made.done.asked == 0, "nobody of these came so far"
        async with session.post(f"{url}/filter", data="no JSON") as answer:
            assert answer.status == 400
        async with session.post(f"{url}/filter", data=body) as answer:
            assert len((await answer.json())["NodeNames"]) == 1


def test_kube_scheduler_is_told_of_the_extender_beside_what_the_user_has(tmp_path: Path) -> None:
    made = extended(None, "http://here/secret", 10, once=True)
    only = made["extenders"][0]
    assert (only["urlPrefix"], only["nodeCacheCapable"], only["httpTimeout"]) == ("http://here/secret", True, "40s")
    assert made["percentageOfNodesToScore"] == 100
    assert made["podInitialBackoffSeconds"] == made["podMaxBackoffSeconds"] == 86_400
    mine = tmp_path / "mine.yaml"
    fit = {"name": "NodeResourcesFit", "args": {"ignoredResources": ["example.com/a"]}}
    profile = {"schedulerName": "mine", "plugins": {"filter": {"disabled": [{"name": "NodePorts"}]}}}
    document = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "profiles": [profile | {"pluginConfig": [fit]}],
    }
    mine.write_text(yaml.safe_dump(document))
    found = extended(mine, "http://here/secret", 10, once=False)
    assert "podInitialBackoffSeconds" not in found
    plugins, config = found["profiles"][0]["plugins"], found["profiles"][0]["pluginConfig"]
    assert plugins["filter"] == {"disabled": [{"name": "NodePorts"}]}
    assert plugins["score"] == {"disabled": [{"name": "*"}]}
    assert config[0]["args"]["ignoredResources"] == ["example.com/a", "kumulus.io/gpu-milli"]
    scored = extended(mine, "http://here/secret", 10, once=False, scoring=True)["profiles"][0]
    assert "score" not in scored["plugins"], "its own plugins choose"
    assert scored["pluginConfig"][0]["args"]["ignoredResources"] == ["example.com/a", "kumulus.io/gpu-milli"]
    mine.write_text(yaml.safe_dump(document | {"extenders": [{"urlPrefix": "http://other"}]}))
    with pytest.raises(LabError, match="extenders of its own"):
        extended(mine, "http://here/secret", 10, once=False)

"""podLifecycles and podUsage in a stack file: what is taken, and what is said of every mistake."""

import math
import re
from collections.abc import Sequence
from typing import Any

import jq
import pytest

from kumulus.kwok import lifecycle_stages
from kumulus.kwok.lifecycle_stages import StageObject, stage_objects
from kumulus.kwok.usage import resource_usage
from kumulus.stackfile.kwok_options import cluster_options
from kumulus.stackfile.model import ClusterSpec
from tests.support.draws import CRITICAL, START, Cdf, distance, fits, normal, pod, spread_error, waits
from tests.support.said import problems_of

COUNT = 10_000
MOST_ERRORS = 5.0
DISTRIBUTIONS: dict[str, tuple[dict[str, Any], Cdf]] = {
    "uniform": ({"uniform": {"from": "1m", "to": "5m"}}, lambda x: min(1.0, max(0.0, (x - 60) / 240))),
    "normal": ({"normal": {"mean": "10m", "sigma": "1m"}}, lambda x: normal((x - 600) / 60)),
    "lognormal": ({"lognormal": {"median": "10m", "sigma": 0.8}}, lambda x: normal(math.log(x / 600) / 0.8)),
    "exponential": ({"exponential": {"mean": "10m"}}, lambda x: 1 - math.exp(-x / 600)),
}


def told(**cluster: Any) -> dict[str, str]:
    return problems_of(ClusterSpec.checked, cluster)


def life(**fields: Any) -> dict[str, Any]:
    return {"name": "a", "run": "1m", **fields}


def lives(*lifecycles: dict[str, Any]) -> dict[str, Any]:
    return {"podLifecycles": list(lifecycles)}


def resized(*resizes: dict[str, Any], **fields: Any) -> dict[str, Any]:
    return lives({"name": "a", "resizes": list(resizes), **fields})


def uses(**fields: Any) -> dict[str, Any]:
    return {"podUsage": [{"name": "a", **fields}]}


DURATIONS: list[tuple[Any, str, str]] = [
    ("10 min", "", "is not a duration; write a duration such as 90s"),
    ("5min", "", "is not a duration"),
    (5, "", "has no unit; write 5s"),
    ("-3s", "", "is negative"),
    ("9000h", "", "longer than a year"),
    ({"logNormal": {}}, ".logNormal", "is not a distribution; write lognormal"),
    ({"weibull": {}}, ".weibull", "is not a distribution; leave it out or write one of fixed, uniform"),
    ({"normal": {"mean": "1m", "sigma": "-3s"}}, ".normal.sigma", "is negative"),
    ({"normal": {"mean": "1m"}}, ".normal.sigma", "is missing; write sigma: 30s"),
    ({"lognormal": {"median": "1m", "sigma": -1}}, ".lognormal.sigma", "is negative; write a number from 0"),
    ({"lognormal": {"mean": "1m", "sigma": 1}}, ".lognormal.mean", "is not a known key; write median"),
    ({"uniform": {"from": "5m", "to": "1m"}}, ".uniform", "begins after its end; write from: 1m and to: 5m"),
    ({"normal": {}, "uniform": {}}, "", "names 2 distributions; write one of"),
    ([], "", "is a list; write a duration such as 5m, or a distribution"),
]
WEB = life(name="web", selector={"labels": {"app": "web"}})
HELD = {"share": 0.6, "outcome": "deferred"}
TOO_MANY = "come to 1.2, more than 1; make the shares come to 1 or less"
CURVE = {"curve": [{"at": "5m", "value": "1"}, {"at": "1m", "value": "10%"}]}
MISTAKES: list[tuple[dict[str, Any], str, str]] = [
    *((lives(life(run=run)), f"podLifecycles[0].run{path}", words) for run, path, words in DURATIONS),
    (lives(life(failures=[{"share": 1.5}])), "podLifecycles[0].failures[0].share", "not between 0 and 1"),
    (lives(life(failures=[{"share": 0.6}] * 2)), "podLifecycles[0].failures", f"has shares that {TOO_MANY}"),
    (lives({"name": "a", "failures": [{"share": 0.1}]}), "podLifecycles[0].failures[0]", "has no time"),
    (resized(HELD, HELD), "podLifecycles[0].resizes", f"{TOO_MANY}; what is left"),
    (resized({**HELD, "outcome": "infeasible", "after": "1s"}), "podLifecycles[0].resizes[0].after", "nobody tries"),
    (resized({**HELD, "after": "1s"}, run="5m"), "podLifecycles[0].resizes[0].after", "its pods end"),
    (resized(HELD, mustRun="fail"), "podLifecycles[0].resizes", "leave one of them out"),
    (
        lives(life(name="all"), WEB),
        "podLifecycles[1].selector",
        "podLifecycles[0] selects all of these pods, and the first in the file wins",
    ),
    (lives(life(name="all"), WEB), "podLifecycles[1].selector", "move it before podLifecycles[0]"),
    (lives(WEB, {**WEB, "name": "b"}), "podLifecycles[1].selector", "the same pods"),
    (lives(WEB, life(name="web")), "podLifecycles[1].name", '"web" is alr'),
    (lives(life(imagePul="4s")), "podLifecycles[0].imagePul", "write imagePull"),
    (
        lives(life(selector={"ownerKinds": ["pytorchjob"]})),
        "podLifecycles[0].selector.ownerKinds[0]",
        "write PyTorchJob",
    ),
    (lives({"name": "a"}), "podLifecycles[0]", "says nothing of how its pods live"),
    (lives(life(mustRun="fail")), "podLifecycles[0].run", "has no effect with mustRun"),
    (uses(cpu="180%"), "podUsage[0].cpu", "write 100% or less"),
    (uses(cpu={"rang": {}}), "podUsage[0].cpu.rang", "write range"),
    (uses(gpu="3"), "podUsage[0].gpu", "is not a share"),
    (uses(memory={"range": {"from": "2Gi", "to": "1Gi"}}), "podUsage[0].memory.range", "write from: 1Gi and to: 2Gi"),
    (uses(cpu=CURVE), "podUsage[0].cpu.curve", "mixes shares"),
    (uses(cpu=CURVE), "podUsage[0].cpu.curve[1].at", "is not after the point before"),
    (uses(), "podUsage[0]", "says nothing"),
]


@pytest.mark.parametrize(("cluster", "path", "words"), MISTAKES)
def test_a_mistake_is_told_with_its_place_and_remedy(cluster: dict[str, Any], path: str, words: str) -> None:
    assert words in told(**cluster)[path]


def test_what_an_earlier_lifecycle_leaves_is_for_a_later_one() -> None:
    assert len(ClusterSpec.checked(lives(WEB, life(name="all"))).podLifecycles) == 2


def test_a_stack_without_lives_asks_nothing_of_its_cluster() -> None:
    assert cluster_options(ClusterSpec.checked({})) == {}
    template = {"capacity": {"cpu": "1", "memory": "1Gi", "pods": "1", "nvidia.com/gpu": "1k"}}
    group = {"name": "a", "placement": [{"availabilityZone": "z", "replicas": 1}], "nodeTemplate": template}
    usage = [{"name": "all", "cpu": "80%"}]
    found = cluster_options(ClusterSpec.checked({"nodeGroups": [group], "podUsage": usage}))
    assert found == {"podUsage": "gpus"}
    assert cluster_options(ClusterSpec.checked({"podLifecycles": [life()]})) == {"stageObjects": True}
    assert cluster_options(ClusterSpec.checked({"podUsage": [{"name": "a", "cpu": "1"}]})) == {"podUsage": "pods"}


def stages_of(*lifecycles: dict[str, Any]) -> list[StageObject]:
    spec = ClusterSpec.checked({"podLifecycles": list(lifecycles)})
    return stage_objects([each.lifecycle() for each in spec.podLifecycles])


def test_a_stage_in_which_containers_start_writes_a_kubelets_events_where_they_are_asked_for() -> None:
    def written(**fields: Any) -> dict[str, list[str]]:
        spec = ClusterSpec.checked({"podLifecycles": [{"name": "a", **fields}]})
        lives = [each.lifecycle() for each in spec.podLifecycles]
        made = {stage.name.partition(".")[2]: dict(stage.spec) for stage in stage_objects(lives, events=True)}
        for without in stage_objects(lives):
            steps = made[without.name.partition(".")[2]].get("steps") or [{"patch": without.spec["next"]["patches"][0]}]
            first = without.spec.get("steps") or [{"patch": without.spec["next"]["patches"][0]}]
            assert steps[0] == first[0], "the status comes first, as without events"
        return {
            step: re.findall("message: (.*)", "".join(each["apply"]["template"] for each in spec["steps"][1:]))
            for step, spec in made.items()
            if "steps" in spec and {"delete": True} not in spec["steps"]
        }

    created, started = "Container created", "Container started"
    there = ["Container image already present on machine", created, started]
    assert written(run="1s") == {"create": there, "restart": there}
    pulled = ["Successfully pulled image", created, started]
    assert written(imagePull="1s", init="1s", startUp="1s") == {"start": pulled, "init": there}
    assert written(termination="1s")["terminating"] == ["Stopping container"]


def test_stages_that_are_not_needed_are_not_there() -> None:
    def names(**fields: Any) -> list[str]:
        return [stage.name for stage in stages_of({"name": "a", **fields})]

    assert names(imagePull="1s") == ["a.create", "a.start"]
    assert names(run="1s") == ["a.create", "a.succeed", "a.restart"]
    everything = names(imagePull="1s", init="1s", startUp="1s", run="1s", failures=[{"share": 0.5}])
    assert everything == [f"a.{step}" for step in ["create", "start", "init", "ready", "succeed", "fail-0", "restart"]]


def test_resizes_have_their_shares_each_with_a_draw_of_its_own() -> None:
    found = stages(
        resizes=[{"share": 0.3, "outcome": "deferred", "after": "1m"}, {"share": 0.1, "outcome": "infeasible"}]
    )
    assert list(found) == ["create", "resize-0", "resize-0-after", "resize-1"]
    *_, resized, drawn = (each["jq"]["key"] for each in found["resize-0"].spec["selector"]["matchExpressions"])
    resized, drawn = jq.compile(resized), jq.compile(drawn)
    asked = {"name": "main", "resources": {"requests": {"cpu": "2"}}}
    each = {**pod(0), "spec": {"containers": [asked]}}
    each["status"] = {"observedGeneration": 1, "containerStatuses": [{"name": "main", "resources": {}}]}
    outcomes = []
    for generation in range(2, COUNT + 2):
        each["metadata"] = {**each["metadata"], "generation": generation}
        assert resized.input_value(each).first() == "true"
        outcomes.append(drawn.input_value(each).first())
    for outcome, share in {"accepted": 0.6, "resize 0": 0.3, "resize 1": 0.1}.items():
        assert abs(outcomes.count(outcome) - COUNT * share) < 5 * math.sqrt(COUNT * share * (1 - share)), outcome
    # Another change of the spec, what has been seen, and what the pod itself declares.
    same = {**each, "status": {**each["status"], "containerStatuses": [asked]}}
    seen = {**each, "status": {**each["status"], "observedGeneration": each["metadata"]["generation"]}}
    own = {**each, "metadata": {**each["metadata"], "annotations": {"kumulus.io/resize": "infeasible"}}}
    assert {resized.input_value(other).first() for other in (same, seen, own)} == {"false"}


def test_adding_a_lifecycle_at_the_end_changes_no_stage_of_the_others() -> None:
    first, second = life(selector={"labels": {"a": "b"}}), life(name="b")
    alone = stages_of(first)
    both = stages_of(first, second)
    assert both[: len(alone)] == alone


def test_the_first_usage_that_selects_a_pod_is_asked_first() -> None:
    usages = [{"name": "a", "selector": {"labels": {"app": "x"}}, "cpu": "1"}, {"name": "b", "cpu": "2"}]
    spec = ClusterSpec.checked({"podUsage": usages})
    cpu = resource_usage([each.usage() for each in spec.podUsage])["usages"][0]["usage"]["cpu"]["expression"]
    assert cpu.index('"app" in pod.metadata.labels') < cpu.index('Quantity("1.000000000")') < cpu.index('"2.000')


def stages(**lifecycle: Any) -> dict[str, StageObject]:
    spec = ClusterSpec.checked({"podLifecycles": [{"name": "a", **lifecycle}]})
    made = stage_objects([each.lifecycle() for each in spec.podLifecycles])
    return {stage.name.partition(".")[2]: stage for stage in made}


@pytest.mark.parametrize("kind", DISTRIBUTIONS)
def test_the_durations_of_10_000_pods_have_their_distribution(kind: str) -> None:
    raw, cdf = DISTRIBUTIONS[kind]
    sample = waits(stages(run=raw)["succeed"], [pod(number) for number in range(COUNT)])
    assert distance(sample, cdf) < CRITICAL
    assert spread_error(sample, cdf) < MOST_ERRORS
    # The test tells durations that are a tenth longer, or spread a tenth wider, from the right ones.
    assert distance([value * 1.1 for value in sample], cdf) > CRITICAL
    middle = sorted(sample)[COUNT // 2]
    wider = [max(middle + (value - middle) * 1.1, 1e-9) for value in sample]
    assert spread_error(wider, cdf) > MOST_ERRORS


def test_the_outcomes_of_10_000_pods_have_their_shares_whatever_their_durations() -> None:
    found = stages(run={"exponential": {"mean": "10m"}}, failures=[{"share": 0.1}, {"share": 0.05, "exitCode": 137}])
    pods = [pod(number) for number in range(COUNT)]
    program = jq.compile(found["succeed"].spec["selector"]["matchExpressions"][-1]["jq"]["key"])
    outcomes = [program.input_value(each).first() for each in pods]
    for outcome, share in {"success": 0.85, "failure 0": 0.1, "failure 1": 0.05}.items():
        # Five standard deviations of a binomial distribution.
        assert abs(outcomes.count(outcome) - COUNT * share) < 5 * math.sqrt(COUNT * share * (1 - share)), outcome
    runs = waits(found["succeed"], pods)
    failed = [run for run, outcome in zip(runs, outcomes, strict=True) if outcome != "success"]
    assert distance(failed, DISTRIBUTIONS["exponential"][1]) < CRITICAL


def correlation(xs: Sequence[float], ys: Sequence[float]) -> float:
    mean_x, mean_y = sum(xs) / len(xs), sum(ys) / len(ys)
    covariance = sum((x - mean_x) * (y - mean_y) for x, y in zip(xs, ys, strict=True))
    return covariance / math.sqrt(sum((x - mean_x) ** 2 for x in xs) * sum((y - mean_y) ** 2 for y in ys))


def test_neighbours_and_the_different_draws_of_a_pod_have_nothing_to_do_with_each_other() -> None:
    count = 3_000
    pods = [pod(number) for number in range(count)]

    def drawn(seed: int, what: str) -> list[float]:
        program = jq.compile(f'{lifecycle_stages.definitions(seed)} draw("{what}")')
        return [program.input_value(each).first() for each in pods]

    runs, pulls, others = drawn(0, "run"), drawn(0, "image pull"), drawn(1, "run")
    assert len(set(runs)) > count - 5
    for other in (pulls, others, [*runs[1:], runs[0]]):
        assert abs(correlation(runs, other)) < 5 / math.sqrt(count)


def test_the_same_seed_gives_the_same_durations_and_another_one_others() -> None:
    pods, raw = [pod(number) for number in range(20)], {"exponential": {"mean": "1h"}}
    first = waits(stages(run=raw, seed=7)["succeed"], pods)
    assert waits(stages(run=raw, seed=7)["succeed"], pods) == first
    assert not set(waits(stages(run=raw, seed=8)["succeed"], pods)) & set(first)


def test_an_indexed_jobs_pod_is_known_by_its_index_and_its_retry_is_another_throw() -> None:
    def of_job(name: str, **annotations: str) -> dict[str, Any]:
        owner = {"kind": "Job", "name": "train", "controller": True}
        keyed = {f"batch.kubernetes.io/{key.replace('_', '-')}": value for key, value in annotations.items()}
        return pod(name=name, ownerReferences=[owner], annotations=keyed)

    found = stages(run={"exponential": {"mean": "1h"}}, failures=[{"share": 0.5}])
    first, again, next_index, counted = (
        of_job("train-3-abcde", job_completion_index="3"),
        of_job("train-3-fghij", job_completion_index="3"),
        of_job("train-4-klmno", job_completion_index="4"),
        of_job("train-3-pqrst", job_completion_index="3", job_index_failure_count="1"),
    )
    run, same, other, later = waits(found["succeed"], [first, again, next_index, counted])
    assert run == same
    assert len({run, other, later}) == 3
    program = jq.compile(lifecycle_stages.definitions(0) + " throw")
    assert len({program.input_value(each).first() for each in (first, again, next_index, counted)}) == 4


def test_a_restarted_container_draws_anew() -> None:
    before, after = pod(), pod()
    after["status"]["containerStatuses"][0]["restartCount"] = 1
    first, second = waits(stages(run={"exponential": {"mean": "1h"}})["succeed"], [before, after])
    assert first != second


def test_phases_follow_one_another() -> None:
    found = stages(imagePull="20s", startUp="5s", run="1m")
    assert waits(found["start"], [pod()]) == [20.0]
    assert waits(found["ready"], [pod()]) == [5.0]
    assert waits(found["succeed"], [pod()]) == [65.0]


def test_a_deleted_pod_ends_when_drawn_and_is_killed_when_its_grace_period_is_over() -> None:
    found = stages(termination={"uniform": {"from": "10s", "to": "50s"}})
    assert list(found) == ["create", "terminate", "kill", "terminating"]
    ended: dict[str, list[float]] = {}
    for number in range(40):
        # 30 s after START, which is when it was deleted.
        deleted = pod(number, deletionTimestamp=START.replace("00Z", "30Z"), deletionGracePeriodSeconds=30)
        deleted["metadata"] |= {"generation": 2}
        deleted["status"]["conditions"] = [{"type": "kumulus.io/lifecycle", "reason": "a"}]
        assert chosen(found, deleted) == ["terminating"]
        deleted["status"] |= {"observedGeneration": 2}
        (step,) = chosen(found, deleted)
        ended.setdefault(step, []).extend(waits(found[step], [deleted]))
        for other in ({"deletionGracePeriodSeconds": 0}, {"deletionTimestamp": None}):
            assert chosen(found, {**deleted, "metadata": {**deleted["metadata"], **other}}) == []
        deleted["status"]["containerStatuses"][0]["state"] = {"waiting": {"reason": "CrashLoopBackOff"}}
        assert chosen(found, deleted) == []
    assert ended.keys() == {"terminate", "kill"}
    assert set(ended["kill"]) == {30.0}
    assert 10 <= min(ended["terminate"]) < max(ended["terminate"]) <= 30


def chosen(found: dict[str, StageObject], each: dict[str, Any]) -> list[str]:
    """Which stages' selectors match a pod."""
    listed = {step: stage.spec["selector"]["matchExpressions"] for step, stage in found.items()}
    return [step for step, wanted in listed.items() if all(fits(match["jq"], each) for match in wanted)]


def test_what_takes_no_time_is_due_at_once() -> None:
    expression = stages(startUp=0, run="0s")["ready"].spec["delay"]["durationFrom"]["jq"]["expression"]
    assert jq.compile(expression).input_value(pod()).first() == START.replace("Z", ".000Z")


def test_the_back_off_is_the_kubelets() -> None:
    def ended(restarts: int, ran: int) -> dict[str, Any]:
        end = {"startedAt": START, "finishedAt": f"2026-01-01T00:{ran // 60:02}:{ran % 60:02}Z"}
        found = pod()
        found["status"]["containerStatuses"] = [{"restartCount": restarts, "state": {"terminated": end}}]
        return found

    restart = stages(run="1m")["restart"]
    cases = [(0, 30), (1, 30), (2, 30), (6, 30), (9, 30), (9, 700)]
    found = waits(restart, [ended(*case) for case in cases])
    since_end = [wait - ran for wait, (_, ran) in zip(found, cases, strict=True)]
    # No half second where nothing is waited for.
    assert since_end == [-0.5, 10, 20, 300, 300, -0.5]

"""The draws of pod lifecycles: the very jq expressions of their stages, evaluated for 10,000 pods."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import jq
import pytest

from kumulus.kwok import lifecycle_stages
from kumulus.kwok.lifecycle_stages import StageObject, stage_objects
from kumulus.stackfile.model import ClusterSpec
from tests.support.draws import CRITICAL, START, Cdf, distance, normal, pod, spread_error, waits

COUNT = 10_000
MOST_ERRORS = 5.0
DISTRIBUTIONS: dict[str, tuple[dict[str, Any], Cdf]] = {
    "uniform": ({"uniform": {"from": "1m", "to": "5m"}}, lambda x: min(1.0, max(0.0, (x - 60) / 240))),
    "normal": ({"normal": {"mean": "10m", "sigma": "1m"}}, lambda x: normal((x - 600) / 60)),
    "lognormal": ({"lognormal": {"median": "10m", "sigma": 0.8}}, lambda x: normal(math.log(x / 600) / 0.8)),
    "exponential": ({"exponential": {"mean": "10m"}}, lambda x: 1 - math.exp(-x / 600)),
}


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

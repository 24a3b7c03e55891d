"""The lives of a cluster's pods become lifecycles with the distributions that they were drawn from."""

import json
import random
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import yaml

from kumulus.cli.errors import UserError
from kumulus.cli.registry import offered, parser_of
from kumulus.extras.capture.lived import fitted, grouped
from kumulus.model.distributions import Distribution, distribution_of, drawn
from kumulus.stackfile.model import ClusterSpec

DRAWN = [
    Distribution("lognormal", 600, 0.6),
    Distribution("normal", 100, 8),
    Distribution("uniform", 10, 40),
    Distribution("exponential", 300),
]


def at(seconds: float) -> str:
    """A time as a kubelet writes it: whole seconds."""
    return datetime.fromtimestamp(1_800_000_000 + int(seconds), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def pod(number: int, pull: float, ran: float | None = None, code: int = 0, start_up: float = 0.0) -> dict[str, Any]:
    """A pod of a Job that ended, or one of a ReplicaSet that runs."""
    owner = {"kind": "ReplicaSet" if ran is None else "Job", "controller": True}
    begun = number * 1.37 + pull
    state: dict[str, Any] = {"running": {"startedAt": at(begun)}}
    if ran is not None:
        ended = {"startedAt": at(begun), "finishedAt": at(begun + ran), "exitCode": code, "reason": "OOMKilled"}
        state = {"terminated": ended}
    phase = "Running" if ran is None else "Failed" if code else "Succeeded"
    ready = {"type": "Ready", "status": "True", "lastTransitionTime": at(begun + start_up)}
    if ran is not None:
        ready = {"type": "Ready", "status": "False", "lastTransitionTime": at(begun + ran)}
    return {
        "kind": "Pod",
        "metadata": {"name": f"p-{number}", "labels": {"app": "a"}, "ownerReferences": [owner]},
        "status": {
            "phase": phase,
            "startTime": at(number * 1.37),
            "conditions": [ready],
            "containerStatuses": [{"name": "main", "restartCount": 0, "state": state}],
        },
    }


@pytest.mark.parametrize("wanted", DRAWN, ids=str)
def test_a_distribution_is_found_again_with_its_parameters(wanted: Distribution) -> None:
    source = random.Random(3)
    found = fitted([float(int(drawn(wanted, source))) for _ in range(2000)])
    assert found.kind == wanted.kind
    assert found.first == pytest.approx(wanted.first, rel=0.06, abs=1)
    assert found.second == pytest.approx(wanted.second, rel=0.06, abs=1)


def test_few_values_and_equal_ones_are_a_fixed_duration() -> None:
    assert fitted([3.0, 90.0, 7.0]) == Distribution("fixed", 7.0)
    assert fitted([5.0, 5.0, 5.0, 5.0, 5.0]) == Distribution("fixed", 5.0)


def test_what_takes_as_long_each_time_is_found_to_a_part_of_the_second_to_which_its_times_are_cut() -> None:
    cut = [float(int(begun / 10 + 17.7) - int(begun / 10)) for begun in range(40)]
    assert set(cut) == {17.0, 18.0}
    assert fitted(cut).first == pytest.approx(17.7, abs=0.01)


def test_a_run_lasts_until_the_kubelet_has_said_its_end() -> None:
    jobs = [pod(number, 1.0, 30.0) for number in range(9)]
    for each in jobs:
        ended = each["status"]["containerStatuses"][0]["state"]["terminated"]["finishedAt"]
        gone = at(datetime.fromisoformat(ended).timestamp() + 2 - 1_800_000_000)
        each["status"]["conditions"] += [
            {"type": "PodReadyToStartContainers", "status": "False", "lastTransitionTime": gone},
            {"type": "example.com/billed", "status": "True", "lastTransitionTime": at(9_000)},
        ]
    groups, _ = grouped(jobs)
    assert groups["Job"].lifecycle("jobs")["run"] == "32s"


def test_a_pod_that_was_given_up_with_its_node_has_no_end() -> None:
    """PodGC makes it Failed; nobody writes what became of its containers."""
    lost = pod(0, 1.0)
    lost["status"]["phase"] = "Failed"
    groups, others = grouped([lost])
    assert (others, groups["ReplicaSet"].failures) == (0, {})


def test_pods_become_the_lifecycles_that_they_were_made_of() -> None:
    source = random.Random(7)
    draws = [[drawn(each, source) for each in (DRAWN[2], DRAWN[0])] for _ in range(400)]
    jobs = [pod(number, pull, 30.0 if number % 20 == 0 else run, int(number % 20 == 0) * 137)
            for number, (pull, run) in enumerate(draws)]  # fmt: skip
    web = [pod(number, 5.0, start_up=8.0) for number in range(9)]
    groups, others = grouped([*jobs, *web, {"metadata": {"name": "bare"}}, {"metadata": "nonsense"}])
    assert (others, groups["Job"].about()) == (2, "400 pods: 380 ended, 20 failed, 0 still run")
    job, replica_set = (groups[kind].lifecycle(kind.lower()) for kind in ("Job", "ReplicaSet"))
    assert distribution_of(job["run"]).first == pytest.approx(600, rel=0.1)
    assert "uniform" in job["imagePull"]
    assert job["failures"] == [{"share": 0.05, "exitCode": 137, "reason": "OOMKilled", "after": "30s"}]
    assert (replica_set["imagePull"], replica_set["startUp"], "run" in replica_set) == ("5s", "8s", False)
    assert len(ClusterSpec.checked({"podLifecycles": [job, replica_set]}).podLifecycles) == 2


def test_what_is_printed_of_long_runs_and_of_many_ends_is_taken_by_a_stack_file() -> None:
    jobs = [pod(number, 1.0, 1_214_600.0 + number) for number in range(9)]
    failed = [pod(number, 1.0, 1_100_000.0 * number, code) for number, code in enumerate((1, 2, 3, 4, 5, 6), start=1)]
    life = grouped([*jobs, *failed])[0]["Job"].lifecycle("jobs")
    shares = grouped(failed)[0]["Job"].lifecycle("failing")
    assert [each["share"] for each in shares["failures"]] == [0.1666] * 6
    assert life["failures"][-1]["after"] == "6600000s"
    for each in (life, shares):
        assert ClusterSpec.checked({"podLifecycles": [each]}).podLifecycles[0].name == each["name"]


def test_a_pod_ends_once_with_the_container_that_failed_when_all_of_them_have() -> None:
    jobs = [pod(number, 1.0, 30.0, 137) for number in range(5)]
    for each in jobs:
        (main,) = each["status"]["containerStatuses"]
        began = datetime.fromisoformat(main["state"]["terminated"]["startedAt"]).timestamp() - 1_800_000_000
        ended = {"startedAt": at(began), "finishedAt": at(began + 40), "exitCode": 0, "reason": "Completed"}
        each["status"]["containerStatuses"].append({"name": "proxy", "state": {"terminated": ended}})
    lives = grouped(jobs)[0]["Job"]
    assert lives.about() == "5 pods: 0 ended, 5 failed, 0 still run"
    assert lives.lifecycle("jobs")["failures"] == [
        {"share": 1.0, "exitCode": 137, "reason": "OOMKilled", "after": "40s"}
    ]


def fit(*arguments: str) -> int:
    module, parser = parser_of("lifecycle", offered()["lifecycle"].command)
    return module.run(parser.parse_args(["fit", *arguments]))


def test_the_command_prints_a_part_of_a_stack_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "pods.json"
    file.write_text(json.dumps({"kind": "List", "items": [pod(number, 4.0, 60.0) for number in range(6)]}))
    assert fit(str(file), "--by", "app") == 0
    printed = capsys.readouterr().out
    (life,) = yaml.safe_load(printed)["podLifecycles"]
    assert life == {"name": "a", "selector": {"labels": {"app": "a"}}, "imagePull": "4s", "run": "60s"}
    assert "# 6 pods: 6 ended, 0 failed, 0 still run" in printed
    file.write_text(json.dumps({"kind": "Pod", "metadata": {"name": "x"}}))
    with pytest.raises(UserError, match=r"no pod in .* has an owner, and times\n  To save pods"):
        fit(str(file))
    with pytest.raises(UserError, match="does not exist"):
        fit(str(tmp_path / "none.json"))

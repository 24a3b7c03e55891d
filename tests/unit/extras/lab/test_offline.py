"""Runs without a cluster: the stream, the measures and the seeds."""

import json
import random
from collections.abc import Sequence
from operator import attrgetter
from pathlib import Path

import pytest
import yaml

from kumulus.cli.main import main
from kumulus.extras.lab.errors import LabError
from kumulus.extras.lab.offline.experiment import machines_of
from kumulus.extras.lab.offline.measuring import ByArrival, run
from kumulus.extras.lab.offline.placing import EmptyNode, empty
from kumulus.extras.lab.plan.stream import drawn
from kumulus.extras.lab.policies import Nodes, Pod
from kumulus.extras.lab.policies.load import policy
from kumulus.stackfile.load import load as load_stack

MACHINES = [EmptyNode(f"m-{number}", 8000, 8192, 2, "T4") for number in range(4)]
ASKS = attrgetter("total_gpu_milli")
PODS = [Pod("half", 500, 128, 1, 500), Pod("whole", 1000, 256, 1, 1000), Pod("cpu", 2000, 512)]


def test_nodes_are_in_the_order_in_which_a_cluster_s_run_has_them(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of equally good nodes, the first in the shuffled order is taken: both have to shuffle the same order."""
    shuffled: list[str] = []

    def taken(machines: Sequence[EmptyNode]) -> Nodes:
        shuffled.extend(machine.name for machine in machines)
        return empty(machines)

    monkeypatch.setattr("kumulus.extras.lab.offline.measuring.empty", taken)
    machines = [EmptyNode(f"m{number}", 8000, 8192, 2, "T4") for number in (10, 8, 11, 9)]
    run(machines, PODS, policy("FGD", Path(), 10), seed=4, shuffle=False)
    expected = [f"m{number}" for number in (8, 9, 10, 11)]
    random.Random(4).shuffle(expected)
    assert shuffled == expected


def test_a_stream_has_every_pod_once_and_then_pods_drawn_up_to_the_share() -> None:
    stream = drawn(PODS, ASKS, 8000, 1.3, random.Random(1))
    assert sorted(pod.name for pod in stream[:3]) == ["cpu", "half", "whole"]
    demand = sum(pod.total_gpu_milli for pod in stream)
    assert 10_400 - 1000 < demand <= 10_400
    assert stream == drawn(PODS, ASKS, 8000, 1.3, random.Random(1))
    assert stream != drawn(PODS, ASKS, 8000, 1.3, random.Random(2))


def test_a_trace_that_asks_for_more_than_the_share_is_thinned() -> None:
    stream = drawn(PODS * 20, ASKS, 8000, 1.3, random.Random(1))
    assert len(stream) < 60
    assert sum(pod.total_gpu_milli for pod in stream) <= 10_400


def test_a_trace_without_gpus_cannot_be_inflated() -> None:
    with pytest.raises(LabError, match="Leave inflate out"):
        drawn([PODS[2]], ASKS, 8000, 1.3, random.Random(1))


def test_of_a_cluster_without_gpus_no_share_of_them_is_measured() -> None:
    noted = ByArrival(0)
    noted.note(0, 0, 0.0)
    assert all(curve == {} for curve in noted.curves().values())


def test_measures_are_means_over_the_pods_of_a_per_cent() -> None:
    noted = ByArrival(100_000)
    noted.note(1000, 1000, 500)
    noted.note(1400, 2000, 1000)
    noted.note(3000, 3000, 97_000)
    curves = noted.curves()
    assert curves["allocated_percent"] == {"1": 1.5, "2": 2.0, "3": 3.0}, "2 has none of its own: its neighbours' mean"
    assert curves["fragmented_percent_of_all_gpus"]["1"] == 0.75
    assert curves["fragmented_percent_of_idle_gpus"]["3"] == 100.0


def test_the_same_seed_gives_the_same_and_nothing_is_given_twice() -> None:
    for name in ("FGD", "Random"):
        first, again, other = (
            run(MACHINES, PODS * 3, policy(name, Path(), 60), seed=seed, inflate=1.3) for seed in (1, 1, 2)
        )
        assert first == again
        assert first.curves != other.curves
        assert max(first.curves["allocated_percent"].values()) <= 100
        assert first.placed < first.pods, "130 % of the GPUs cannot all be given"


def files(folder: Path, own_policy: str = "FGD", more: str = "") -> str:
    (folder / "nodes.csv").write_text("sn,cpu_milli,memory_mib,gpu,model\nn-0,8000,8192,2,T4\nn-1,8000,8192,2,T4\n")
    rows = "".join(f"p{n},500,128,1,{500 if n % 2 else 1000},,LS,Running,{n},99,{n}\n" for n in range(6))
    heading = "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase"
    (folder / "pods.csv").write_text(f"{heading},creation_time,deletion_time,scheduled_time\n{rows}")
    made = ["--inflate", "1.3", "--stay", "--policy", own_policy]
    paths = ["--stack", str(folder / "s.yaml"), "--experiment", str(folder / "e.yaml")]
    assert main(["trace", "import", "openb", str(folder / "nodes.csv"), str(folder / "pods.csv"), *made, *paths]) == 0
    with (folder / "e.yaml").open("a") as file:
        file.write(more)
    return str(folder / "e.yaml")


def test_the_command_prints_an_object_with_the_seeds(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    experiment = files(tmp_path)
    capsys.readouterr()
    assert main(["experiment", "run", experiment, "--offline", "--seeds", "42-44", "--ties", "name", "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert [each["seed"] for each in answer["seeds"]] == [42, 43, 44]
    assert (answer["policy"], answer["ties"]) == ("FGD", "name")
    for measure in ("allocated_percent", "fragmented_percent_of_all_gpus", "fragmented_percent_of_idle_gpus"):
        assert set(answer["seeds"][0][measure]) >= {"25", "50", "75", "100"}
    assert main(["experiment", "run", experiment, "--offline", "--policy", "BestFit", "--ties", "random"]) == 0
    assert "e: BestFit, ties by random, seed 0" in capsys.readouterr().out


@pytest.mark.parametrize(("on_error", "code"), [("end", 1), ("skip", 0)])
def test_a_policy_that_raises_ends_the_run_or_costs_its_pods(
    on_error: str, code: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "mine.py").write_text(
        "def choose(pod, nodes, study):\n    if pod.gpu_milli == 500:\n        raise KeyError('x')\n    return 0\n"
    )
    experiment = files(tmp_path, "mine.py", f"onPolicyError: {on_error}\n")
    capsys.readouterr()
    assert main(["experiment", "run", experiment, "--offline", "--seeds", "1-2", "--json"]) == code
    said = capsys.readouterr()
    assert said.err.count("KeyError: 'x'") == 1, "its traceback is shown once"
    if on_error == "skip":
        first = json.loads(said.out)["seeds"][0]
        assert first["failed"] > 0
        assert first["placed"] > 0
        assert first["pods"] >= first["placed"] + first["failed"]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--offline", "--seeds", "x"], "--seeds is x; write 42-51, or 1,2,5"),
        (["--offline", "--seeds", "9-1"], "the smaller first"),
        (["--offline", "--kubeconfig", "k"], "--kubeconfig is for runs on a cluster"),
        (["--json"], "--json is for runs without a cluster; write --offline"),
        (["--offline", "--policy", "BestFitt"], "write BestFit"),
        (["--offline", "--policy", "KubeScheduler"], "without a cluster there is none"),
        (["--offline", "--jobs", "0"], "--jobs is 0"),
    ],
)
def test_what_cannot_be_is_told(
    arguments: list[str], words: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["experiment", "run", files(tmp_path), *arguments]) == 1
    assert words in capsys.readouterr().err


def test_all_that_keeps_a_run_from_going_without_a_cluster_is_said_at_once(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = Path(files(tmp_path))
    found = yaml.safe_load(file.read_text())
    del found["policy"]
    for workload in found["workloads"]:
        del workload["arrival"]["trace"]["stay"], workload["arrival"]["trace"]["inflate"]
    file.write_text(yaml.safe_dump(found))
    assert main(["experiment", "run", str(file), "--offline"]) == 1
    said = capsys.readouterr().err
    assert "Write policy: FGD" in said
    assert "Write stay: true in arrival.trace" in said


def test_gpus_that_nodes_publish_for_claims_are_there_without_a_cluster(tmp_path: Path) -> None:
    (tmp_path / "jobs.csv").write_text("arrival,gpus\n0,1\n1,1\n")
    paths = ["--stack", str(tmp_path / "s.yaml"), "--experiment", str(tmp_path / "e.yaml")]
    made = ["--machines", "count=3,gpus=4,model=T4", "--resource-claims", "milli", "--stay"]
    assert main(["trace", "import", "csv", str(tmp_path / "jobs.csv"), *made, *paths]) == 0
    cluster = yaml.safe_load((tmp_path / "s.yaml").read_text())["config"]["kumulus:cluster"]
    [pool] = load_stack({"cluster": cluster}, "s", tmp_path).pools
    assert "nvidia.com/gpu" not in pool.allocatable
    assert [(machine.gpus, machine.model) for machine in machines_of(pool, "nvidia.com/gpu.product")] == [(4, "T4")] * 3
    assert main(["experiment", "run", str(tmp_path / "e.yaml"), "--offline", "--policy", "FGD"]) == 0

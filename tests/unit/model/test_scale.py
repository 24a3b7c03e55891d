"""The model behind `kumulus plan`: in step with what was measured, and its answers follow from each other."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from kumulus.model import scale

ROOT = Path(__file__).resolve().parents[3]
MEASURED = json.loads((ROOT / "tests" / "data" / "sizes.json").read_text())
LAPTOP = scale.MachineSize(cores=8, memory_mb=16_000)
TWO = scale.MachineSize(cores=2, memory_mb=25_200)
"""The machine of the measurements."""


def plan(*arguments: str) -> subprocess.CompletedProcess[str]:
    command: list[str | Path] = [sys.executable, ROOT / "kumulus", "plan", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)


@pytest.mark.parametrize("size", MEASURED, ids=lambda size: f"{size['nodes']}")
def test_the_model_is_in_step_with_what_was_measured(size: dict[str, Any]) -> None:
    found = scale.cost(size["nodes"], TWO, heartbeat_factor=size["heartbeat_factor"])
    # Measured after a round of renewals, when a large fleet takes a quarter less than at first, for which the model is.
    assert found.total_memory_mb == pytest.approx(sum(size["memory_mb"].values()), rel=0.4)
    assert found.etcd_mb == pytest.approx(size["etcd_mb"], rel=0.5)
    assert found.creation_s == pytest.approx(size["ready_s"], rel=0.5)
    if size["steady"]:
        # Renewals come in bursts, so that a window may hold one more or one less; those of a large fleet come late,
        # after half of the lease at most instead of a quarter.
        assert 0.45 * found.leases_per_s < size["leases_per_s"] < 1.25 * found.leases_per_s
        assert found.standing_cores == pytest.approx(sum(size["standing_cores"].values()), rel=0.55)


def test_a_lease_is_renewed_each_quarter_of_its_time() -> None:
    assert scale.cost(2550, TWO).leases_per_s == pytest.approx(2550 / 200)
    assert scale.cost(2550, TWO, heartbeat_factor=1).leases_per_s == pytest.approx(255)


def test_the_largest_fleet_fits_and_the_next_does_not() -> None:
    most = scale.most_nodes(LAPTOP)
    assert most >= 10_000
    assert scale.limits(scale.cost(most, LAPTOP), LAPTOP) == []
    assert scale.limits(scale.cost(most + 1000, LAPTOP), LAPTOP) != []


def test_each_limit_names_its_remedy() -> None:
    said = scale.limits(scale.cost(900_000, LAPTOP), LAPTOP)
    assert [line.partition(":")[0] for line in said] == ["memory", "CPU", "leases", "etcd", "kwok-controller"]
    assert all(word in " ".join(said) for word in ("existing", "heartbeatFactor", "etcdQuota", "label"))


def test_large_fleets_have_longer_leases_and_take_a_quarter_of_the_cpu() -> None:
    factors = [scale.default_heartbeat_factor(nodes) for nodes in (0, 1000, 1001, 5000, 5001, 100_000)]
    assert factors == [5, 5, 20, 20, 40, 40]
    before, now = (scale.cost(10_000, TWO, factor) for factor in (5, None))
    assert now.leases_per_s == before.leases_per_s / 8
    assert now.standing_cores <= before.standing_cores / 4
    # Of two cores one is left to what the fleet is there for.
    assert scale.cost(100_000, TWO).standing_cores <= 1


def test_the_api_server_keeps_to_its_share_of_the_memory_until_it_has_to_keep_more() -> None:
    memory = [scale.cost(nodes, TWO).memory_mb["kube-apiserver"] for nodes in (10_000, 100_000, 1_000_000)]
    assert memory[0] == scale.MEMORY_MB["kube-apiserver"].at(10_000)
    assert memory[1] == pytest.approx(25_200 * scale.API_SERVER_SHARE)
    assert 25_200 < memory[2] < scale.MEMORY_MB["kube-apiserver"].at(1_000_000)


def test_several_clusters_cost_what_each_costs_and_are_limited_as_each_is() -> None:
    each, other = scale.cost(30, TWO), scale.cost(6000, TWO)
    both = scale.together([each, other])
    assert (both.nodes, both.heartbeat_factor) == (6030, 40)
    assert both.total_memory_mb == pytest.approx(each.total_memory_mb + other.total_memory_mb)
    assert both.standing_cores == pytest.approx(each.standing_cores + other.standing_cores)
    assert both.etcd_mb == other.etcd_mb


def test_the_heartbeat_factor_that_is_advised_is_enough() -> None:
    nodes, machine = 200_000, scale.MachineSize(cores=2, memory_mb=1e6)
    (said,) = [line for line in scale.limits(scale.cost(nodes, machine), machine) if line.startswith("CPU")]
    factor = int(said.partition("heartbeatFactor: ")[2].split()[0])
    assert not [line for line in scale.limits(scale.cost(nodes, machine, factor), machine) if line.startswith("CPU")]


def test_so_many_leases_that_kwok_does_not_keep_up_are_a_limit_of_each_cluster() -> None:
    machine = scale.MachineSize(cores=64, memory_mb=1e6)

    def leases(*costs: scale.FleetFootprint) -> list[str]:
        return [line for line in scale.limits(scale.together(costs), machine) if line.startswith("leases")]

    # 50,000 nodes stood for a quarter of an hour; the leases of 100,000 were not renewed in time, not even those that
    # last 4,000 s.
    assert not leases(scale.cost(50_000, machine), scale.cost(50_000, machine))
    assert leases(scale.cost(100_000, machine, 100))
    (said,) = leases(scale.cost(100_000, machine))
    factor = int(said.partition("heartbeatFactor: ")[2].split()[0])
    assert not leases(scale.cost(100_000, machine, factor))
    assert leases(scale.cost(100_000, machine, factor - 1))


def test_of_many_small_clusters_the_control_planes_are_the_cause() -> None:
    machine = scale.MachineSize(cores=2, memory_mb=24_000)
    (said,) = scale.limits(scale.together([scale.cost(10, machine)] * 21), machine)
    assert said.startswith("CPU: 21 control planes alone take 1.3 of 2 cores")
    assert "heartbeatFactor" not in said
    # Where there is room left beside them, longer leases are the remedy, and are enough.
    roomy = scale.MachineSize(cores=2, memory_mb=1e6)
    (said,) = scale.limits(scale.together([scale.cost(1000, roomy)] * 12), roomy)
    factor = int(said.partition("heartbeatFactor: ")[2].split()[0])
    assert scale.limits(scale.together([scale.cost(1000, roomy, factor)] * 12), roomy) == []


def test_plan_prints_the_models_answer() -> None:
    done = plan("--nodes", "10000", "--cores", "8", "--memory", "16")
    assert done.returncode == 0
    lines = done.stdout.splitlines()
    assert lines[0] == "10,000 nodes on 8 cores, 16.0 GB:"
    assert [line.split()[0] for line in lines[1:-1]] == ["memory", "creation", "leases", "CPU", "etcd", "controllers"]
    assert "25 renewals/s (leases of 1,600 s)" in done.stdout
    assert lines[-1] == f"it fits: this machine holds {scale.most_nodes(LAPTOP):,} nodes with half of its CPUs to spare"


def test_plan_counts_a_stacks_nodes_and_takes_its_settings() -> None:
    answer = json.loads(plan("-s", "gcp-large", "--cores", "8", "--memory", "16", "--json").stdout)
    assert answer["nodes"] == 2550
    assert answer["leases_per_s"] == pytest.approx(2550 / 200)
    assert answer["most_nodes"] == scale.most_nodes(LAPTOP)


def test_plan_names_the_stack_whose_nodes_it_counts() -> None:
    assert plan("-s", "quickstart").stdout.startswith("quickstart: 30 nodes on ")


def test_plan_says_what_is_too_small_and_ends_with_1() -> None:
    done = plan("--nodes", "500000", "--cores", "2", "--memory", "8")
    assert done.returncode == 1
    assert "too much for this machine:\n  memory: " in done.stdout


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--nodes", "0"], "--nodes is 0; write a number above 0"),
        (["--nodes", "2000000"], "not asked beyond 1,000,000"),
        (["--nodes", "10", "--heartbeat-factor", "-1"], "--heartbeat-factor is -1"),
        (["-s", "gcp-larg"], "did you mean gcp-large?"),
        (["--nodes", "ten"], "--nodes is ten, not a whole number"),
    ],
)
def test_plan_refuses_what_cannot_be(arguments: list[str], words: str) -> None:
    done = plan(*arguments)
    assert (done.returncode != 0, words in done.stderr, "Traceback" in done.stderr) == (True, True, False)

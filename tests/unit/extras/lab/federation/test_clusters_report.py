"""What the clusters of a federation did, in report, summary, comparison and picture."""

from pathlib import Path

import pytest

from kumulus.extras.lab.cluster.components import Components
from kumulus.extras.lab.federation.dispatching import Dispatching
from kumulus.extras.lab.measure.allocation import Allocation
from kumulus.extras.lab.measure.placement import PlacementRecorder
from kumulus.extras.lab.measure.records import ExperimentRecords
from kumulus.extras.lab.measure.sampler import Sampler
from kumulus.extras.lab.measure.statistics import only_known
from kumulus.extras.lab.measure.views import NodeView, PodView, in_cluster
from kumulus.extras.lab.plan.pods import PlannedJob
from kumulus.extras.lab.report import compare, plots
from kumulus.extras.lab.report.making import by_cluster
from kumulus.extras.lab.report.model import ByCluster, Moment, Report
from kumulus.extras.lab.report.text import lines
from kumulus.extras.lab.run.bench import RepetitionOutcome
from kumulus.extras.lab.run.ending import Ending
from kumulus.extras.watch.live.amounts import Amounts
from kumulus.extras.watch.live.node import NOWHERE
from tests.support.reports import report

CORES = Amounts(gpus=0, cpu=4000, memory=10**9)
SPACE = "experiment-x-1"


def ran() -> RepetitionOutcome:
    """A repetition of three Jobs: one on east, one on both, one nowhere; east has two nodes, west one."""
    allocation = Allocation()
    for cluster, nodes in (("east", 2), ("west", 1)):
        for number in range(nodes):
            name = in_cluster(cluster, f"n{number}")
            allocation.put_node(NodeView(name, "", "z", Amounts(gpus=0, cpu=8000, memory=64 * 10**9), cluster=cluster))
    jobs = [
        PlannedJob(f"w-{n}", "w", 0.0, 1, ({"kind": "Job", "metadata": {"name": f"w-{n}"}, "spec": {}},))
        for n in range(3)
    ]
    records = ExperimentRecords(allocation, ((job.name, "w", 1) for job in jobs))
    ways = Dispatching("hub", ["east", "west"], jobs, SPACE)
    for job in jobs:
        ways.created(job, 0.0)
    for uid, of, cluster in (("a", "w-0", "east"), ("b", "w-1", "east"), ("c", "w-1", "west")):
        node = in_cluster(cluster, "n0")
        pod = PodView(uid, "w", of, node, "Running", "", "", CORES, owner=(of, uid), cluster=cluster)
        records.put(pod, 2.0)
        ways.pod(cluster, pod)
    none = Sampler(records, Components(Path("/nowhere")), None, lambda: 0.0)
    outcome = RepetitionOutcome(records, none, PlacementRecorder({}, NOWHERE, lambda: 0.0, {}), lasted=9.0)
    outcome.dispatching = ways
    return outcome


def reported() -> tuple[ByCluster, dict[str, float]]:
    outcome = ran()
    assert outcome.dispatching is not None
    found, measures = by_cluster(outcome, outcome.dispatching)
    return found, only_known(measures)


def with_clusters() -> Report:
    found, measures = reported()
    made = report(measures=[{**measures, "duration": 9.0}])
    details = made.results.tests[0].details
    details.clusters = found
    details.series |= {"jobs waiting": [3, 1], "jobs on east": [0, 2], "jobs on west": [0, 1], "jobs completed": [0, 0]}
    details.timeline = [Moment(at=1.0, what="east is killed: etcd")]
    return made


def test_each_worker_has_its_jobs_pods_and_allocation_and_all_have_it_together() -> None:
    found, measures = reported()
    assert found.jobs == {"w-0": ["east"], "w-1": ["east", "west"]}
    assert {name: (each.jobs, each.pods, each.scheduled, each.nodes) for name, each in found.workers.items()} == {
        "east": (2, 2, 2, 2),
        "west": (1, 1, 1, 1),
    }
    assert {name: each.allocated["cpu"] for name, each in found.workers.items()} == {"east": 0.5, "west": 0.5}
    assert ran().records.allocation.share("cpu") == 0.5
    assert "gpus" not in found.workers["east"].peak, "there is none to have"
    assert (measures["jobs.runTwice"], measures["jobs.lost"]) == (1, 0)


def test_a_worker_whose_nodes_are_all_gone_keeps_its_peaks() -> None:
    outcome = ran()
    outcome.records.allocation.remove_node("west/n0")
    assert outcome.dispatching is not None
    found, _ = by_cluster(outcome, outcome.dispatching)
    west = found.workers["west"]
    assert (west.nodes, west.allocated["cpu"], west.peak["cpu"]) == (0, 0, 0.5)
    assert "gpus" not in west.peak


def test_nodes_of_one_name_in_two_clusters_are_two() -> None:
    allocation = ran().records.allocation
    assert allocation.nodes == 3
    allocation.remove_node("east/n0")
    assert (allocation.parts["east"].nodes, allocation.parts["west"].nodes) == (1, 1)


def test_the_summary_has_a_line_for_each_worker_and_names_what_was_begun_twice_or_lost() -> None:
    made = with_clusters()
    said = "\n".join(lines(made))
    assert "worker of hub" in said
    assert "  east                      2       2      2" in said
    assert "w-1 has begun 2 times: on east, west" in said
    assert "is lost" not in said
    details = made.results.tests[0].details
    assert details.clusters is not None
    details.clusters.lost = ["w-2"]
    assert "w-2 is lost" in "\n".join(lines(made))


def test_runs_are_compared_by_worker() -> None:
    rows = {row[0]: row[1:] for row in compare.table([with_clusters(), report()])}
    assert rows["east: jobs"] == ["2", "-"]
    assert rows["west: CPU peak"] == ["50.0 %", "-"]
    assert rows["jobs.runTwice"] == ["1", "-"]


def test_the_picture_has_every_worker_and_what_happened(tmp_path: Path) -> None:
    paths = {path.name: path for path in plots.write(with_clusters(), tmp_path)}
    assert {"clusters-1.svg", "clusters-1.png"} <= paths.keys()
    drawn = paths["clusters-1.svg"].read_text()
    for text in ("on east", "on west", "waiting on the hub", "completed", "east is killed: etcd"):
        assert text in drawn
    assert not [path for path in plots.write(report(), tmp_path) if "clusters" in path.name]


@pytest.mark.parametrize(
    ("waits", "quiet", "over"),
    [("", 1.0, "all pods are completed"), ("2 Jobs are not over", 1.0, ""), ("2 Jobs are not over", 40.0, "nothing")],
)
def test_what_is_waited_for_besides_the_pods_keeps_a_repetition_going(waits: str, quiet: float, over: str) -> None:
    records = ExperimentRecords(Allocation(), [("j", "w", 1)])
    records.put(PodView("a", "w", "j", "n", "Succeeded", "", "", CORES), 1.0)
    said = Ending(records, "completed", 5.0, 1, lambda: waits).reason(1.0 + quiet)
    assert said.startswith(over) if over else not said

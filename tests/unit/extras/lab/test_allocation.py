"""What is allocated of the nodes: parts of GPUs, and what comes and goes while a run is measured."""

from pathlib import Path

import pytest

from kumulus.extras.lab.cluster.components import Components
from kumulus.extras.lab.measure import summary
from kumulus.extras.lab.measure.allocation import Allocation
from kumulus.extras.lab.measure.over_time import CostMeter, GpuHours
from kumulus.extras.lab.measure.records import ExperimentRecords
from kumulus.extras.lab.measure.sampler import Sampler
from kumulus.extras.lab.measure.statistics import only_known
from kumulus.extras.lab.measure.views import NodeView, PodView
from kumulus.extras.watch.live.amounts import Amounts


class Run:
    """A run whose clock is set, with what its measures of allocation are made of."""

    def __init__(self, *nodes: NodeView) -> None:
        self.at = 0.0
        self.allocation = Allocation(CostMeter(lambda: self.at), GpuHours(lambda: self.at))
        self.records = ExperimentRecords(self.allocation)
        for each in nodes:
            self.allocation.put_node(each)
        self.allocation.begin()

    def pod(self, uid: str, node: str, gpus: int = 0, share: int = 0, phase: str = "Running") -> None:
        """A pod of a workload as it is now."""
        self.records.put(PodView(uid, "w", f"w-{uid}", node, phase, "", "", Amounts(1000, 1, gpus), share), self.at)

    def measures(self) -> dict[str, float]:
        """The measures of allocation and cost."""
        return only_known(summary._allocation(self.records, self.at))


def node(name: str, gpus: int = 8, cluster: str = "") -> NodeView:
    return NodeView(name, "H100", "z", Amounts(8000, 1 << 30, gpus), 1.0, "", cluster)


def test_parts_of_gpus_are_allocated_and_paid_for_as_gpu_hours_have_them() -> None:
    run = Run(node("n0", 1), node("n1", 1))
    run.pod("a", "n0", share=500)
    run.pod("b", "n0", share=250)
    run.pod("c", "", share=500, phase="Pending")
    run.at = 3600
    run.allocation.end()
    found = run.measures()
    assert found["gpuHours.used"] == 0.75
    assert (found["gpus.allocated"], found["allocation.gpu"], found["allocation.gpuEnd"]) == (0.75, 0.375, 0.375)
    assert (found["gpus.freeWhilePending"], found["fragmentation.end"]) == (1.25, 0.2)
    assert found["cost.wasted"] == 1.25
    assert found["cost.perGpuHour"] == pytest.approx(2 / 0.75)
    assert run.allocation.by_cell()["H100", "z"].allocated == 0.75
    assert run.allocation.gpus_by_product() == {"H100": 1.25}


def test_whole_gpus_and_a_part_of_one_on_a_node_add_up() -> None:
    run = Run(node("w/n0", 4, "w"))
    run.pod("a", "w/n0", gpus=2)
    run.pod("b", "w/n0", gpus=1, share=500)
    assert (run.allocation.share(), run.allocation.parts["w"].share("gpus")) == (0.875, 0.875)
    run.pod("b", "w/n0", gpus=1, share=500, phase="Succeeded")
    assert (run.allocation.share(), run.allocation.parts["w"].share("gpus")) == (0.5, 0.5)


def test_fragmentation_is_not_measured_where_no_pod_got_a_node() -> None:
    run = Run(node("n0"))
    assert run.measures()["fragmentation.end"] == 0, "of a run without pods"
    run.pod("a", "", gpus=16, phase="Pending")
    assert not {"fragmentation.end", "fragmentation.peak"} & run.measures().keys()
    run.pod("b", "n0", gpus=1)
    assert run.measures()["fragmentation.end"] == 1


def test_gpus_that_a_fault_took_from_pods_are_not_taken_from_the_free_ones_of_other_nodes() -> None:
    run = Run(node("n0"), node("n1"), node("n2"))
    run.pod("a", "n0", gpus=8)
    run.pod("b", "n1", gpus=4)
    run.pod("c", "", gpus=8, phase="Pending")
    run.allocation.put_node(node("n0", 4))
    found = run.measures()
    assert (found["gpus.freeWhilePending"], found["fragmentation.end"]) == (12, 4 / 12)
    assert run.allocation.gpus_by_product() == {"H100": 12}
    run.allocation.put_node(node("n0", 8))
    assert run.allocation.free_gpus == 12


def test_peaks_are_exact_when_nodes_go_and_when_pods_end() -> None:
    run = Run(*(node(f"n{number}") for number in range(4)))
    run.pod("a", "n0", gpus=8)
    for number in (1, 2, 3):
        run.allocation.remove_node(f"n{number}")
    found = run.measures()
    assert (found["allocation.gpu"], found["allocation.gpuEnd"]) == (1, 1)
    run = Run(node("n0"))
    for number in range(8):
        run.pod(f"{number}", "n0", gpus=1)
    assert run.measures()["fragmentation.peak"] == 1, "seven of the eight GPUs were free on a node in use"
    run = Run(node("n0"))
    run.pod("a", "n0", gpus=8)
    assert run.measures()["fragmentation.peak"] == 0
    run.allocation.put_node(node("n0", 10))
    assert run.measures()["fragmentation.peak"] == 1


def test_peaks_are_of_the_time_that_is_measured() -> None:
    run = Run()
    run.allocation.bind("w/n0", Amounts(8000, 1, 8))
    for number in range(10):
        run.allocation.put_node(node(f"w/n{number}", cluster="w"))
    run.allocation.begin()
    part = run.allocation.parts["w"]
    assert (part.share("gpus"), part.peak["gpus"], run.measures()["allocation.gpu"]) == (0.1, 0.1, 0.1)
    for number in range(1, 9):
        run.allocation.remove_node(f"w/n{number}")
    assert (part.share("gpus"), part.peak["gpus"], run.measures()["allocation.gpu"]) == (0.5, 0.5, 0.5)
    run.allocation.end()
    # As a fault's end or the clean-up does: the share at the end was once above the most.
    run.allocation.remove_node("w/n9")
    run.allocation.release("w/n0", Amounts(8000, 1, 8))
    measures = run.measures()
    assert (part.share("gpus"), measures["allocation.gpu"], measures["allocation.gpuEnd"]) == (0.5, 0.5, 0.5)


def test_gpus_are_measured_although_the_last_node_with_some_is_gone() -> None:
    run = Run(node("w/n0", cluster="w"))
    run.pod("a", "w/n0", gpus=4)
    run.at = 3600
    run.pod("a", "w/n0", gpus=4, phase="Succeeded")
    run.allocation.remove_node("w/n0")
    found = run.measures()
    assert (found["gpus.capacity"], found["allocation.gpu"], found["fragmentation.peak"]) == (8, 0.5, 1)
    assert (found["gpus.allocated"], found["allocation.gpuEnd"], found["gpuHours.used"]) == (0, 0, 4)


def test_the_mean_is_exact_to_the_moment_at_which_pods_come_and_go() -> None:
    run = Run(node("n0"))
    run.at = 0.2
    run.pod("a", "n0", gpus=8)
    run.at = 0.7
    run.pod("a", "n0", gpus=8, phase="Succeeded")
    run.at = 1.0
    assert run.measures()["allocation.gpuMean"] == pytest.approx(0.5)
    assert Run(node("n0")).measures()["allocation.gpuMean"] == 0


def test_the_capacity_is_that_of_the_start() -> None:
    run = Run(node("n0"))
    run.allocation.put_node(node("n1"))
    assert run.measures()["gpus.capacity"] == 8
    # An autoscaler may add the first node.
    run = Run()
    assert "gpus.capacity" not in run.measures()
    run.allocation.put_node(node("n0"))
    assert (run.measures()["gpus.capacity"], run.measures()["allocation.gpu"]) == (0, 0)


def test_a_column_of_a_series_goes_to_zero_with_what_it_is_of() -> None:
    run = Run(node("n0"))
    sampler = Sampler(run.records, Components(Path("/nowhere")), None, lambda: run.at)
    run.pod("a", "n0", gpus=8)
    sampler.sample()
    run.at = 10
    run.allocation.remove_node("n0")
    sampler.sample()
    columns = sampler.series.columns
    assert (columns["cost per hour"], columns["gpus H100 z"], columns["gpus"]) == ([1, 0], [8, 0], [8, 0])

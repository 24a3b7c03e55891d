"""Policies: the six of the paper on nodes small enough to reckon by hand, and what is told of one that fails."""

import random
from pathlib import Path

import numpy as np
import pytest

from kumulus.extras.lab.errors import LabError
from kumulus.extras.lab.offline.placing import EmptyNode, Placer, PodPlacement, empty, place
from kumulus.extras.lab.policies import Nodes, Pod, Study
from kumulus.extras.lab.policies.fragmentation import Fragmentation, typical_kinds
from kumulus.extras.lab.policies.load import PAPER, Policy, PolicyFailed, policy

TWO = [EmptyNode("a", 64_000, 1024, 2, "T4"), EmptyNode("b", 64_000, 1024, 2, "G2")]
HALF = Pod("half", 1000, 1, 1, 500)
WHOLE = Pod("whole", 1000, 1, 1, 1000)


def study_of(nodes: Nodes, *pods: Pod) -> Study:
    return Study(Fragmentation.of(typical_kinds(pods or (HALF, WHOLE)), nodes.models), random.Random(1))


def placed(name: str, nodes: Nodes, pod: Pod, *typical: Pod) -> PodPlacement | None:
    return Placer(policy(name, Path(), 60), nodes, study_of(nodes, *typical), "name").place(pod)


def with_half_used() -> Nodes:
    nodes = empty(TWO)
    place(nodes, HALF, PodPlacement(1, (0,)))
    return nodes


def test_what_fits_is_decided_by_cpu_memory_gpus_and_model() -> None:
    nodes = with_half_used()
    assert nodes.fit(HALF).tolist() == [True, True]
    assert nodes.fit(Pod("two", 0, 0, 2, 1000)).tolist() == [True, False]
    assert nodes.fit(Pod("g2", 0, 0, 1, 1000, frozenset({"G2"}))).tolist() == [False, True]
    assert nodes.fit(Pod("cpu", 63_500, 0)).tolist() == [True, False]
    assert nodes.fit(Pod("memory", 0, 1025)).tolist() == [False, False]


def test_typical_are_the_most_frequent_kinds_that_make_95_per_cent() -> None:
    pods = [HALF] * 60 + [WHOLE] * 35 + [Pod(f"rare-{n}", n, 1) for n in range(5)]
    assert [count for _, count in typical_kinds(pods)] == [60, 35]
    assert [count for _, count in typical_kinds([*pods, Pod("rare", 99, 1)])] == [60, 35, 1]


def test_fragmentation_is_what_typical_pods_cannot_use() -> None:
    nodes = with_half_used()
    found = study_of(nodes, HALF, WHOLE)
    # On b 500 + 1000 are free; half of the pods want a whole GPU and cannot use the 500.
    assert found.fragmentation(nodes).tolist() == [0.0, 250.0]
    # A pod without GPUs cannot use any, nor one whose model is another, nor one for which the CPU is not enough.
    for other in (Pod("cpu", 1, 1), Pod("t4", 1, 1, 1, 500, frozenset({"V100"})), Pod("big", 65_000, 1, 1, 500)):
        assert study_of(nodes, other).fragmentation(nodes).tolist() == [2000.0, 1500.0]


def test_a_change_of_one_node_is_the_same_as_measuring_all() -> None:
    nodes, found = with_half_used(), study_of(with_half_used())
    assert found.fragmentation(nodes.some(np.array([1])))[0] == found.fragmentation(nodes)[1]


def test_best_fit_takes_the_fullest_node() -> None:
    assert placed("BestFit", with_half_used(), HALF) == PodPlacement(1, (0,))


def test_gpu_packing_prefers_gpus_in_use_to_free_ones_to_empty_nodes() -> None:
    assert placed("GpuPacking", with_half_used(), HALF) == PodPlacement(1, (0,))
    assert placed("GpuPacking", with_half_used(), WHOLE) == PodPlacement(1, (1,))


def test_gpu_clustering_keeps_pods_of_a_size_together() -> None:
    assert placed("GpuClustering", with_half_used(), HALF) == PodPlacement(1, (0,))
    assert placed("GpuClustering", with_half_used(), WHOLE) == PodPlacement(0, (0,))


def test_dot_product_takes_the_node_that_has_least_of_what_is_asked() -> None:
    nodes, four = empty([EmptyNode(name, 128_000, 1024, 8, "G3") for name in "ab"]), Pod("four", 8000, 1, 4, 1000)
    place(nodes, four, PodPlacement(1, (0, 1, 2, 3)))
    assert placed("DotProd", nodes, four) == PodPlacement(1, (4, 5, 6, 7))


def test_fgd_takes_the_gpu_that_no_whole_pod_could_use() -> None:
    nodes = with_half_used()
    assert placed("FGD", nodes, HALF, HALF, WHOLE) == PodPlacement(1, (0,))
    # A whole GPU is taken where that leaves most of use, and never the one in use.
    found = placed("FGD", nodes, WHOLE, HALF, WHOLE)
    assert found is not None
    assert nodes.gpu_free[found.node, found.gpus[0]] == 1000


def test_random_goes_everywhere() -> None:
    nodes = empty(TWO)
    placer = Placer(policy("Random", Path(), 60), nodes, study_of(nodes), "name")
    assert {(where.node, where.gpus) for _ in range(100) if (where := placer.place(HALF))} == {
        (node, (gpu,)) for node in (0, 1) for gpu in (0, 1)
    }


def test_ties_go_to_the_first_name_or_to_any() -> None:
    nodes = empty(TWO)
    for ties, expected in (("name", {0}), ("random", {0, 1})):
        placer = Placer(policy("BestFit", Path(), 60), nodes, study_of(nodes), ties)  # type: ignore[arg-type]
        assert {where.node for _ in range(50) if (where := placer.place(HALF))} == expected


def test_a_remembered_score_is_asked_for_again_after_a_change() -> None:
    nodes = empty(TWO)
    placer = Placer(policy("BestFit", Path(), 60), nodes, study_of(nodes), "name")
    assert placer.place(HALF) == PodPlacement(0, (0,))
    place(nodes, HALF, PodPlacement(1, (0,)))
    placer.changed(1)
    assert placer.place(HALF) == PodPlacement(1, (0,))


def test_the_papers_policies_are_short() -> None:
    folder = Path(__file__).resolve().parents[4] / "src" / "kumulus" / "extras" / "lab" / "policies" / "paper"
    for module in PAPER.values():
        assert len((folder / f"{module}.py").read_text().splitlines()) <= 60


def own(folder: Path, text: str, limit: float = 5.0) -> Policy:
    (folder / "mine.py").write_text(text)
    return policy("mine.py", folder, limit)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("def score(pod, nodes, study):\n    return 1 / 0\n", "ZeroDivisionError"),
        ("def score(pod, nodes, study):\n    return [1]\n", "score answered no number for each of 2 nodes"),
        ("def score(pod, nodes, study):\n    return [float('nan')] * 2\n", "score answered no number"),
        ("def choose(pod, nodes, study):\n    return 2\n", "choose answered 2, not a number from 0 to 1"),
        ("def choose(pod, nodes, study):\n    while True: pass\n", "choose took longer than 0.2 s for pod half"),
        ("def choose(pod, nodes, study): return 0\ndef gpu(pod, node, study): return 5\n", "gpu answered 5"),
        (
            "def choose(pod, nodes, study): return 0\ndef allowed(pod, nodes, study): return 1\n",
            "allowed answered no flag",
        ),
        ("def score(pod, nodes, study): return [[1], [1, 2]]\n", "score answered no array"),
    ],
)
def test_a_policy_that_fails_is_told_of_as_such(text: str, words: str, tmp_path: Path) -> None:
    nodes = empty(TWO)
    placer = Placer(own(tmp_path, text, 0.2), nodes, study_of(nodes), "name")
    with pytest.raises(PolicyFailed) as failed:
        placer.place(HALF)
    assert words in str(failed.value)
    assert "load.py" not in str(failed.value), "the traceback is of the policy's own file alone"


def test_a_policy_may_keep_pods_off_nodes(tmp_path: Path) -> None:
    text = (
        "def allowed(pod, nodes, study): return nodes.model == 0\ndef score(pod, nodes, study): return nodes.position\n"
    )
    nodes = empty(TWO)
    assert Placer(own(tmp_path, text), nodes, study_of(nodes), "name").place(HALF) == PodPlacement(1, (0,))


def test_one_that_leaves_the_choice_offers_every_node_with_room(tmp_path: Path) -> None:
    nodes = empty(TWO)
    found = policy("KubeScheduler", Path(), 60)
    placer = Placer(found, nodes, study_of(nodes), "name")
    assert found.leaves
    assert list(placer.scored(HALF).best()) == [0, 1]
    place(nodes, Pod("both", 0, 0, 2, 1000), PodPlacement(0, (0, 1)))
    placer.changed(0)
    assert list(placer.scored(HALF).best()) == [1], "kube-scheduler does not see what is left of a GPU"
    (tmp_path / "both.py").write_text("SCHEDULER_CHOOSES = True\ndef score(pod, nodes, study): return nodes.position\n")
    with pytest.raises(LabError, match="SCHEDULER_CHOOSES and a choice of its own"):
        policy("both.py", tmp_path, 1)


@pytest.mark.parametrize(
    ("name", "words"),
    [("FDG", "write FGD"), ("nowhere.py", "is not there"), ("empty.py", "neither a function score nor choose"),
     ("broken.py", "SyntaxError: invalid syntax")],
)  # fmt: skip
def test_a_policy_that_is_none_is_told(name: str, words: str, tmp_path: Path) -> None:
    (tmp_path / "empty.py").write_text("")
    (tmp_path / "broken.py").write_text("def")
    with pytest.raises(LabError) as error:
        policy(name, tmp_path, 1)
    assert words in str(error.value)

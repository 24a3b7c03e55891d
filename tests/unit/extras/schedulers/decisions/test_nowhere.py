"""How often filters were run in attempts in which a pod fitted nowhere, by what kube-scheduler says of them."""

import pytest

from kumulus.extras.schedulers.decisions.attempts import runs, tried_nothing

FILTERS = ("NodeUnschedulable", "NodeName", "TaintToleration", "NodeAffinity", "NodePorts", "NodeResourcesFit")
ACTIVE = dict.fromkeys(FILTERS, True) | {"NodePorts": False}
PREEMPTION = (
    "0/9 nodes are available: 4 No preemption victims found for incoming pod, "
    "5 Preemption is not helpful for scheduling."
)


def message(reasons: str, preemption: str = PREEMPTION) -> str:
    return f"0/9 nodes are available: {reasons}. no new claims to deallocate, preemption: {preemption}"


def test_each_filter_was_run_on_what_those_before_it_left() -> None:
    found = runs(
        message("2 node(s) were unschedulable, 3 node(s) had untolerated taint(s), 4 Insufficient cpu"), FILTERS, ACTIVE
    )
    assert found == {
        "NodeUnschedulable": 9,
        "NodeName": 7,
        "TaintToleration": 7,
        "NodeAffinity": 4,
        "NodeResourcesFit": 4,
    }


def test_a_node_that_lacks_several_things_is_one_node() -> None:
    said = "4 Insufficient cpu, 3 Insufficient nvidia.com/gpu, 1 Too many pods, 5 node(s) had untolerated taint(s)"
    found = runs(message(said), FILTERS, ACTIVE)
    assert found is not None
    assert (found["TaintToleration"], found["NodeResourcesFit"]) == (9, 4)


def test_filters_behind_the_last_that_refused_were_not_run() -> None:
    found = runs(message("9 node(s) had untolerated taint(s)"), FILTERS, ACTIVE)
    assert found is not None
    assert [found[name] for name in ("TaintToleration", "NodeAffinity", "NodeResourcesFit")] == [9, 0, 0]


@pytest.mark.parametrize(
    "said",
    [
        message("9 of another kind"),
        message("something that was found before any filter was run"),
        message("8 node(s) had untolerated taint(s)"),
        message("9 node(s) had untolerated taint(s), 9 Insufficient cpu"),
        message("9 node(s) didn't have free ports for the requested pod ports"),
        message("9 Insufficient cpu", "0/9 nodes are available: 9 Insufficient cpu."),
        "0/9 nodes are available: 9 Insufficient cpu.",
        "no nodes are registered",
    ],
)
def test_what_does_not_say_of_every_node_which_filter_refused_it_is_not_reckoned(said: str) -> None:
    assert runs(said, FILTERS, ACTIVE) is None


@pytest.mark.parametrize(
    ("said", "nothing"),
    [
        (PREEMPTION, True),
        ("0/9 nodes are available: 4 No preemption victims found for incoming pod, "
         "5 Preemption is not helpful for scheduling.", True),
        ("0/9 nodes are available: 4 Insufficient cpu, 5 Preemption is not helpful for scheduling.", False),
        ("not eligible due to preemptionPolicy=Never.", True),
    ],
)  # fmt: skip
def test_preemption_says_whether_it_ran_filters(said: str, nothing: bool) -> None:
    assert tried_nothing(f"0/9 nodes are available: 9 Insufficient cpu. preemption: {said}") == nothing


def test_what_preemption_did_is_not_known_where_nothing_is_said_of_it() -> None:
    assert not tried_nothing("0/9 nodes are available: 9 Insufficient cpu.")

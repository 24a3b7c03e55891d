"""What becomes of faulted nodes and of the pods there: when nodes are cordoned, evacuated, and all runs again."""

import pytest

from kumulus.extras.lab.file.expect import Expectation
from kumulus.extras.lab.measure.faulted import EVACUATE, RECOVER
from kumulus.extras.lab.measure.records import ExperimentRecords
from kumulus.extras.lab.measure.statistics import Between
from kumulus.extras.lab.measure.verdicts import ExpectationVerdict, verdicts
from tests.unit.extras.lab.test_measure import pod, records

CORDONED = {"nodes": {"fault": "rack"}, "cordoned": True, "within": "10s"}
OFF = {"workload": "w", "onFaultedNodes": 0, "within": "30s"}


def ran(
    found: ExperimentRecords, uid: str, node: str, start: float, end: float | None = None, phase: str = "Deleted"
) -> None:
    """A pod that has a node and runs from one time to another."""
    found.put(pod(uid, node=node, phase="Running"), start)
    if end is not None and phase == "Deleted":
        found.gone(uid, end)
    elif end is not None:
        found.put(pod(uid, node=node, phase=phase), end)


def struck(nodes: tuple[str, ...] = ("n0", "n1"), began: float = 10.0) -> ExperimentRecords:
    found = records()
    found.faulted.struck("rack", nodes, began)
    return found


def judged(found: ExperimentRecords, raw: dict[str, object], lasted: float = 100.0) -> ExpectationVerdict:
    found.faulted.lasted = lasted
    (verdict,) = verdicts([Expectation.model_validate(raw)], {}, found)
    return verdict


@pytest.mark.parametrize(
    ("nodes", "last", "holds", "said"),
    [
        (("n0", "n1"), 19.5, True, "2 nodes, the last after 9.5 s"),
        (("n0", "n1", "n2"), 20.5, False, "1 of 3 nodes; not n1, n2"),
    ],
)
def test_nodes_are_cordoned_within_a_time_if_the_last_one_is(
    nodes: tuple[str, ...], last: float, holds: bool, said: str
) -> None:
    found = struck(nodes)
    found.faulted.node("n0", True, 12.0)
    found.faulted.node("n1", True, last)
    assert judged(found, CORDONED) == ExpectationVerdict("nodes of rack cordoned within 10s", holds, said)


def test_a_node_that_was_cordoned_before_the_fault_proves_nothing_unless_it_was_uncordoned() -> None:
    found = records()
    for node in ("n0", "n1", "n2"):
        found.faulted.node(node, True, 5.0)
    found.faulted.node("n2", False, 6.0)
    found.faulted.struck("rack", ("n0", "n1", "n2"), 10.0)
    before = "2 of 3 nodes were cordoned before the fault began; to undo: kubectl uncordon n0 n1"
    verdict = judged(found, CORDONED)
    assert (verdict.holds, verdict.found) == (False, f"2 of 3 nodes; not n2; {before}")
    found.faulted.node("n2", True, 12.0)
    verdict = judged(found, CORDONED)
    assert (verdict.holds, verdict.found) == (False, before)


def test_a_node_that_was_cordoned_before_the_fault_and_again_after_the_clock_starts_counts() -> None:
    found = records()
    found.faulted.node("n0", True, 5.0)
    found.faulted.struck("rack", ("n0",), 10.0)
    found.faulted.node("n0", False, 11.0)
    found.begin()
    found.faulted.node("n0", True, 3.0)
    assert judged(found, CORDONED).found == "1 node, the last after 3.0 s"


def test_nodes_that_were_never_cordoned_are_not_schedulable_again() -> None:
    found = struck()
    found.faulted.node("n0", True, 12.0)
    found.faulted.over("rack", 40.0)
    found.faulted.node("n0", False, 43.0)
    # Too late to be a reaction to the fault.
    found.faulted.node("n1", True, 41.0)
    found.faulted.node("n1", False, 42.0)
    verdict = judged(found, {**CORDONED, "cordoned": False})
    assert (verdict.holds, verdict.found) == (False, "1 of 2 nodes was not cordoned while the fault lasted: n1")


def test_that_nodes_are_schedulable_again_counts_from_the_end_of_the_fault() -> None:
    found = struck()
    for node in ("n0", "n1"):
        found.faulted.node(node, True, 12.0)
    again = {**CORDONED, "cordoned": False}
    assert not judged(found, again).holds
    found.faulted.over("rack", 40.0)
    found.faulted.node("n0", False, 43.0)
    assert judged(found, again).found == "1 of 2 nodes; not n1"
    found.faulted.node("n1", False, 45.0)
    assert judged(found, again).holds


def test_what_is_expected_after_a_fault_that_did_not_begin_does_not_hold() -> None:
    found = records()
    assert judged(found, CORDONED) == ExpectationVerdict(
        "nodes of rack cordoned within 10s", False, "the fault did not begin"
    )
    assert judged(found, OFF).found == "no fault began on nodes"


@pytest.mark.parametrize(("ended", "holds"), [(39.0, True), (41.0, False), (None, False)])
def test_no_pod_is_on_faulted_nodes_once_the_time_is_over(ended: float | None, holds: bool) -> None:
    found = struck()
    ran(found, "a", "n0", 1.0, ended)
    ran(found, "b", "n3", 1.0)
    verdict = judged(found, OFF)
    assert (verdict.holds, verdict.found) == (holds, f"{int(not holds)}; 1 pod had been on those of rack")


def test_a_pod_that_comes_to_a_faulted_node_later_counts_until_the_fault_has_ended() -> None:
    found = struck()
    found.faulted.over("rack", 80.0)
    ran(found, "first", "n0", 1.0, 12.0)
    ran(found, "late", "n0", 85.0)
    assert judged(found, OFF).holds
    ran(found, "a", "n0", 60.0, 62.0)
    ran(found, "b", "n1", 61.0, 63.0)
    assert judged(found, OFF).found == "2; 3 pods had been on those of rack"
    assert judged(found, {**OFF, "onFaultedNodes": 2}).holds


def test_that_no_pod_is_on_faulted_nodes_does_not_hold_where_none_was() -> None:
    found = struck()
    ran(found, "elsewhere", "n3", 1.0)
    untried = (False, "no pod of w was on the nodes of rack when the fault began, so nothing was tried")
    verdict = judged(found, OFF)
    assert (verdict.holds, verdict.found) == untried
    ran(found, "later", "n0", 15.0, 16.0)
    verdict = judged(found, {**OFF, "onFaultedNodes": 1})
    assert (verdict.holds, verdict.found) == untried
    found.faulted.struck("other", ("n3",), 20.0)
    found.gone("elsewhere", 30.0)
    assert judged(found, OFF).holds


def test_a_run_that_ended_before_the_time_was_over_decides_nothing() -> None:
    assert judged(struck(), OFF, lasted=25.0) == ExpectationVerdict(
        "w: no pod on faulted nodes after 30s", False, "the run ended 15.0 s after rack began"
    )


def test_a_run_lasts_until_what_is_expected_after_its_faults_is_decided() -> None:
    found = struck().faulted
    expected = [Expectation.model_validate(each) for each in (CORDONED, OFF)]
    assert found.decided_at(expected) == 40.0
    assert found.decided_at([Expectation.model_validate({"measure": EVACUATE, "atMost": "1m"})]) == 70.0
    again = [Expectation.model_validate({**CORDONED, "cordoned": False})]
    assert found.decided_at(again) == 0.0
    found.over("rack", 50.0)
    assert found.decided_at(again) == 60.0
    assert found.decided_at([Expectation.model_validate({**CORDONED, "nodes": {"fault": "other"}})]) == 0.0


def test_evacuation_lasts_until_the_last_pod_has_gone_and_recovery_until_as_many_run_elsewhere() -> None:
    found = struck()
    for number, end in enumerate((13.0, 17.0)):
        ran(found, f"old{number}", f"n{number}", 1.0, end)
        ran(found, f"new{number}", "n3", end + 4.0)
    ran(found, "elsewhere", "n2", 1.0)
    assert found.faulted.measures(found.pods.values()) == {EVACUATE: 7.0, RECOVER: 11.0}


@pytest.mark.parametrize(("node", "measured"), [("n0", {EVACUATE: 5.0, RECOVER: 5.0}), ("n3", {})])
def test_a_pod_that_completes_has_gone_and_needs_no_other(node: str, measured: dict[str, float]) -> None:
    found = struck()
    ran(found, "a", node, 1.0, 15.0, "Succeeded")
    assert found.faulted.measures(found.pods.values()) == measured


def test_pods_that_stay_are_neither_evacuated_nor_recovered_by_the_end_of_the_fault() -> None:
    found = struck()
    ran(found, "a", "n0", 1.0, 35.0)
    found.faulted.over("rack", 30.0)
    assert found.faulted.measures(found.pods.values()) == {}
    # The node is no longer faulted when another comes to it.
    ran(found, "b", "n0", 36.0)
    assert found.faulted.measures(found.pods.values()) == {RECOVER: 26.0}


def test_where_no_pod_ran_yet_there_is_an_evacuation_and_no_recovery() -> None:
    found = struck()
    ran(found, "elsewhere", "n3", 1.0)
    found.put(pod("a", node="n0"), 9.0)
    found.gone("a", 15.0)
    assert found.faulted.measures(found.pods.values()) == {EVACUATE: 5.0}
    found.faulted.struck("later", ("n3",), 20.0)
    found.gone("elsewhere", 23.0)
    ran(found, "new", "n4", 26.0)
    assert found.faulted.measures(found.pods.values()) == {EVACUATE: 5.0, RECOVER: 6.0}


def test_a_time_that_was_not_heard_has_bounds() -> None:
    found = struck()
    ran(found, "a", "n0", 1.0)
    found.gone("a", 40.0, since=20.0)
    ran(found, "b", "n3", 50.0)
    assert found.faulted.measures(found.pods.values()) == {EVACUATE: Between(10.0, 30.0), RECOVER: 40.0}


def test_what_happens_before_the_clock_starts_happened_at_its_start() -> None:
    found = struck(began=77.0)
    found.faulted.node("n0", True, 78.0)
    found.faulted.node("n1", False, 78.0)
    found.begin()
    assert found.faulted.faults[0].began == 0.0
    assert judged(found, CORDONED).found == "1 of 2 nodes; not n1"

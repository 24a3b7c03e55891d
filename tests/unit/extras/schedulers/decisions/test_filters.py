"""Which filters refused how many nodes, from how often each was run."""

import json

import pytest

from kumulus.extras.schedulers.decisions.filters import counts, order, refused

ORDER = ("NodeUnschedulable", "NodeName", "TaintToleration", "NodeAffinity", "NodePorts", "NodeResourcesFit")
METRICS = b"""# HELP scheduler_pending_pods [STABLE] Number of pending pods
# TYPE scheduler_pending_pods gauge
scheduler_pending_pods{queue="active"} 7
# HELP scheduler_plugin_evaluation_total [ALPHA] Number of attempts to schedule pods by each plugin
# TYPE scheduler_plugin_evaluation_total counter
scheduler_plugin_evaluation_total{extension_point="Filter",plugin="NodeName",profile="one"} 500
scheduler_plugin_evaluation_total{extension_point="Filter",plugin="NodeName",profile="two"} 1.25e+06
scheduler_plugin_evaluation_total{extension_point="PreFilter",plugin="NodeName",profile="one"} 9
scheduler_plugin_evaluation_total{extension_point="Score",plugin="NodeResourcesFit",profile="one"} 8
# HELP scheduler_other_total nothing
# TYPE scheduler_other_total counter
scheduler_other_total{extension_point="Filter",plugin="NodeName",profile="one"} 1
"""


def plugins(*filters: str) -> bytes:
    said = {"PreFilter": {"Enabled": None}, "Filter": {"Enabled": [{"Name": name, "Weight": 0} for name in filters]}}
    text = json.dumps(said)
    return f'I1 1 framework.go:449] "the scheduler starts to work with those plugins" Plugins={text}\n'.encode()


def test_only_runs_of_filters_are_read_by_profile() -> None:
    run, prepared = counts(METRICS)
    assert run == {"one": {"NodeName": 500}, "two": {"NodeName": 1_250_000}}
    assert prepared == {"one": {"NodeName": 9}}
    assert counts(b"# nothing of it\n") == ({}, {})
    assert counts(METRICS[: METRICS.index(b"# HELP scheduler_other")].rstrip()) == counts(METRICS)


def test_the_order_is_what_kube_scheduler_logs_at_its_start() -> None:
    assert order(plugins(*ORDER)) == ORDER
    assert order(b'I1 1 server.go:1] "Serving"\n') is None
    assert order(b'"the scheduler starts to work with those plugins" Plugins={Filter:[a b]}\n') == ()
    assert order(b'"the scheduler starts to work with those plugins" Plugins={"Filter":{"Enabled":null}}\n') == ()


def run(*each: int) -> dict[str, int]:
    return dict(zip(ORDER, each, strict=True))


def test_a_filter_refused_what_the_next_one_was_not_run_on() -> None:
    found = refused(ORDER, run(500, 490, 490, 300, 0, 250), passed=230, evaluated=500, feasible=230)
    assert found == {"NodeUnschedulable": 10, "TaintToleration": 190, "NodeAffinity": 50, "NodeResourcesFit": 20}


def test_where_nothing_was_refused_no_filter_is_named() -> None:
    assert refused(ORDER, run(6, 6, 6, 0, 0, 6), passed=6, evaluated=6, feasible=6) == {}
    assert refused(ORDER, run(0, 0, 0, 0, 0, 0), passed=6, evaluated=6, feasible=6) == {}


def test_nodes_that_were_looked_at_when_enough_had_been_found_count_as_neither() -> None:
    counted = run(350, 350, 350, 250, 0, 240)
    found = refused(ORDER, counted, passed=230, evaluated=340, feasible=230)
    assert found == {"TaintToleration": 100, "NodeAffinity": 10}
    last = refused(ORDER, run(350, 350, 350, 250, 0, 250), passed=230, evaluated=340, feasible=230)
    assert last == {"TaintToleration": 100, "NodeResourcesFit": 10}


@pytest.mark.parametrize(
    ("counted", "passed", "evaluated"),
    [
        # More than are looked at at once, or any where all nodes are sought.
        (run(400, 400, 400, 300, 0, 290), 230, 340),
        (run(12, 12, 12, 9, 0, 9), 8, 11),
        # Fewer than passed.
        (run(9, 9, 9, 7, 0, 7), 8, 9),
        # A filter that was run on more nodes than the one before it.
        (run(10, 10, 8, 9, 0, 9), 7, 10),
        (run(10, 9, 10, 9, 0, 9), 7, 10),
    ],
)
def test_counts_that_do_not_add_up_name_nothing(counted: dict[str, int], passed: int, evaluated: int) -> None:
    assert refused(ORDER, counted, passed=passed, evaluated=evaluated, feasible=passed) is None


def test_a_filter_whose_place_is_not_known_names_nothing() -> None:
    assert refused((), run(9, 9, 9, 7, 0, 7), passed=7, evaluated=9, feasible=7) is None
    assert refused(ORDER, run(9, 9, 9, 7, 0, 7) | {"Mine": 7}, passed=7, evaluated=9, feasible=7) is None


def test_what_an_extender_refused_is_not_a_filters() -> None:
    counted = run(9, 9, 9, 7, 0, 7)
    unnamed = refused(ORDER, counted, passed=7, evaluated=3, feasible=1)
    assert unnamed == {"TaintToleration": 2}, "it left one of seven and did not name the others"
    named = refused(ORDER, counted, passed=7, evaluated=9, feasible=1)
    assert named == {"TaintToleration": 2}, "it named the six others, which count as looked at"

"""The notes of what filters did, laid beside the log's lines: of which attempt each is, and of which none."""

import json

from kumulus.extras.schedulers.decisions.asked import FilterCounts
from kumulus.extras.schedulers.decisions.attempts import BETWEEN, UNEVEN, UNREAD, Filtered, SchedulingAttempts
from kumulus.extras.schedulers.decisions.document import Decision
from kumulus.extras.schedulers.decisions.log import Decisions

FILTERS = ("NodeName", "TaintToleration", "NodeResourcesFit")
PREEMPTION = "0/10 nodes are available: 10 No preemption victims found for incoming pod."
NOWHERE = f"0/10 nodes are available: 10 Insufficient cpu. no new claims to deallocate, preemption: {PREEMPTION}"
ODD = "0/10 nodes are available: 10 of another kind."


class Scheduler:
    """A kube-scheduler of ten nodes as its log and the notes show it; its clock ticks with each thing it does."""

    def __init__(self, *profiles: str) -> None:
        self.notes: list[FilterCounts] = []
        self.totals = dict.fromkeys(FILTERS, 0)
        self.prepared: dict[str, int] = {}
        self.clock = 0
        self.found: list[Decision] = []
        self.log = Decisions(self.found.append, SchedulingAttempts(profiles or ("one",), self._noted))
        for _ in profiles or ("one",):
            plugins = {"Filter": {"Enabled": [{"Name": name} for name in FILTERS]}}
            self.say(f'"the scheduler starts to work with those plugins" Plugins={json.dumps(plugins)}')

    def _noted(self) -> list[FilterCounts]:
        noted, self.notes = self.notes, []
        return noted

    def now(self) -> str:
        self.clock += 1
        return f"1125 02:28:11.{self.clock:06d}"

    def say(self, line: str) -> None:
        assert self.log.line(f"I{self.now()}   1 x.go:1] {line}\n".encode()), line

    def run(self, *each: int) -> None:
        for name, count in zip(FILTERS, each, strict=True):
            self.totals[name] += count

    def note(self, pod: str, passed: int, profile: str = "one") -> None:
        begin = self.now()
        self.notes.append(
            FilterCounts(pod, profile, passed, begin, self.now(), {"one": dict(self.totals)}, {"one": self.prepared})
        )

    def attempt(self, pod: str) -> None:
        self.say(f'"Attempting to schedule pod" pod="{pod}"')

    def fits(self, pod: str, tainted: int, full: int) -> None:
        """An attempt that succeeds."""
        self.attempt(pod)
        self.run(10, 10, 10 - tainted)
        self.note(pod, 10 - tainted - full)

    def fails(self, pod: str, message: str = ODD, tainted: int = 0) -> None:
        """An attempt in which no extender is asked; what an odd message says cannot be reckoned with."""
        self.attempt(pod)
        self.run(10, 10, 10 - tainted)
        self.say(f'"Unable to schedule pod; no fit; waiting" pod="{pod}" err="{message}"')

    def binds(self, pod: str, left: int, evaluated: int = 10) -> Decision:
        self.say(
            f'"Successfully bound pod to node" pod="{pod}" node="x" evaluatedNodes={evaluated} feasibleNodes={left}'
        )
        return self.found[-1]


def test_each_pod_has_what_was_counted_since_the_one_before() -> None:
    made = Scheduler()
    made.fits("n/a", 2, 1)
    made.fits("n/b", 0, 4)
    made.fits("n/c", 0, 0)
    late = [made.binds(pod, left) for pod, left in (("n/c", 10), ("n/a", 7), ("n/b", 6))]
    assert [each.filters for each in late] == [
        {},
        {"TaintToleration": 2, "NodeResourcesFit": 1},
        {"NodeResourcesFit": 4},
    ]
    assert [each.passed for each in late] == [10, 7, 6]
    assert all(each.unknown == "" for each in late)


def test_what_the_log_says_late_is_of_the_attempt_it_was_noted_in() -> None:
    """The reader of the log is behind: notes of later attempts are there before it reads of them."""
    made = Scheduler()
    stamps: list[str] = []
    for pod, full in (("n/a", 1), ("n/b", 2)):
        stamps.append(made.now())
        made.run(10, 10, 10)
        made.note(pod, 10 - full)
    for pod, stamp, full in (("n/a", stamps[0], 1), ("n/b", stamps[1], 2)):
        made.log.line(f'I{stamp} 1 x.go:1] "Attempting to schedule pod" pod="{pod}"\n'.encode())
        assert made.binds(pod, 10 - full).filters == {"NodeResourcesFit": full}


def test_an_attempt_that_failed_between_is_no_reason_of_the_next_pods() -> None:
    made = Scheduler()
    made.fails("n/never")
    made.fits("n/a", 2, 0)
    first = made.binds("n/a", 8)
    assert (first.filters, first.unknown, first.missing) == ({}, BETWEEN, 2)
    made.fits("n/b", 3, 0)
    assert made.binds("n/b", 7).filters == {"TaintToleration": 3}, "it is over with that"


def test_attempts_in_which_a_pod_fitted_nowhere_are_taken_off_by_what_is_said_of_them() -> None:
    tainted = NOWHERE.replace("10 Insufficient cpu", "4 node(s) had untolerated taint(s), 6 Insufficient cpu")
    made = Scheduler()
    made.fits("n/a", 1, 0)
    made.fails("n/never", NOWHERE)
    made.fails("n/large", tainted, tainted=4)
    made.fails("n/never", NOWHERE)
    made.fits("n/b", 3, 2)
    assert made.binds("n/b", 5).filters == {"TaintToleration": 3, "NodeResourcesFit": 2}
    made.fits("n/c", 1, 0)
    assert made.binds("n/c", 9).filters == {"TaintToleration": 1}, "they are taken off once"


def test_an_attempt_of_which_nothing_is_said_is_not_taken_off() -> None:
    made = Scheduler()
    made.fails("n/never", NOWHERE)
    made.attempt("n/error")
    made.run(7, 7, 7)
    made.fits("n/a", 2, 0)
    assert made.binds("n/a", 8).unknown == BETWEEN


def test_a_filter_that_was_run_for_some_of_the_attempts_only_leaves_it_open_for_which() -> None:
    for prepared, unknown in ((1, BETWEEN), (2, ""), (0, BETWEEN)):
        made = Scheduler()
        made.fails("n/never", NOWHERE)
        made.prepared = {"NodeResourcesFit": prepared}
        made.fits("n/a", 2, 0)
        assert made.binds("n/a", 8).unknown == unknown, prepared


def test_with_several_profiles_it_is_not_known_whose_attempt_failed() -> None:
    made = Scheduler("one", "two")
    made.fails("n/never", NOWHERE)
    made.fits("n/a", 2, 0)
    assert made.binds("n/a", 8).unknown == BETWEEN


def test_of_very_many_different_messages_none_is_kept() -> None:
    made = Scheduler()
    for number in range(1001):
        made.fails("n/never", f"{NOWHERE} {number}")
    made.fits("n/a", 2, 0)
    assert made.binds("n/a", 8).unknown == BETWEEN
    made.fits("n/b", 2, 0)
    assert made.binds("n/b", 8).filters == {"TaintToleration": 2}


def test_counts_that_were_read_while_nothing_happened_are_where_the_next_attempt_begins() -> None:
    made = Scheduler()
    made.fits("n/a", 1, 0)
    made.fails("n/never")
    made.fails("n/never")
    made.note("", 0)
    made.fits("n/b", 3, 1)
    assert made.binds("n/b", 6).filters == {"TaintToleration": 3, "NodeResourcesFit": 1}


def test_counts_that_were_read_while_the_next_attempt_had_begun_are_not() -> None:
    made = Scheduler()
    made.fails("n/never")
    begin = made.now()
    made.attempt("n/a")
    made.run(4, 4, 4)
    made.notes.append(FilterCounts("", "", 0, begin, made.now(), {"one": dict(made.totals)}))
    made.run(6, 6, 4)
    made.note("n/a", 8)
    assert made.binds("n/a", 8).unknown == BETWEEN


def test_counts_that_were_read_in_an_attempt_that_was_not_over_are_not() -> None:
    made = Scheduler()
    made.fails("n/never")
    made.attempt("n/other")
    made.run(5, 5, 5)
    made.note("", 0)
    made.run(5, 5, 5)
    made.say(f'"Unable to schedule pod; no fit; waiting" pod="n/other" err="{ODD}"')
    made.fits("n/a", 2, 0)
    assert made.binds("n/a", 8).unknown == BETWEEN


def test_counts_that_were_read_before_the_attempt_had_failed_are_not_where_the_next_begins() -> None:
    made = Scheduler()
    made.attempt("n/other")
    made.run(5, 5, 5)
    begin, early = made.now(), dict(made.totals)
    made.run(5, 5, 5)
    made.say(f'"Unable to schedule pod; no fit; waiting" pod="n/other" err="{ODD}"')
    made.notes.append(FilterCounts("", "", 0, begin, made.now(), {"one": early}))
    made.fits("n/a", 2, 0)
    assert made.binds("n/a", 8).unknown == BETWEEN


def test_an_attempt_that_failed_after_the_extender_was_asked_counts_where_preemption_ran_filters() -> None:
    for message, unknown in (
        (NOWHERE, ""),
        (NOWHERE.replace("10 No preemption victims", "10 Something else"), BETWEEN),
    ):
        made = Scheduler()
        made.fits("n/a", 2, 0)
        made.say(f'"Unable to schedule pod; no fit; waiting" pod="n/a" err="{message}"')
        made.fits("n/b", 3, 0)
        decision = made.binds("n/b", 7)
        assert (decision.unknown, decision.filters) == (unknown, {} if unknown else {"TaintToleration": 3})


def test_a_second_attempt_of_a_pod_has_its_own() -> None:
    made = Scheduler()
    made.fits("n/a", 5, 0)
    made.fits("n/b", 1, 0)
    made.fits("n/a", 2, 0)
    assert made.binds("n/a", 8).filters == {"TaintToleration": 2}


def test_metrics_that_could_not_be_read_name_nothing_for_this_pod_and_the_next() -> None:
    made = Scheduler()
    made.attempt("n/a")
    made.run(10, 10, 8)
    made.notes.append(FilterCounts("n/a", "one", 8, made.now(), made.now(), {}))
    assert made.binds("n/a", 8).unknown == UNREAD
    made.fits("n/b", 1, 0)
    assert made.binds("n/b", 9).unknown == BETWEEN
    made.fits("n/c", 1, 0)
    assert made.binds("n/c", 9).filters == {"TaintToleration": 1}


def test_counts_that_do_not_add_up_are_said_to_be_so() -> None:
    made = Scheduler()
    made.fits("n/a", 2, 0)
    assert made.binds("n/a", 5, evaluated=9).unknown == UNEVEN


def test_a_profile_whose_filters_were_not_logged_names_nothing() -> None:
    made = Scheduler()
    made.attempt("n/a")
    made.run(10, 10, 8)
    made.note("n/a", 8, profile="other")
    assert made.binds("n/a", 8).unknown == UNEVEN


def test_a_pod_for_which_no_extender_was_asked_has_no_more_than_the_log() -> None:
    attempts = SchedulingAttempts(("one",), list)
    attempts.attempt("n/a", "1125 02:28:11.000001")
    assert attempts.bound("n/a", 3, 2) is None
    assert Filtered(3) == Filtered(3, {}, "")

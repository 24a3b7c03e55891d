"""kube-scheduler's log of its decisions, understood line by line."""

from kumulus.extras.schedulers.decisions.document import Decision, ScoredNode
from kumulus.extras.schedulers.decisions.log import Decisions

HEAD = "I1123 03:50:00.123456   12345 schedule_one.go:867] "


def taken(*lines: str) -> tuple[list[Decision], Decisions]:
    found: list[Decision] = []
    log = Decisions(found.append)
    for line in lines:
        assert log.line(f"{HEAD}{line}\n".encode()), line
    return found, log


def attempt(pod: str) -> str:
    return f'"Attempting to schedule pod" pod="{pod}"'


def scored(pod: str, **totals: int) -> list[str]:
    parts = [
        f'"Plugin scored node for pod" pod="{pod}" plugin="{plugin}" node="{node}" score={score}'
        for node, total in totals.items()
        for plugin, score in (("NodeResourcesFit", total - 100), ("TaintToleration", 100))
    ]
    whole = [
        f'"Calculated node\'s final score for pod" pod="{pod}" node="{node}" score={total}'
        for node, total in totals.items()
    ]
    return [*parts, *whole]


def bound(pod: str, node: str, evaluated: int = 4, feasible: int = 3) -> str:
    return (
        f'"Successfully bound pod to node" pod="{pod}" node="{node}" '
        f"evaluatedNodes={evaluated} feasibleNodes={feasible}"
    )


def refused(pod: str, why: str) -> str:
    return f'"Unable to schedule pod; no fit; waiting" pod="{pod}" err="{why}"'


def hint(pod: str, node: str) -> str:
    return (
        f'"OpportunisticBatch provided node hint" profile="x" pod="{pod}" cycleCount=2 hint="{node}" remainingNodes=1'
    )


def test_the_scores_of_the_node_and_of_the_next_best_are_kept() -> None:
    found, _ = taken(attempt("n/a"), *scored("n/a", x=150, y=190, z=120), bound("n/a", "y"))

    (decision,) = found
    assert (decision.evaluated, decision.feasible, decision.equal) == (4, 3, 1)
    assert decision.chosen == ScoredNode("y", 190, {"NodeResourcesFit": 90, "TaintToleration": 100})
    assert decision.next is not None
    assert (decision.next.node, decision.next.total) == ("x", 150)


def test_equal_nodes_are_counted_and_the_next_is_below_them() -> None:
    found, _ = taken(attempt("n/a"), *scored("n/a", x=190, y=190, z=120), bound("n/a", "x"))

    assert found[0].equal == 2
    assert found[0].next is not None
    assert found[0].next.node == "z"


def test_a_binding_that_is_said_among_the_next_pods_scores_keeps_its_own() -> None:
    first, second = scored("n/a", x=150, y=190), scored("n/b", x=180, y=110)

    found, _ = taken(
        attempt("n/a"), *first, attempt("n/b"), second[0], bound("n/a", "y"), *second[1:], bound("n/b", "x")
    )

    assert [(each.pod, each.chosen.total) for each in found if each.chosen] == [("n/a", 190), ("n/b", 180)]


def test_a_pod_that_uses_the_list_of_an_equal_one_says_so() -> None:
    first = [attempt("n/a"), *scored("n/a", x=150, y=190, z=120), bound("n/a", "y")]

    found, _ = taken(*first, attempt("n/b"), hint("n/b", "x"), bound("n/b", "x", 1, 1))

    assert (found[1].like, found[1].explained) == ("n/a", True)
    assert found[1].chosen is not None
    assert found[1].chosen.total == 150


def test_a_hint_that_did_not_fit_is_no_reason() -> None:
    first = [attempt("n/a"), *scored("n/a", x=150, y=190), bound("n/a", "y")]

    found, _ = taken(*first, attempt("n/b"), hint("n/b", "x"), *scored("n/b", y=170, z=160), bound("n/b", "y"))

    assert found[1].like == ""
    assert found[1].chosen is not None
    assert found[1].chosen.total == 170


def test_what_refused_a_pod_is_kept_until_it_is_bound() -> None:
    why = '0/4 nodes are available: 4 Insufficient cpu. a \\"quoted\\" word'
    found, log = taken(refused("n/a", why), refused("n/a", why), refused("n/b", "no"), bound("n/a", "x", 4, 1))

    assert (found[0].refused, found[0].reason) == (2, '0/4 nodes are available: 4 Insufficient cpu. a "quoted" word')
    assert log.totals().waiting == {"n/b": "no"}


def test_a_second_attempt_does_not_keep_the_scores_of_the_first() -> None:
    found, _ = taken(attempt("n/a"), *scored("n/a", x=150, y=190), attempt("n/a"), bound("n/a", "y", 4, 1))

    assert (found[0].chosen, found[0].explained) == (None, True)


def test_a_binding_of_unknown_scores_counts_as_not_explained() -> None:
    _, log = taken(bound("n/a", "x", 4, 3), bound("n/b", "x", 4, 1))

    assert (log.totals().bound, log.totals().explained) == (2, 1)

"""What a policy gives the nodes of a pod, beside kube-scheduler's choice: as it decides, and as it looks on."""

import asyncio
import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from kumulus.extras.lab.extender.column import NAME, PolicyColumn, PolicyColumns, columns, kept
from kumulus.extras.lab.extender.extender import Extender
from kumulus.extras.lab.extender.observed_policy import ObservedPolicy
from kumulus.extras.lab.offline.placing import EmptyNode
from kumulus.extras.lab.policies import Pod
from kumulus.extras.lab.policies.load import FittingNodes, policy
from tests.unit.extras.lab.test_extender import NAMES, asked, extender, nobody, own
from tests.unit.extras.lab.test_offline import MACHINES, PODS

SMALL = Pod("small", 1000, 256)


def about(node: int, *scores: float) -> dict[str, Any]:
    return FittingNodes(np.arange(len(scores)), np.array(scores)).about(node, lambda number: f"m-{number}")


def test_beside_the_highest_score_stands_the_best_below_it() -> None:
    assert about(1, 3, 7, 5, 7) == {"score": 7, "higher": 0, "equal": 2, "other": "m-2", "other_score": 5}
    assert about(0, 7, 7) == {"score": 7, "higher": 0, "equal": 2}, "there is none below"


def test_beside_a_lower_score_stands_the_best_of_all() -> None:
    assert about(0, 3, 7, 5, 7) == {"score": 3, "higher": 3, "equal": 1, "other": "m-1", "other_score": 7}


def test_a_node_on_which_the_pod_does_not_fit_has_no_score() -> None:
    assert about(9, 3, 7) == {"score": None, "higher": 2, "equal": 0, "other": "m-1", "other_score": 7}


def test_a_policy_that_chooses_without_scores_has_none() -> None:
    assert FittingNodes(np.array([2]), None).about(2, str) == {}
    assert list(FittingNodes(np.array([2]), None).best()) == [2]


def test_columns_are_read_as_they_were_kept(tmp_path: Path) -> None:
    made = [
        PolicyColumn("n/a", "FGD", True, 4, 3, "m-0", 0.0, 0, 1, "m-1", -2.5),
        PolicyColumn("n/b", "FGD", False, 4, failure="it raised"),
    ]
    with kept(tmp_path / "new") as columns_kept:
        for each in made:
            columns_kept.keep(each)
    assert list(columns(tmp_path / "new" / NAME)) == made


def test_a_file_at_its_limit_takes_no_more(tmp_path: Path) -> None:
    file = PolicyColumns(tmp_path / "c", limit=100)
    for number in range(5):
        file.keep(PolicyColumn(f"n/p{number}", "FGD", True, 4))
    file.close()
    assert 0 < len(list(columns(tmp_path / "c"))) < 5
    assert file.dropped == 5 - len(list(columns(tmp_path / "c")))
    assert f'{{"dropped": {file.dropped}}}' in (tmp_path / "c").read_text()


def asked_of(pod: Pod, uid: str, names: list[str] = NAMES) -> dict[str, Any]:
    arguments = asked(pod, uid, names)
    arguments["Pod"]["metadata"]["namespace"] = "n"
    return arguments


async def test_a_policy_that_decides_says_what_it_gave_the_node_and_the_next_best() -> None:
    found: list[PolicyColumn] = []
    made = extender("BestFit", keep=found.append)
    first = (await made.filter(asked_of(SMALL, "a")))["NodeNames"][0]
    made.seen("a", "a", first, False, nobody)
    second = (await made.filter(asked_of(SMALL, "b")))["NodeNames"][0]
    made.close()
    assert second == first, "BestFit fills the machine that is in use"
    assert [(each.pod, each.node, each.decides, each.offered, each.fitting) for each in found] == [
        ("n/a", first, True, 4, 4),
        ("n/b", first, True, 4, 4),
    ]
    assert (found[0].higher, found[0].equal, found[0].other) == (0, 4, ""), "four empty machines that are alike"
    assert (found[1].higher, found[1].equal) == (0, 1)
    assert found[1].other_score is not None
    assert found[1].score is not None
    assert found[1].score > found[1].other_score


async def test_of_equal_nodes_the_column_leaves_open_which_is_drawn() -> None:
    found: list[PolicyColumn] = []
    made = extender("BestFit", ties="random", keep=found.append)
    assert len((await made.filter(asked_of(SMALL, "a")))["NodeNames"]) == 4
    made.close()
    assert [(each.node, each.equal) for each in found] == [("", 4)]


async def test_who_leaves_the_choice_to_kube_scheduler_has_no_column() -> None:
    found: list[PolicyColumn] = []
    made = extender("KubeScheduler", keep=found.append)
    await made.filter(asked_of(SMALL, "a"))
    made.close()
    assert found == []


class Looking:
    """A policy that looks on, on four machines."""

    def __init__(self, name: str = "BestFit", directory: Path = Path(), limit: float = 20.0) -> None:
        self.found: list[PolicyColumn] = []
        self.observed = ObservedPolicy(
            policy(name, directory, limit),
            limit=limit,
            product_label="product",
            refresh=self._refresh,
            keep=self.found.append,
        )
        self.observed.begin(MACHINES, PODS, random.Random(1))

    @staticmethod
    async def _refresh() -> list[EmptyNode]:
        return [*MACHINES, EmptyNode("new-0", 8000, 8192, 2, "T4")]

    async def ask(self, uid: str, pod: Pod = SMALL, names: list[str] = NAMES) -> list[str]:
        answer = await self.observed.filter(asked_of(pod, uid, names))
        assert answer["FailedNodes"] == {}
        given: list[str] = answer["NodeNames"]
        return given

    def bound(self, uid: str, node: str) -> None:
        self.observed.seen(uid, node, False, nobody)

    async def end(self) -> list[PolicyColumn]:
        await self.observed.settle()
        await self.observed.close()
        return self.found


async def test_it_refuses_nothing_and_scores_what_kube_scheduler_chose() -> None:
    looking = Looking()
    assert await looking.ask("a") == NAMES
    looking.bound("a", "m-3")
    assert await looking.ask("b") == NAMES
    looking.bound("b", "m-1")
    first, second = await looking.end()
    assert (first.pod, first.node, first.decides, first.offered, first.fitting) == ("n/a", "m-3", False, 4, 4)
    assert (first.higher, first.equal) == (0, 4)
    assert (second.node, second.higher, second.other) == ("m-1", 1, "m-3"), "BestFit would have filled m-3"


async def test_each_pod_is_scored_with_those_before_it_however_late_the_cluster_says_where_they_are() -> None:
    looking = Looking()
    for uid in "abc":
        await looking.ask(uid)
    looking.bound("c", "m-0")
    looking.bound("b", "m-2")
    await asyncio.sleep(0.05)
    assert looking.found == [], "where the first one is changes what the others get"
    looking.bound("a", "m-2")
    await asyncio.sleep(0.2)
    assert [each.pod for each in looking.found] == ["n/a", "n/b", "n/c"]
    assert [each.higher for each in looking.found] == [0, 0, 1]
    assert looking.found[2].other == "m-2"
    await looking.end()


async def test_a_pod_that_was_not_bound_keeps_nobody_waiting_at_the_end_and_has_no_column() -> None:
    looking = Looking()
    await looking.ask("never")
    await looking.ask("a")
    looking.bound("a", "m-1")
    assert [each.pod for each in await looking.end()] == ["n/a"]


async def test_a_pod_that_is_gone_holds_nothing() -> None:
    looking = Looking()
    await looking.ask("a")
    looking.bound("a", "m-3")
    await asyncio.sleep(0.1)
    looking.observed.seen("a", "m-3", True, nobody)
    await looking.ask("b")
    looking.bound("b", "m-1")
    assert [each.higher for each in await looking.end()] == [0, 0]


async def test_a_pod_it_was_not_asked_about_takes_its_room() -> None:
    looking = Looking()
    looking.observed.seen("x", "m-2", False, lambda: SMALL)
    await looking.ask("a")
    looking.bound("a", "m-0")
    (only,) = await looking.end()
    assert (only.higher, only.other) == (1, "m-2")


async def test_a_node_that_has_come_since_is_known_once_it_is_named() -> None:
    looking = Looking()
    await looking.ask("a", names=[*NAMES, "new-0"])
    looking.bound("a", "new-0")
    (only,) = await looking.end()
    assert (only.node, only.offered, only.fitting, only.equal) == ("new-0", 5, 5, 5)


async def test_where_the_pod_does_not_fit_by_its_account_it_says_so() -> None:
    looking = Looking()
    for uid in ("a", "b", "c"):
        await looking.ask(uid, PODS[1])
        looking.bound(uid, "m-0")
    *_, last = await looking.end()
    assert (last.node, last.score, last.fitting) == ("m-0", None, 3), "its two GPUs are held"


async def test_a_policy_that_fails_while_it_looks_on_harms_nothing(tmp_path: Path) -> None:
    looking = Looking(own(tmp_path, "raise ValueError('my own mistake')"), tmp_path)
    assert await looking.ask("a") == NAMES
    looking.bound("a", "m-0")
    (only,) = await looking.end()
    assert "my own mistake" in only.failure


@pytest.mark.parametrize("ties", ["name", "random"])
async def test_what_a_policy_decides_is_the_same_whether_columns_are_kept_or_not(ties: Any) -> None:
    answers = []
    for keep in (None, lambda _: None):
        made: Extender = extender("FGD", ties=ties, keep=keep)
        answers.append([(await made.filter(asked_of(pod, f"p{n}")))["NodeNames"] for n, pod in enumerate(PODS[:1])])
        made.close()
    assert answers[0] == answers[1]

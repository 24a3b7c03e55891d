"""Which nodes a pool is to have whose number is an autoscaler's."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kumulus.model.bounds import Bounds
from kumulus.model.consequences import consequences
from kumulus.model.pools import Pool
from kumulus.nodes.pools.scaled import free, ordinal_of, with_ordinals, within

POOL = Pool("web-z", "web", "z", "", 3, {}, capacity={"cpu": "4"}, allocatable={"cpu": "4"}, bounds=Bounds(2, 5))


@pytest.mark.parametrize(
    ("there", "wanted"),
    [
        ([0, 4, 7], [0, 4, 7]),
        ([4], [0, 4]),
        ([], [0, 1]),
        ([1, 2, 3, 5, 8, 9], [1, 2, 3, 5, 8]),
    ],
)
def test_what_there_is_stays_and_the_bounds_are_kept(there: list[int], wanted: list[int]) -> None:
    assert within(POOL, there) == wanted


def test_a_pool_of_some_numbers_has_just_those() -> None:
    pool = with_ordinals(POOL, [1, 4])
    assert (pool.replicas, pool.absent, pool.count) == (5, frozenset({0, 2, 3}), 2)
    assert with_ordinals(POOL, []).count == 0
    # What holds at the moment is not part of what the stack says.
    assert pool == replace(POOL, replicas=5)
    meaning = consequences(pool, with_ordinals(POOL, [1, 4, 0]), hourly=lambda _: 0.5)
    assert meaning.describe() == "group web, zone z: +1 node (2 → 3): +4 cpu, +$0.50/h"


def test_the_lowest_free_numbers_come_first() -> None:
    assert free({0, 2, 3}, 3) == [1, 4, 5]


@pytest.mark.parametrize("name", ["web-z-01", "web-z-", "web-z-x", "web-y-1", "web-z--1", "web-z-1-2", "web-z-²"])
def test_other_names_are_no_numbers_of_a_pool(name: str) -> None:
    assert ordinal_of(POOL, name) is None
    assert ordinal_of(POOL, "web-z-12") == 12

"""Machines that a cloud takes back: which are drawn, what is said of it, and its plain form."""

from __future__ import annotations

import json
from typing import Any

from kumulus.model.fault_consequences import described, reclaimed
from kumulus.model.node_effects import NodeEffects
from kumulus.model.offer_effects import Interruption, OfferEffects, interruption_from, offer_effects_from

NAMES = [f"node-{number}" for number in range(40)]


def test_a_share_or_a_count_is_drawn_by_the_seed() -> None:
    fifth = Interruption(percent=20, seed="a").drawn(NAMES)
    assert len(fifth) == len(set(fifth)) == 8
    assert set(fifth) <= set(NAMES)
    assert Interruption(percent=20, seed="a").drawn(NAMES) == fifth
    assert Interruption(percent=20, seed="b").drawn(NAMES) != fifth
    # Places are drawn: of another run's names, the same.
    others = [name.upper() for name in NAMES]
    assert Interruption(percent=20, seed="a").drawn(others) == tuple(name.upper() for name in fifth)
    assert len(Interruption(count=3, seed="a").drawn(NAMES)) == 3
    assert len(Interruption(count=3, percent=5, seed="a").drawn(NAMES)) == 2
    assert Interruption().drawn(NAMES) == tuple(NAMES)


def test_of_some_there_is_one_and_of_none_none() -> None:
    assert len(Interruption(percent=1).drawn(NAMES[:3])) == 1
    assert Interruption(count=50).drawn(NAMES) == tuple(NAMES)
    assert Interruption(percent=50).drawn([]) == ()


def test_it_is_said_in_a_line() -> None:
    def said(how: Interruption, **which: Any) -> str:
        return described(
            "spot-interruption", NodeEffects(), None, {}, {}, {}, None, OfferEffects(interruption=how, **which)
        )

    assert said(Interruption()) == "spot-interruption: all spot machines go after a notice of 2m"
    where = {"instance_types": ("e2-*",), "zones": ("a",)}
    wanted = "spot-interruption: 20% of the spot machines go after a notice of 30s: e2-* in a"
    assert said(Interruption(30, percent=20), **where) == wanted
    assert said(Interruption(count=3, labels={"team": "ml"})).endswith(
        "3 of the spot machines go after a notice of 2m: team=ml"
    )
    assert reclaimed(["a"]) == "; 1 machine"
    assert reclaimed(NAMES) == "; 40 machines"
    assert reclaimed([]) == ""


def test_its_plain_form_is_json_and_comes_back() -> None:
    for how in (Interruption(), Interruption(30, {"a": "b"}, 3, 12.5, "seed")):
        assert interruption_from(json.loads(json.dumps(how.to_plain()))) == how
        effects = OfferEffects(capacity_types=("spot",), interruption=how)
        assert offer_effects_from(json.loads(json.dumps(effects.to_plain()))) == effects


def test_a_quota_is_said_and_comes_back() -> None:
    effects = OfferEffects(instance_types=("e2-*",), zones=("us-central1-*",), limits={"cpu": "64", "nodes": "10"})
    assert effects.described() == "at most 64 cpu, 10 nodes: e2-* in us-central1-*"
    assert offer_effects_from(json.loads(json.dumps(effects.to_plain()))) == effects
    assert effects.selects("e2-standard-4", "us-central1-b", "spot")
    assert not effects.selects("n2-standard-4", "us-central1-b", "spot")
    assert not effects.selects("e2-standard-4", "us-east4-b", "spot")

"""Who made a cluster: told by the stack's identity, and by names where one has none."""

from __future__ import annotations

from kumulus.runtimes.owner import described, identified, identity_of, owner, same

URN = "urn:pulumi:dev::kumulus::kumulus:index:KwokCluster$kumulus:index:Cluster::dev-control-plane"
ONE, TWO = "1" * 32, "2" * 32
OLDER = owner("dev", URN, "/home/me/kumulus")


def test_a_project_that_moved_and_a_stack_that_was_renamed_are_the_same() -> None:
    assert same(owner("dev", URN, "/home/me/kumulus", ONE), owner("other", "urn", "/srv/kumulus", ONE))


def test_another_checkout_is_another_even_where_everything_is_called_alike() -> None:
    assert not same(owner("dev", URN, "/home/me/kumulus", ONE), owner("dev", URN, "/home/me/kumulus", TWO))


def test_one_without_an_identity_is_the_same_when_all_else_is() -> None:
    assert same(OLDER, owner("dev", URN, "/home/me/kumulus", ONE))
    assert not same(OLDER, owner("dev", URN, "/home/you/kumulus", ONE))
    assert same("the tests", "the tests")
    assert not same("the tests", "others")
    assert not same("[]", "{")


def test_the_identity_is_put_into_an_owner_without_one() -> None:
    assert identified(OLDER, ONE) == owner("dev", URN, "/home/me/kumulus", ONE)
    assert identity_of(identified(OLDER, ONE)) == ONE
    assert (identified(OLDER, ""), identity_of(OLDER)) == (OLDER, "")
    assert (identified("the tests", ONE), identity_of("the tests")) == ("the tests", "")


def test_an_owner_is_told_as_people_know_it() -> None:
    assert described(owner("dev", URN, "/home/me/kumulus", ONE)) == "the stack dev of /home/me/kumulus"
    assert described("the tests") == "the tests"

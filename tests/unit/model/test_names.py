"""Names: what Kubernetes accepts, what nodes are called, what a misspelt key means."""

import time
from collections.abc import Callable
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kumulus.model.checks import annotation_problems
from kumulus.model.names import (
    ValueMistake,
    collisions,
    dns_label_mistake,
    dns_safe,
    is_dns_label,
    is_dns_subdomain,
    is_own,
    label_key_mistake,
    label_value_mistake,
    nearest,
    node_name,
    pool_name,
    suggest,
)
from kumulus.model.words import aligned, counted, listed, with_part

Mistake = Callable[[str], ValueMistake | None]
parts = st.lists(st.sampled_from(["a", "1", "0", "b"]), min_size=1, max_size=3).map("-".join)


GOOD: dict[Mistake, list[str]] = {
    dns_label_mistake: ["a", "a2-ultragpu-8g", "0", "a" * 63],
    label_key_mistake: ["team", "example.com/team", "nvidia.com/gpu", "A_b.c-d", "a" * 63],
    label_value_mistake: ["", "a", "A_b.c-1", "a" * 63],
}
BAD: dict[Mistake, list[str]] = {
    dns_label_mistake: ["", "-a", "a-", "A", "a_b", "a.b", "a b", "a\n", "é", "٣", "a" * 64],
    label_key_mistake: ["", "/", "a/", "/a", "a b", "-a", "a.", "Example.com/a", "a/b/c", "a" * 64, "team\n"],
    label_value_mistake: ["-a", "a-", "a b", "a/b", "a" * 64, "a\n"],
}


@pytest.mark.parametrize("mistake_of", GOOD)
def test_what_kubernetes_takes_is_no_mistake_and_what_it_refuses_has_a_remedy(mistake_of: Mistake) -> None:
    assert [text for text in GOOD[mistake_of] if mistake_of(text)] == []
    assert [text for text in BAD[mistake_of] if not ((found := mistake_of(text)) and found.remedy)] == []


@pytest.mark.parametrize(
    ("text", "subdomain"), [("p5.48xlarge", True), ("a..b", False), ("a.", False), ("a.-b", False)]
)
def test_subdomains_are_labels_with_dots_between(text: str, subdomain: bool) -> None:
    assert is_dns_subdomain(text) is subdomain


def test_the_remedy_for_a_bad_name_is_a_good_one() -> None:
    fault = dns_label_mistake("Team_A")
    assert fault is not None
    assert fault.remedy == "write team-a"


@given(st.text(), st.integers(8, 63), st.booleans())
def test_a_safe_name_is_safe_or_empty(text: str, longest: int, dots: bool) -> None:
    safe = dns_safe(text, longest, dots)
    assert not safe or (is_dns_subdomain(safe, longest) if dots else is_dns_label(safe, longest))


def test_long_names_stay_apart_when_cut() -> None:
    assert dns_safe("x" * 80 + "1", 40) != dns_safe("x" * 80 + "2", 40)


def test_annotation_keys_may_have_capitals_in_their_prefix() -> None:
    assert annotation_problems((), {"Example.com/a": ""}) == []
    assert annotation_problems((), {"a b": ""})


@pytest.mark.parametrize(
    ("key", "own"),
    [("kumulus.io/pool", True), ("x.kumulus.io/a", True), ("kumulus.io", False), ("notkumulus.io/a", False)],
)
def test_keys_under_our_domain_are_ours(key: str, own: bool) -> None:
    assert is_own(key) is own


def test_node_names_count_from_zero() -> None:
    assert node_name(pool_name("a100", "use1"), 0) == "a100-use1-0"


def test_groups_and_zones_that_join_to_the_same_name_collide() -> None:
    assert collisions([pool_name("a", "b-c"), pool_name("x", "y"), pool_name("a-b", "c")]) == [(0, 2)]
    # A pool may be named like another one's node.
    assert collisions(["x", "x-1"]) == []


@given(st.lists(parts, min_size=2, max_size=4))
def test_collisions_are_exact_at_any_replica_counts(pools: list[str]) -> None:
    names = [{node_name(pool, ordinal) for ordinal in range(12)} for pool in pools]
    pairs = [(i, j) for i, j in product(range(len(pools)), repeat=2) if i < j]
    collide = {j for i, j in pairs if names[i] & names[j]}
    assert {later for _, later in collisions(pools)} == collide


@pytest.mark.parametrize(
    ("key", "meant"),
    [
        ("nodegroups", "nodeGroups"),
        ("node_groups", "nodeGroups"),
        ("node-groups", "nodeGroups"),
        ("replica", "replicas"),
        ("zzz", None),
    ],
)
def test_misspelt_keys_are_guessed(key: str, meant: str | None) -> None:
    assert suggest(key, ["nodeGroups", "replicas", "kwok"]) == meant


def test_a_mistake_that_is_there_thousands_of_times_costs_as_much_as_once() -> None:
    known = [f"measure.of.{number}" for number in range(60)]

    def seconds(keys: list[str]) -> float:
        began = time.process_time()
        for key in keys:
            suggest(key, known)
        return time.process_time() - began

    different = seconds([f"mesure.off.{number}" for number in range(100)])
    assert seconds(["mesure.of.7"] * 100) < different / 5


def test_one_thing_is_in_the_singular() -> None:
    assert [counted(number, "node") for number in (0, 1, 2550)] == ["0 nodes", "1 node", "2,550 nodes"]


def test_of_many_names_the_first_are_listed_and_the_others_counted() -> None:
    assert listed(["a", "b"], 2) == "a, b"
    assert listed([str(number) for number in range(2000)], 2, "; ") == "0; 1 and 1,998 more"
    assert listed([], 2) == ""


def test_the_columns_of_a_table_are_aligned_and_its_lines_end_with_their_last_word() -> None:
    assert aligned([("NAME", "SIZE"), ("a", "10 MB"), ("long", "")]) == "NAME  SIZE\na     10 MB\nlong"


def test_a_part_of_a_page_is_replaced_between_its_comments() -> None:
    page = "a\n<!-- x: begin -->\nold\n<!-- x: end -->\nb\n"
    assert with_part(page, "x", "new\n") == page.replace("old", "new")


def test_the_beginning_of_a_name_means_that_name() -> None:
    products = ["NVIDIA-A100-SXM4-80GB", "NVIDIA-H100-80GB-HBM3", "NVIDIA-H200"]
    assert nearest("nvidia-h100", products) == ["NVIDIA-H100-80GB-HBM3"]
    # Of many, the likest are named.
    many = [f"NVIDIA-H10{n}" for n in range(4)]
    assert set(nearest("NVIDIA-H10", [*products, *many])) < set(many)

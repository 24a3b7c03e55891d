"""What a new cluster's components are given for the size of its fleet."""

from dataclasses import replace
from typing import Any

import pytest

from kumulus import toolchain
from kumulus.host import machine
from kumulus.model.contents import contents, expected_nodes, is_contents
from kumulus.runtimes.base import WantedControlPlane
from kumulus.runtimes.kwok import additions, configuration


@pytest.fixture(autouse=True)
def tools(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(toolchain, "find", lambda tool, *_: f"/tools/{tool}")


def documents(nodes: int | None, **options: Any) -> list[dict[str, Any]]:
    wanted = WantedControlPlane("c", "me", "/home", "v1.35.4", options, nodes)
    return configuration.documents(wanted, dict.fromkeys(configuration.port_keys({}), 7))


def made(nodes: int | None, **options: Any) -> tuple[dict[str, Any], dict[str, str]]:
    """kwokctl's options, and the controller manager's flags that replace kwokctl's own."""
    head, *_ = documents(nodes, **options)
    of_manager = [each for each in head["componentsPatches"] if each["name"] == "kube-controller-manager"]
    flags = [flag for each in of_manager for flag in each.get("extraArgs", []) if flag.get("override")]
    return head["options"], {flag["key"]: flag["value"] for flag in flags}


def variables(nodes: int | None) -> dict[str, dict[str, str]]:
    """The environment of each component."""
    patches = documents(nodes)[0]["componentsPatches"]
    found = [(each["name"], each["extraEnvs"]) for each in patches if "extraEnvs" in each]
    return {name: {variable["name"]: variable["value"] for variable in listed} for name, listed in found}


@pytest.mark.parametrize(
    ("nodes", "most", "others"), [(0, "50", "50"), (500, "50", "50"), (501, "400", "200"), (None, "400", "200")]
)
def test_a_small_fleet_collects_garbage_sooner(
    monkeypatch: pytest.MonkeyPatch, nodes: int | None, most: str, others: str
) -> None:
    monkeypatch.delenv("GOGC")
    found = variables(nodes)
    assert found.pop("kube-apiserver") == {"GOGC": most, "GOMEMLIMIT": str(machine.memory_bytes() // 5)}
    assert len(found) == 4
    assert {each["GOGC"] for each in found.values()} == {others}


@pytest.mark.parametrize(("own", "small"), [("300", "300"), ("off", "50"), ("", "50")])
def test_a_small_fleet_takes_the_users_own_rate_of_collection_if_it_is_a_number(
    monkeypatch: pytest.MonkeyPatch, own: str, small: str
) -> None:
    monkeypatch.setenv("GOGC", own)
    assert {each["GOGC"] for each in variables(500).values()} == {small}
    assert {each["GOGC"] for each in variables(501).values()} == {"400", "200"}


@pytest.mark.parametrize(
    ("nodes", "most"),
    [
        (0, machine.memory_bytes() // 12),
        (10_000, machine.memory_bytes() // 12),
        (10_000_000, 320_000_000_000),
        (None, None),
    ],
)
def test_controllers_that_keep_all_nodes_take_a_share_of_the_machine_but_never_less_than_they_need(
    nodes: int | None, most: int | None
) -> None:
    found = variables(nodes)
    del found["kube-apiserver"]
    assert {name for name, each in found.items() if "GOMEMLIMIT" in each} == (
        {"kwok-controller", "kube-controller-manager"} if most else set()
    )
    assert {each["GOMEMLIMIT"] for each in found.values() if "GOMEMLIMIT" in each} == ({str(most)} if most else set())


def test_where_the_size_is_not_known_all_is_as_for_a_thousand_nodes() -> None:
    assert made(None) == made(1000)


@pytest.mark.parametrize(
    ("nodes", "factor", "grace"),
    [(1001, 20.0, "300s"), (5000, 20.0, "300s"), (5001, 40.0, "600s"), (100_000, 40.0, "600s")],
)
def test_a_large_fleet_has_rarer_renewals_and_little_more_patience(nodes: int, factor: float, grace: str) -> None:
    options, flags = made(nodes)
    assert options["heartbeatFactor"] == factor
    assert flags["node-monitor-grace-period"] == grace
    # Later than a renewal comes, by half of the time between two.
    assert int(grace.removesuffix("s")) == 1.5 * (40 * factor / 4)


def test_a_factor_of_the_stacks_own_is_kwokctls_in_all() -> None:
    options, flags = made(100_000, heartbeatFactor=7)
    assert options["heartbeatFactor"] == 7.0
    assert "node-monitor-grace-period" not in flags
    small, flags = made(1000)
    assert "heartbeatFactor" not in small
    assert "node-monitor-grace-period" not in flags


def test_the_number_of_nodes_is_a_part_of_what_the_stack_has_in_it() -> None:
    found = contents(["f"], ["p"], nodes=30, preview=False)
    assert is_contents(found)
    assert expected_nodes(found) == expected_nodes({**found, "nodes": 30.0}) == 30
    assert expected_nodes(contents([], [], preview=False)) is None
    for wrong in ("30", -1, 1.5, True):
        assert not is_contents({**found, "nodes": wrong})


def test_a_fleet_of_many_renews_fewer_leases_at_once_and_one_that_grows_is_not_restarted_for_it() -> None:
    def at_once(nodes: int | None) -> int:
        (most,) = [
            each["options"]["nodeLeaseParallelism"] for each in documents(nodes) if each["kind"] == "KwokConfiguration"
        ]
        return int(most)

    assert [at_once(nodes) for nodes in (None, 0, 20_000, 20_001, 100_000)] == [8, 8, 8, 4, 4]
    grown = WantedControlPlane("c", "me", "/home", "v1.35.4", {}, 50_000)
    assert additions.note(grown) == additions.note(replace(grown, nodes=30))

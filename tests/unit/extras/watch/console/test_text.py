"""What the terminal and a pipe show of a fleet."""

import re
import time
from dataclasses import replace

import pytest
from textual.widgets import Static

from kumulus.extras.watch.console.terminal import Terminal
from kumulus.extras.watch.console.text import bar, percent, text, written
from kumulus.extras.watch.live.fleet import Live
from kumulus.extras.watch.live.health import HealthCheck
from kumulus.extras.watch.live.node import NOWHERE, PlaceLabels, node_from
from kumulus.extras.watch.live.summary import summary
from kumulus.kube import Client, Connection, Unreachable
from kumulus.model.pools import INSTANCE_TYPE_LABEL, REGION_LABEL
from kumulus.nodes.catalog.prices import catalog
from tests.support.fleets import WHOLE, node, pod
from tests.support.messages import node_message

SERVER = "http://127.0.0.1:1"


@pytest.fixture
def live() -> Live:
    found = Live(Client(Connection(SERVER, "none")), PlaceLabels((), ()))
    found.checks = {"kube-apiserver": HealthCheck("ok"), "kube-scheduler": HealthCheck("down", "does not answer")}
    for index in range(4):
        kind = {"product": "", "allocatable": WHOLE._replace(gpus=0), "capacity": WHOLE._replace(gpus=0)}
        found.fleet.set_node(f"a{index}", node(f"a{index}", "use1"))
        found.fleet.set_node(f"c{index}", node(f"c{index}", "use2", "cpu", **kind))
    found.fleet.set_node("bad", node("bad", "use2", ready="Unknown"))
    found.fleet.set_pod("default/p", pod("p", "a0", 6))
    found.fleet.set_pod("default/done", pod("done", "a0", 2, "Succeeded"))
    waiting = replace(pod("w", ""), phase="Pending", reasons=("Insufficient nvidia.com/gpu",))
    found.fleet.set_pod("default/w", waiting)
    return found


def test_the_text_has_everything_a_look_is_for(live: Live) -> None:
    lines = text("dev", summary(live)).splitlines()
    assert re.fullmatch(
        r"dev at \d\d:\d\d:\d\d: 9 nodes \(8 ready, 1 not ready\), 40 GPUs, 6 allocated \(15 %\)", lines[0]
    )
    table = {line.split("  ")[0]: " ".join(line.split()) for line in lines}
    assert table["NVIDIA-H100-80GB-HBM3"] == "NVIDIA-H100-80GB-HBM3 5 ███ 6 of 40 15 % 1 % 1 % <1 %"
    assert table["(no GPU)"] == "(no GPU) 4 0 of 0 – 0 % 0 % 0 %"
    assert table["use1"].startswith("use1 4 ███▊ 6 of 32 19 %")
    assert "pods: 1 Pending (1 unscheduled), 1 Running, 1 Succeeded" in lines
    assert "       1 × Insufficient nvidia.com/gpu" in lines
    assert lines[-3] == "bound: 0.0 pods/s over the last 10 s"
    assert lines[-2] == "cost: price not known"
    assert lines[-1] == "control plane: kube-apiserver ok · kube-scheduler down (does not answer)"


def test_what_the_nodes_with_a_price_cost_is_said_and_how_many_have_none(live: Live) -> None:
    live.fleet.set_node("a0", replace(node("a0", "use1"), hourly=10.0))
    live.fleet.set_node("a1", replace(node("a1", "use1"), hourly=2.5))
    now = summary(live)
    assert "cost: $12.50/h, without 7 whose price is not known" in text("dev", now).splitlines()
    plain = now.to_plain()
    assert (plain["costPerHour"], plain["nodesWithoutPrice"]) == (12.5, 7)
    assert plain["byZone"]["use1"]["costPerHour"] == 12.5
    live.fleet.set_node("a1", None)
    assert summary(live).total.hourly == 10.0


def test_a_node_costs_what_its_labels_say() -> None:
    labels = {INSTANCE_TYPE_LABEL: "m5.xlarge", REGION_LABEL: "us-east-1"}
    assert node_from(node_message(labels=labels), NOWHERE, catalog()).hourly == 0.192
    assert node_from(node_message(labels=labels), NOWHERE).hourly is None
    assert node_from(node_message(), NOWHERE, catalog()).hourly is None


def test_many_reasons_are_cut_short_and_counted(live: Live) -> None:
    for index in range(12):
        waiting = replace(pod("w", ""), phase="Pending", reasons=(f"reason {index}",))
        live.fleet.set_pod(f"default/w{index}", waiting)
    lines = text("dev", summary(live)).splitlines()
    assert sum(" × " in line for line in lines) == 8
    assert "  and 5 more reasons" in lines


def test_pods_that_were_not_created_are_counted_with_those_that_wait(live: Live) -> None:
    live.refused["Job a/train: exceeded quota: small"] = 3
    now = summary(live)
    assert "pods: 1 Pending (1 unscheduled), 1 Running, 1 Succeeded, 3 not created" in text("dev", now).splitlines()
    assert now.reasons[0] == ("Job a/train: exceeded quota: small", 3)


def test_a_fleet_without_gpus_is_about_cpu(live: Live) -> None:
    for name in [name for name, found in live.fleet.nodes.items() if found.product]:
        live.fleet.set_node(name, None)
    assert "CPU allocated" in text("dev", summary(live))
    assert "GPUs, " not in text("dev", summary(live))


def test_an_empty_cluster_is_told_as_such(live: Live) -> None:
    for name in list(live.fleet.nodes):
        live.fleet.set_node(name, None)
    assert text("dev", summary(live)).splitlines()[0].endswith(": 0 nodes, 0 GPUs")


@pytest.mark.parametrize(
    ("part", "whole", "expected"),
    [
        (0, 0, "–"),
        (0, 9, "0 %"),
        (1, 1000, "<1 %"),
        (999, 1000, ">99 %"),
        (9, 9, "100 %"),
        (12, 9, "133 %"),
        (1, 3, "33 %"),
    ],
)
def test_percent_never_hides_the_little_that_is_there_or_missing(part: int, whole: int, expected: str) -> None:
    assert percent(part, whole) == expected


@pytest.mark.parametrize(
    ("part", "whole", "expected"),
    [(0, 8, "    "), (1, 8, "▌   "), (8, 8, "████"), (1, 10_000, "▏   "), (20, 8, "████"), (1, 0, "    ")],
)
def test_a_bar_is_always_of_its_width(part: int, whole: int, expected: str) -> None:
    assert bar(part, whole, 4) == expected


@pytest.mark.parametrize(
    ("resource", "number", "expected"),
    [
        ("memory", 0, "0 B"),
        ("memory", 1360 * 2**30, "1.3 TiB"),
        ("memory", 2550 * 1360 * 2**30, "3.3 PiB"),
        ("memory", 500 * 2**30, "500 GiB"),
        ("CPU", 1500, "2"),
        ("GPUs", 20_400, "20,400"),
    ],
)
def test_amounts_have_units(resource: str, number: int, expected: str) -> None:
    assert written(resource, number) == expected


# --- the terminal ----------------------------------------------------------------------------------------------------


def shown(app: Terminal, name: str) -> str:
    return str(app.query_one(f"#{name}", Static).content)


async def test_the_terminal_shows_the_fleet_and_what_becomes_of_it(live: Live) -> None:
    app = Terminal("dev", live)
    async with app.run_test(size=(140, 40)) as pilot:
        await pilot.pause()
        assert shown(app, "head") == "dev  9 nodes (8 ready, 1 not ready), 40 GPUs, 6 allocated (15 %)"
        assert "6/40  15 % 1 ×" in shown(app, "products")
        assert app.query_one("#products").styles.border_top[0] == "round", "a panel is a box with a title"
        assert "1 Insufficient nvidia.com/gpu" in shown(app, "reasons")
        assert "kube-scheduler down: does not answer" in shown(app, "checks")
        live.fleet.set_pod("default/q", pod("q", "a1", 8), time.monotonic())
        app.draw()
        assert "14/40" in shown(app, "products")
        assert not app.query_one("#lost").display


async def test_keys_change_the_resource_and_the_theme_and_quit(live: Live) -> None:
    app = Terminal("dev", live)
    async with app.run_test(size=(140, 40)) as pilot:
        await pilot.press("c")
        assert "4/480   1 %" in shown(app, "products")
        await pilot.press("m")
        assert "64.0 GiB/6.6 TiB" in shown(app, "products")
        await pilot.press("p")
        assert "1/550" in shown(app, "products")
        dark = app.current_theme.dark
        await pilot.press("d")
        assert app.current_theme.dark != dark
        await pilot.press("q")
    assert app.return_code == 0


async def test_a_last_tick_after_the_end_draws_nothing(live: Live) -> None:
    app = Terminal("dev", live)
    async with app.run_test(size=(140, 40)) as pilot:
        await pilot.pause()
        drawn = shown(app, "head")
    app.draw()
    assert not app.is_running
    assert drawn.startswith("dev")


async def test_a_lost_cluster_is_told_with_its_remedy_and_forgotten_when_it_is_back(live: Live) -> None:
    app = Terminal("many/west", live, "To start one that is down: kumulus up many")
    async with app.run_test(size=(140, 40)) as pilot:
        live.lost, live.lost_at = Unreachable(SERVER, "connection refused"), time.monotonic() - 12
        app.draw()
        await pilot.pause()
        assert app.query_one("#lost").display
        assert re.search(r"nothing heard for \d+ s, trying again: the Kubernetes API server at", shown(app, "lost"))
        assert shown(app, "lost").splitlines()[-1] == "To start one that is down: kumulus up many"
        live.lost = None
        app.draw()
        assert not app.query_one("#lost").display


@pytest.mark.parametrize(
    "why", ["Connect call failed ('::1', 6443) [Errno 111]", "no [x=y z", "a [/b] c", "[red]b", "no [link='a] b"]
)
async def test_what_is_told_of_a_lost_cluster_is_no_markup(live: Live, why: str) -> None:
    app = Terminal("dev", live)
    async with app.run_test(size=(140, 40)) as pilot:
        live.lost = Unreachable("https://[fd00::1]:6443", why)
        app.draw()
        await pilot.pause()
        told = str(app.query_one("#lost", Static).render())
        assert "pulumi" not in told, "no remedy is known"
        assert "https://[fd00::1]:6443" in told
        assert why in told


@pytest.mark.parametrize("size", [(140, 40), (80, 24), (40, 12)])
async def test_names_that_are_too_long_are_cut_and_no_window_is_too_small(live: Live, size: tuple[int, int]) -> None:
    live.fleet.set_node("x", node("x", "a-zone-with-a-name-that-is-longer-than-any-column"))
    app = Terminal("dev", live)
    async with app.run_test(size=size) as pilot:
        await pilot.pause()
        assert "a-zone-with-a-name-that…" in shown(app, "zones")

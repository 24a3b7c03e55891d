"""The page at 10,000 nodes and 10,000 pods after an hour of 50 events a second, in a real Chromium.

``python -m benchmarks page``. There is no cluster: the fleet is filled as watches would fill it, with a clock that is
advanced by hand, so that an hour takes a minute. The page, its server and their memory are the product's.
"""

import argparse
import asyncio
import random
import shutil
import statistics
import sys
import time
from dataclasses import replace

import psutil
from playwright.async_api import Browser, CDPSession, Page, async_playwright

from benchmarks.report import Row
from kumulus.extras.watch.console import page as served_page
from kumulus.extras.watch.console.memory import Memory
from kumulus.extras.watch.live.amounts import Amounts
from kumulus.extras.watch.live.fleet import Live
from kumulus.extras.watch.live.node import NOWHERE, ClusterNode
from kumulus.extras.watch.live.pod import ClusterPod
from kumulus.kube import Client, Connection

NODES = PODS = 10_000
HOUR, RATE = 3600, 50
_WHOLE = Amounts(96_000, 2**40, 8, 110)


async def of_an_hour() -> list[Row]:
    """Time to the first picture, frame times while dragging, and the memory of page and server."""
    chromium = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if chromium is None:
        return []
    command = [sys.executable, "-m", "benchmarks.page"]
    server = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.PIPE)
    try:
        assert server.stdout is not None
        address = (await server.stdout.readline()).decode().strip()
        async with async_playwright() as playwright:
            browser = await playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox", "--disable-gpu"])
            rows = await _visit(browser, address)
            await browser.close()
        held = psutil.Process(server.pid).memory_info().rss
    finally:
        server.terminate()
        await server.wait()
    what = f"`kumulus ui` that remembers an hour of {RATE} events a second at {NODES:,} nodes"
    return [*rows, _row(what, "< 150 MB", held / 1e6, "MB", held < 150e6)]


async def _visit(browser: Browser, address: str) -> list[Row]:
    page = await browser.new_page(viewport={"width": 1440, "height": 1000})
    session = await page.context.new_cdp_session(page)
    began = time.monotonic()
    await page.goto(address, wait_until="commit")
    await _until(page, "globalThis.kumulus?.paints().length > 0 && kumulus.cells().cells.length > 0")
    first = time.monotonic() - began
    await _until(page, "kumulus.lately().all !== null")
    frames = await _dragged(page)
    heap = await _heap(session)
    rate = 1000 / statistics.mean(frames)
    size = f"{NODES:,} nodes and {PODS:,} pods"
    return [
        _row(f"first picture of {size}", "≤ 1.5 s", first, "s", first <= 1.5),
        _row(f"dragging the time line over the hour, {size}", "≥ 30 frames/s", rate, "frames/s", rate >= 30),
        _row("what the page's scripts hold after it", "< 300 MB", heap / 1e6, "MB", heap < 300e6),
    ]


async def _until(page: Page, script: str) -> None:
    # Playwright's own way of waiting needs `eval`, which the page's policy forbids.
    for _ in range(3000):
        if await page.evaluate(script):
            return
        await asyncio.sleep(0.02)
    raise RuntimeError(f"after a minute still not so: {script}")


async def _dragged(page: Page) -> list[float]:
    """The milliseconds between frames while the handle is dragged from one end to the other and back."""
    await page.evaluate(
        """() => { globalThis.shown = []; let last = performance.now();
        const step = (now) => { shown.push(now - last); last = now; watching = requestAnimationFrame(step); };
        globalThis.watching = requestAnimationFrame(step); }"""
    )
    box = await page.locator(".strip").bounding_box()
    assert box is not None
    await page.locator(".strip").scroll_into_view_if_needed()
    box = await page.locator(".strip").bounding_box()
    assert box is not None
    middle = box["y"] + box["height"] / 2
    await page.mouse.move(box["x"] + box["width"] - 2, middle)
    await page.mouse.down()
    await page.evaluate("shown.length = 0")
    for step in range(300):
        # There and back, like a user who is looking for something.
        share = 1 - abs(1 - step / 150)
        await page.mouse.move(box["x"] + box["width"] * (1 - share), middle)
    found: list[float] = await page.evaluate("() => { cancelAnimationFrame(watching); return shown; }")
    await page.mouse.up()
    return found


async def _heap(session: CDPSession) -> float:
    await session.send("HeapProfiler.collectGarbage")
    await session.send("Performance.enable")
    found = await session.send("Performance.getMetrics")
    return next(float(each["value"]) for each in found["metrics"] if each["name"] == "JSHeapUsedSize")


def _row(what: str, must: str, value: float, unit: str, passed: bool) -> Row:
    written = f"{value:,.0f} {unit}" if value >= 10 else f"{value:.2f} {unit}"
    return Row(what, must, written, passed, {"value": value})


class _Hands:
    """A clock that is advanced by hand until it is set running."""

    def __init__(self) -> None:
        self.turned, self.goes = 0.0, 0.0

    def __call__(self) -> float:
        return self.turned + (time.monotonic() - self.goes if self.goes else 0.0)


def _node(number: int) -> ClusterNode:
    zone, group = f"use{number % 3 + 1}", ("a100", "h100", "h200")[number // 3 % 3]
    name, rack = f"{group}-{zone}-{number // 9}", f"{group}-{zone}-r{number // 144}"
    return ClusterNode(name, zone, group, "", rack, "", f"NVIDIA-{group}", _WHOLE, _WHOLE, "True", False, (), (), ())


def _pod(name: str, job: str, node: str) -> ClusterPod:
    asks = Amounts(4000, 2**33, 1, 1)
    phase, reasons = ("Running", ()) if node else ("Pending", ("Insufficient nvidia.com/gpu",))
    return ClusterPod("default", name, job, node, phase, asks, reasons, 0, 0, False, job, f"team-{len(job) % 3}")


async def _serve() -> None:
    draw, hands = random.Random(20), _Hands()
    live = Live(Client(Connection("http://127.0.0.1:1", "none")), NOWHERE)
    nodes = [_node(number) for number in range(NODES)]
    for node in nodes:
        live.fleet.set_node(node.name, node)
    there = [f"train-{number}" for number in range(PODS)]
    for number, name in enumerate(there):
        live.fleet.set_pod(f"default/{name}", _pod(name, f"Job/j-{number // 50}", nodes[number].name))
    page = served_page.Page("bench", live)
    page._memory = memory = Memory("bench", live, clock=hands)
    made = PODS
    for _ in range(HOUR * RATE // 4):
        # One pod is removed; another is created, waits, and is bound: four events.
        gone = draw.randrange(PODS)
        live.fleet.set_pod(f"default/{there[gone]}", None)
        there[gone] = name = f"train-{made}"
        waits = _pod(name, f"Job/j-{made // 50}", "")
        live.fleet.set_pod(f"default/{name}", waits)
        bound = replace(waits, node=nodes[gone].name, reasons=())
        live.fleet.set_pod(f"default/{name}", bound)
        live.fleet.set_pod(f"default/{name}", replace(bound, phase="Running"))
        hands.turned += 4 / RATE
        made += 1
    memory.tick()
    hands.goes = time.monotonic()
    async with page.served() as address:
        print(address, flush=True)
        await asyncio.Event().wait()


if __name__ == "__main__":
    argparse.ArgumentParser(
        prog="python -m benchmarks.page", description="Serve the page for the scenario."
    ).parse_args()
    asyncio.run(_serve())

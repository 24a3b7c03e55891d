"""Take the pictures of docs/console.md from a stack that is up.

    python -m benchmarks.console_pictures STACK [PREFIX]

They are written to docs/pictures/: the page as a map, light and dark, with a node open, as a table, and the terminal.
"""

from __future__ import annotations

import argparse
import asyncio
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, Page

from kumulus.cli import cluster
from kumulus.extras.watch.commands import look
from kumulus.extras.watch.console.terminal import Terminal
from tests.support.browser import chromium, until
from tests.support.project import ROOT

PICTURES = ROOT / "docs" / "pictures"
SIZE: Any = {"width": 1280, "height": 860}
_SETTLED_MS = 1500


def main() -> None:
    """Take them all."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("stack")
    parser.add_argument("prefix", nargs="?", default="console")
    args = parser.parse_args()
    terminal = asyncio.run(_terminal(args.stack))
    command = [sys.executable, str(ROOT / "kumulus"), "ui", "-s", args.stack]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        assert server.stdout is not None
        address = server.stdout.readline().split(": ", 1)[1].strip()
        with chromium() as browser:
            for scheme in ("light", "dark"):
                _page(browser, address, scheme, args.prefix)
            _draw(browser, terminal, PICTURES / f"{args.prefix}-terminal.png")
    finally:
        server.terminate()
        server.wait()


async def _terminal(stack: str) -> str:
    """The terminal's screen after a while, as SVG."""
    parser = argparse.ArgumentParser()
    cluster.add_arguments(parser)
    found = cluster.named(parser.parse_args(["-s", stack]))
    async with look.live(found) as live:
        app = Terminal(found.name, live)
        async with app.run_test(size=(132, 34)) as pilot:
            await pilot.pause(12)
            return app.export_screenshot(title=f"kumulus watch -s {stack}")


def _page(browser: Browser, address: str, scheme: Any, prefix: str) -> None:
    with browser.new_context(viewport=SIZE, color_scheme=scheme) as context:
        page = context.new_page()
        page.goto(address)
        until(page, "globalThis.kumulus?.cells().cells.length > 0")
        page.wait_for_timeout(_SETTLED_MS)
        page.screenshot(path=PICTURES / f"{prefix}-{scheme}.png")
        if scheme == "light":
            page.get_by_role("radio", name="Table").check()
            page.wait_for_timeout(_SETTLED_MS)
            page.screenshot(path=PICTURES / f"{prefix}-table.png")
            return
        page.get_by_role("radio", name="Condition").check()
        _open_ill(page)
        page.wait_for_timeout(_SETTLED_MS)
        page.screenshot(path=PICTURES / f"{prefix}-node.png")


def _open_ill(page: Page) -> None:
    """Open the first node that is faulted, by keys."""
    page.locator("#canvas").focus()
    page.keyboard.press("Home")
    name = page.evaluate("kumulus.firstIn('faulted')")
    for _ in range(page.evaluate("name => kumulus.cells().cells.findIndex((cell) => cell.name === name)", name)):
        page.keyboard.press("ArrowRight")
    page.keyboard.press("Enter")


def _draw(browser: Browser, svg: str, file: Path) -> None:
    with browser.new_context(viewport={"width": 1200, "height": 900}) as context:
        page = context.new_page()
        # The picture names a web font, which is not fetched: a local one will do.
        svg = re.sub(r"@font-face \{.*?\}", "", svg, flags=re.DOTALL)
        page.set_content(f"<body style='margin:0'><div style='width:1180px'>{svg}</div></body>")
        page.locator("div").screenshot(path=file)


if __name__ == "__main__":
    main()

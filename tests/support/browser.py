"""A real Chromium for tests of pages.

It is Debian's package ``chromium``, or another one on PATH; nothing is downloaded. Without it the tests are skipped
with a message, or fail if KUMULUS_REQUIRE_BROWSER is set, as in CI.
"""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from playwright.sync_api import Browser, Page, sync_playwright

REQUIRED = "KUMULUS_REQUIRE_BROWSER"
_NAMES = ("chromium", "chromium-browser", "google-chrome")
_ARGUMENTS = [
    # Chromium's own network services would contact the internet, which a test must not do.
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-quic",
    "--no-first-run",
    "--disable-gpu",
]


@contextmanager
def chromium() -> Iterator[Browser]:
    """Start a headless Chromium; skips or fails the test when there is none."""
    path = next(filter(None, map(shutil.which, _NAMES)), None)
    if path is None:
        told = "no Chromium on PATH: apt install chromium (Debian), or any package that puts chromium there"
        if os.environ.get(REQUIRED):
            pytest.fail(told)
        pytest.skip(told)
    # Chromium does not run sandboxed as root.
    arguments = [*_ARGUMENTS, *(["--no-sandbox"] if os.geteuid() == 0 else [])]
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=arguments)
        try:
            yield browser
        finally:
            browser.close()


def until(page: Page, script: str, seconds: float = 15) -> None:
    """Wait until an expression is true; Playwright's own way needs ``eval``, which the page's policy forbids."""
    for _ in range(round(seconds * 20)):
        if page.evaluate(script):
            return
        page.wait_for_timeout(50)
    raise AssertionError(f"after {seconds:.0f} s still not so: {script}")

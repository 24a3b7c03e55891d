"""Write the pages of recorded runs in docs/runs, and draw their pictures in a headless Chromium.

``python -m benchmarks.run_pages NAME RUN [RUN2]`` writes one again from runs' ``history-1.json.gz``;
``python -m benchmarks.run_pages`` renews them all from what they hold themselves, after the page has changed.
"""

import argparse
import json
import re
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from playwright.sync_api import sync_playwright

from kumulus.extras.watch.console import bundle
from kumulus.extras.watch.history.document import History, history_from, load

_DOCS = Path(__file__).resolve().parents[1] / "docs"
PAGES = _DOCS / "runs"
_DATA = re.compile(r'<script type="application/json">(.*?)</script>', re.DOTALL)


class Picture(NamedTuple):
    """The moment to draw: milliseconds, the selected job, and the theme."""

    at: int
    job: str = ""
    scheme: str = "light"


PICTURES = {
    "zone-affinity-and-gangs": Picture(60_000),
    "rack-fails": Picture(50_000),
    "halves-of-racks": Picture(30_000, "slices-1", "dark"),
    "autoscaler": Picture(50_000),
}


def histories(page: Path) -> list[History]:
    """The runs that a page holds."""
    found = _DATA.findall(page.read_text(encoding="utf-8"))
    return [history_from(json.loads(each), str(page)) for each in found]


def write(name: str, runs: Sequence[History]) -> None:
    """Write a page."""
    PAGES.mkdir(exist_ok=True)
    (PAGES / f"{name}.html").write_text(bundle.page(runs), encoding="utf-8")


def draw(name: str, picture: Picture) -> None:
    """Draw a page's picture."""
    chromium = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))))
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox", "--disable-gpu"])
        context = browser.new_context(
            viewport={"width": 1440, "height": 1020},
            color_scheme="dark" if picture.scheme == "dark" else "light",
        )
        page = context.new_page()
        page.goto((PAGES / f"{name}.html").as_uri())
        page.evaluate("at => kumulus.seek(at)", picture.at)
        if picture.job:
            page.evaluate("job => kumulus.choose(job)", picture.job)
        # The tables are updated a few times a second.
        page.wait_for_timeout(1500)
        page.screenshot(path=_DOCS / "pictures" / f"run-{name}.png")
        browser.close()


def main() -> None:
    """Write and draw the page that the command line names, or all of them again."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.run_pages", description=__doc__)
    parser.add_argument("name", nargs="?", choices=sorted(PICTURES))
    parser.add_argument("runs", nargs="*", type=Path, help="directories of runs")
    args = parser.parse_args()
    for name in [args.name] if args.name else [each for each in PICTURES if (PAGES / f"{each}.html").exists()]:
        runs = [load(run / "history-1.json.gz") for run in args.runs] or histories(PAGES / f"{name}.html")
        write(name, runs)
        draw(name, PICTURES[name])
        print(f"wrote docs/runs/{name}.html and docs/pictures/run-{name}.png")


if __name__ == "__main__":
    main()

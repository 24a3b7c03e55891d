"""Draw pictures of the pages of the runs in docs/runs, in a headless Chromium; the site has the pages.

``python -m benchmarks.run_pages NAME RUN [RUN2]`` keeps runs' ``history-1.json.gz`` and draws their page;
``python -m benchmarks.run_pages`` draws all again, after the page has changed.
"""

import argparse
import shutil
import tempfile
from pathlib import Path
from typing import NamedTuple

from playwright.sync_api import sync_playwright

from kumulus.extras.watch.console import bundle
from kumulus.extras.watch.history.document import History, load, save

_DOCS = Path(__file__).resolve().parents[1] / "docs"
RUNS = _DOCS / "runs"


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


def histories(name: str) -> list[History]:
    """The runs of a page: one, or two to be shown side by side."""
    return [load(each) for each in sorted(RUNS.glob(f"{name}-[12].json.gz"))]


def draw(name: str, picture: Picture) -> None:
    """Draw a page's picture."""
    chromium = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))))
    with sync_playwright() as playwright, tempfile.TemporaryDirectory() as folder:
        file = Path(folder, f"{name}.html")
        file.write_text(bundle.page(histories(name)), encoding="utf-8")
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox", "--disable-gpu"])
        context = browser.new_context(
            viewport={"width": 1440, "height": 1020},
            color_scheme="dark" if picture.scheme == "dark" else "light",
        )
        page = context.new_page()
        page.goto(file.as_uri())
        page.evaluate("at => kumulus.seek(at)", picture.at)
        if picture.job:
            page.evaluate("job => kumulus.choose(job)", picture.job)
        # The tables are updated a few times a second.
        page.wait_for_timeout(1500)
        page.screenshot(path=_DOCS / "pictures" / f"run-{name}.png")
        browser.close()


def main() -> None:
    """Draw the page that the command line names, or all of them again."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.run_pages", description=__doc__)
    parser.add_argument("name", nargs="?", choices=sorted(PICTURES))
    parser.add_argument("runs", nargs="*", type=Path, help="directories of runs")
    args = parser.parse_args()
    for number, run in enumerate(args.runs, 1):
        save(load(run / "history-1.json.gz"), RUNS / f"{args.name}-{number}.json.gz")
    for name in [args.name] if args.name else PICTURES:
        draw(name, PICTURES[name])
        print(f"wrote docs/pictures/run-{name}.png")


if __name__ == "__main__":
    main()

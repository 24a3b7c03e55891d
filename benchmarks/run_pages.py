"""Draw pictures of the pages of the runs in docs/runs, in a headless Chromium; the site has the pages.

``python -m benchmarks.run_pages NAME RUN [RUN2]`` keeps runs' ``history-1.json.gz`` and draws their page;
``python -m benchmarks.run_pages`` draws all again, after the page has changed. ``python -m benchmarks.run_pages NAME
RUN+RUN+RUN RUN+RUN …`` keeps the reports of runs for a page that compares them, as `experiment compare --page` does.
"""

import argparse
import gzip
import json
import shutil
import tempfile
from pathlib import Path
from typing import NamedTuple

from playwright.sync_api import sync_playwright

from kumulus.extras.lab.report.files import report_at
from kumulus.extras.lab.report.model import FILE
from kumulus.extras.watch.console import bundle
from kumulus.extras.watch.history.document import History, load, save

_DOCS = Path(__file__).resolve().parents[1] / "docs"
RUNS = _DOCS / "runs"


class Picture(NamedTuple):
    """The moment to draw: milliseconds, the selected job, and the theme."""

    at: int
    job: str = ""
    scheme: str = "light"


COMPARISONS = ("six-schedulers",)
PICTURES = {
    "zone-affinity-and-gangs": Picture(60_000),
    "rack-fails": Picture(50_000),
    "halves-of-racks": Picture(30_000, "slices-1", "dark"),
    "autoscaler": Picture(50_000),
}


def histories(name: str) -> list[History]:
    """The runs of a page: one, or two to be shown side by side."""
    return [load(each) for each in sorted(RUNS.glob(f"{name}-[12].json.gz"))]


def keep(name: str, columns: list[str]) -> None:
    """Keep the runs of a comparison: of each column, the directories that `+` joins."""
    runs = [[report_at(Path(run, FILE)).lean().model_dump(mode="json") for run in each.split("+")] for each in columns]
    (RUNS / f"{name}.reports.gz").write_bytes(gzip.compress(json.dumps(runs).encode(), mtime=0))


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
    """Keep or draw what the command line names, or draw all pages again."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.run_pages", description=__doc__)
    parser.add_argument("name", nargs="?", choices=sorted((*COMPARISONS, *PICTURES)))
    parser.add_argument("runs", nargs="*", help="directories of runs")
    args = parser.parse_args()
    if args.name in COMPARISONS:
        keep(args.name, args.runs)
        return
    for number, run in enumerate(args.runs, 1):
        save(load(Path(run, "history-1.json.gz")), RUNS / f"{args.name}-{number}.json.gz")
    for name in [args.name] if args.name else PICTURES:
        draw(name, PICTURES[name])
        print(f"wrote docs/pictures/run-{name}.png")


if __name__ == "__main__":
    main()

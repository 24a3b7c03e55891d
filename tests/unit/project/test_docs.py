"""README and docs: every link leads somewhere, every page is in the index, every block of commands is marked."""

import gzip
import json
import re
import subprocess
import sys
from functools import cache
from itertools import pairwise
from pathlib import Path
from urllib.parse import unquote

import pytest

from benchmarks import run_pages
from benchmarks.pages import layers, needed, with_rooms
from kumulus.extras.lab.report.compare import table
from kumulus.extras.lab.report.files import report_at
from kumulus.extras.lab.report.model import Report
from kumulus.extras.lab.report.together import together
from kumulus.extras.watch.console import bundle
from tests.support.docs import pages, steps
from tests.support.docs.pages import DOCS, README, ROOT

PAGES = pages.pages()
DECISIONS = DOCS / "decisions"
DECIDED = [page for page in PAGES if page.parent == DECISIONS and page.name != "README.md"]
STATUS = re.compile(r"^\d{4}-\d\d-\d\d · (Accepted|Superseded by \[[^\]]+\]\([^)]+\.md\))( · .+)?$")


def named(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


@cache
def anchors(page: Path) -> set[str]:
    return pages.anchors(page)


@pytest.mark.parametrize("page", PAGES, ids=named)
def test_every_relative_link_and_anchor_leads_somewhere(page: Path) -> None:
    astray = []
    for line, target in pages.links(page):
        path, _, anchor = target.partition("#")
        if re.match(r"[a-z]+:", target):
            continue
        file = (page.parent / unquote(path)).resolve() if path else page
        if not file.exists() or (anchor and anchor not in anchors(file)):
            astray.append(f"{named(page)}:{line}: {target}")
    assert astray == []


@pytest.mark.parametrize("page", [page for page in PAGES if page.name != "CHANGELOG.md"], ids=named)
def test_every_file_of_the_project_that_is_named_is_there(page: Path) -> None:
    paths = re.findall(r"`((?:src/kumulus|tests|benchmarks|components|docs)/[^`\s]+)`", page.read_text())
    patterns = [path for path in paths if not re.search(r"NAME|[<{*…]", path)]
    assert [path for path in patterns if not (ROOT / path).exists()] == []


def test_the_readme_fits_two_screens() -> None:
    assert len(README.read_text().splitlines()) <= 120


def test_a_program_of_ones_own_has_the_ten_lines_that_its_page_says() -> None:
    assert len((ROOT / "examples" / "own-program" / "__main__.py").read_text().splitlines()) <= 12


def test_every_page_is_in_the_index() -> None:
    for index, below in ((DOCS / "README.md", DOCS.glob("*.md")), (DECISIONS / "README.md", DECISIONS.glob("*.md"))):
        linked = {(index.parent / target.partition("#")[0]).resolve() for _, target in pages.links(index)}
        assert {named(page) for page in below if page != index and page not in linked} == set()


def test_a_newcomer_finds_every_page_from_the_readme() -> None:
    found, waiting = set[Path](), [README]
    while waiting:
        page = waiting.pop()
        if page not in found:
            found.add(page)
            targets = ((page.parent / target.partition("#")[0]).resolve() for _, target in pages.links(page))
            waiting += [target for target in targets if target.suffix == ".md" and target.exists()]
    assert {named(page) for page in PAGES} - {named(page) for page in found if ROOT in page.parents} == set()


@pytest.mark.parametrize("page", PAGES, ids=named)
def test_every_block_of_commands_is_run_or_says_why_not(page: Path) -> None:
    problems = {block.place: steps.marker_problem(block) for block in pages.blocks(page)}
    assert {place: problem for place, problem in problems.items() if problem} == {}


@pytest.mark.parametrize("page", PAGES, ids=named)
def test_code_is_fenced(page: Path) -> None:
    indented = re.compile(r"^ {4,}\S")
    lines = list(pages.prose(page))
    blocks = [
        f"{named(page)}:{number}"
        for (_, above), (number, line) in pairwise(lines)
        if indented.match(line) and not above.strip()
    ]
    assert blocks == []


@pytest.mark.parametrize("page", DECIDED, ids=named)
def test_a_decision_has_a_title_a_date_and_a_status_and_the_index_says_the_same(page: Path) -> None:
    title, blank, status, after, *_ = page.read_text().splitlines()
    assert title.startswith("# ")
    assert (blank, after) == ("", "")
    assert STATUS.match(status), status
    date, state, *_ = status.split(" · ")
    rows = (DECISIONS / "README.md").read_text().splitlines()
    assert rows.count(f"| {date} | [{title.removeprefix('# ')}]({page.name}) | {state} |") == 1


def test_the_picture_of_the_rooms_is_that_of_the_contract_and_the_imports() -> None:
    text = (ROOT / "ARCHITECTURE.md").read_text()
    assert with_rooms(text) == text, "run: python -m benchmarks.pages"


def test_the_architecture_has_a_row_for_every_room() -> None:
    rows = re.findall(r"^\| `(\w+)` \|", (ROOT / "ARCHITECTURE.md").read_text(), re.MULTILINE)
    rooms = [room for layer in layers() for room in layer]
    extras = [path.parent.name for path in (ROOT / "src" / "kumulus" / "extras").glob("*/__init__.py")]
    assert sorted(rows) == sorted([*(room for room in rooms if room != "extras"), *extras])


def test_arrows_that_follow_from_others_are_left_out() -> None:
    assert needed({("a", "b"), ("b", "c"), ("a", "c"), ("d", "c")}) == [("a", "b"), ("b", "c"), ("d", "c")]


def test_the_licence_is_said_where_packages_say_it() -> None:
    assert "Apache License" in (ROOT / "LICENSE").read_text()
    settings = (ROOT / "pyproject.toml").read_text()
    assert 'license = "Apache-2.0"' in settings
    assert 'license-files = ["LICENSE", "NOTICE"]' in settings


def test_the_site_is_built_without_a_warning_and_its_path_is_short(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "mkdocs", "build", "--site-dir", str(tmp_path)]
    built = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert built.returncode == 0, built.stderr
    assert (tmp_path / "start" / "index.html").exists()
    runs = {each.stem: each.read_text() for each in (tmp_path / "runs").glob("*.html")}
    [comparison] = run_pages.COMPARISONS
    compared = runs[comparison]
    assert runs == {name: bundle.page(run_pages.histories(name)) for name in run_pages.PICTURES} | {
        comparison: compared
    }
    assert "<th>makespan</th>" in compared
    of_runs = re.findall(r'"path": "([^"]+)"', compared)
    assert [report_at(tmp_path / "runs" / each).metadata.run_id for each in of_runs] == [
        Path(each).parent.name for each in of_runs
    ]
    experiments = (tmp_path / "experiments" / "index.html").read_text()
    assert all(f'href="../runs/{name}.html"' in experiments for name in runs)
    navigation = (ROOT / "mkdocs.yml").read_text().partition("\nnav:\n")[2]
    path, internals, _ = navigation.partition("\n  - Internals:")
    assert internals
    # And the index.
    assert len(re.findall(r"\.md$", path, re.MULTILINE)) <= 25 + 1


def test_the_table_of_six_schedulers_has_the_figures_of_their_page() -> None:
    text = (ROOT / "docs" / "experiments.md").read_text().partition("### The same jobs on six schedulers")[2]
    lines = text.partition("```text\n")[2].partition("```")[0].splitlines()[1:]
    said = {name: cells for name, *cells in (re.split(r" {2,}", line) for line in lines)}
    ranges = said.pop("")
    runs = json.loads(gzip.decompress((run_pages.RUNS / "six-schedulers.reports.gz").read_bytes()))
    reports = [together([Report.model_validate(run) for run in column]) for column in runs]
    found = {name: cells for name, *cells in table(reports) if name in said}
    assert said == {name: [cell.partition(" (")[0] for cell in cells] for name, cells in found.items()}
    assert [cell.partition(" (")[2] for cell in found["makespan"]] == [
        f"{each.replace(' …', ' s …')})" if "…" in each else "" for each in ranges
    ]

"""What the site does that the pages as files do not need: pages of recorded runs, and links to what is not in it."""

import gzip
import json
import posixpath
import re
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File

from kumulus.extras.lab.report.history import compared
from kumulus.extras.lab.report.model import FILE, Report
from kumulus.extras.watch.console.bundle import page as page_of
from kumulus.extras.watch.history.document import load
from kumulus.host.version import REPOSITORY

_LINK = re.compile(r"\]\((?P<path>[^)#:\s]+)(?P<anchor>#[^)\s]*)?\)")
_RUN = re.compile(r"runs/(?P<name>.+)-(?P<number>[0-9])\.json\.gz")
_COMPARED = re.compile(r"runs/(?P<name>.+)\.reports\.gz")


def on_config(config: Any) -> None:
    """MkDocs calls it with the settings of mkdocs.yml."""
    config.repo_url = REPOSITORY


def on_files(files: Any, *, config: Any) -> None:
    """MkDocs calls it with the files of the site: the page of runs takes the place of their data."""
    runs: dict[str, list[File]] = {}
    for each in sorted(files, key=lambda file: str(file.src_uri)):
        if found := _RUN.fullmatch(each.src_uri):
            runs.setdefault(found["name"], []).append(each)
        if found := _COMPARED.fullmatch(each.src_uri):
            files.remove(each)
            columns = reports(Path(config.docs_dir, each.src_uri))
            near = [[(f"{run.metadata.run_id}/{FILE}", run) for run in column] for column in columns]
            files.append(File.generated(config, f"runs/{found['name']}.html", content=compared(near, Path("runs"))))
            for place, run in (run for column in near for run in column):
                files.append(File.generated(config, f"runs/{place}", content=run.model_dump_json(indent=1)))
    for name, recorded in runs.items():
        for each in recorded:
            files.remove(each)
        made = page_of([load(Path(config.docs_dir, each.src_uri)) for each in recorded])
        files.append(File.generated(config, f"runs/{name}.html", content=made))


def reports(file: Path) -> list[list[Report]]:
    """The runs of a comparison: for each column, those that are its repetitions."""
    return [[Report.model_validate(run) for run in column] for column in json.loads(gzip.decompress(file.read_bytes()))]


def on_page_markdown(markdown: str, *, page: Any, config: Any, files: Any) -> str:
    """MkDocs calls it with each page's text."""
    folder = posixpath.dirname(page.file.src_uri)

    def absolute(link: re.Match[str]) -> str:
        path = posixpath.normpath(posixpath.join(folder, link["path"]))
        if run := _RUN.fullmatch(path) or _COMPARED.fullmatch(path):
            return f"](runs/{run['name']}.html)"
        there = files.get_file_from_path(path)
        if there is not None and not there.inclusion.is_excluded():
            return link[0]
        place = posixpath.normpath(posixpath.join("docs", path))
        return f"]({config.repo_url}/blob/main/{place}{link['anchor'] or ''})"

    return _LINK.sub(absolute, markdown)

"""What the site does that the pages as files do not need: the repository, for links to what is not in it."""

import posixpath
import re
from typing import Any

from kumulus.host.version import REPOSITORY

_LINK = re.compile(r"\]\((?P<path>[^)#:\s]+)(?P<anchor>#[^)\s]*)?\)")


def on_config(config: Any) -> None:
    """MkDocs calls it with the settings of mkdocs.yml."""
    config.repo_url = REPOSITORY


def on_page_markdown(markdown: str, *, page: Any, config: Any, files: Any) -> str:
    """MkDocs calls it with each page's text."""
    folder = posixpath.dirname(page.file.src_uri)

    def absolute(link: re.Match[str]) -> str:
        path = posixpath.normpath(posixpath.join(folder, link["path"]))
        there = files.get_file_from_path(path)
        if there is not None and not there.inclusion.is_excluded():
            return link[0]
        place = posixpath.normpath(posixpath.join("docs", path))
        return f"]({config.repo_url}/blob/main/{place}{link['anchor'] or ''})"

    return _LINK.sub(absolute, markdown)

"""Where Kumulus is published. Assumed until it is: these names stand here, and in mkdocs.yml, alone."""

from __future__ import annotations

REPOSITORY = "https://github.com/kumulus-io/kumulus"

NPM_PACKAGE = "@kumulus/kumulus"


def page_address(page: str) -> str:
    """The address of a page of docs/, such as ``faults.md``."""
    return f"{REPOSITORY}/blob/main/docs/{page}"

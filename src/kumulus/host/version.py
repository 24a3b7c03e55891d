"""Kumulus' version, of the package and of the provider plugin, and where Kumulus is published.

Also the number of the format in which it writes states and clusters' folders: a version that finds a later format does
nothing.
"""

from collections.abc import Mapping
from typing import Any

VERSION = "0.1.0"

EARLIER: tuple[str, ...] = ()
"""The releases before this one, the latest last: where a state names their plugin, this version stands in for it."""

FORM = 1
"""Incremented by each version whose states or folders an earlier one would misread."""

_FORM, _VERSION = "form", "version"


def stamp() -> dict[str, str]:
    """The version and format that are stored with what this version writes."""
    return {_VERSION: VERSION, _FORM: str(FORM)}


def unstamped(written: Mapping[str, str]) -> dict[str, str]:
    """The stored values, without the stamp."""
    return {key: value for key, value in written.items() if key not in (_VERSION, _FORM)}


def too_new(written: Mapping[str, Any]) -> str:
    """Why this version must not work with stamped values, worded to follow their name; empty if it may."""
    form = str(written.get(_FORM) or "")
    if not form.isdigit() or int(form) <= FORM:
        return ""
    other = str(written.get(_VERSION) or "a later version")
    return (
        f"was written by Kumulus {other}, in a form ({form}) that this one, Kumulus {VERSION}, does not know (it knows "
        f"up to {FORM}); nothing was changed. Work on it with Kumulus {other} or later"
    )


REPOSITORY = "https://github.com/kumulus-io/kumulus"

NPM_PACKAGE = "@kumulus/kumulus"

NUGET_NAMESPACE = "Kumulus"

GO_MODULE = f"{REPOSITORY.removeprefix('https://')}/sdk/go/kumulus"


def page_address(page: str) -> str:
    """The address of a page of docs/, such as ``faults.md``."""
    return f"{REPOSITORY}/blob/main/docs/{page}"

"""Kumulus' version: of the package, and of its provider plugin, which programs ask Pulumi's engine for.

And the form of what it leaves in states and in clusters' folders: a version that comes upon a later form does nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

VERSION = "0.1.0"
EARLIER: tuple[str, ...] = ()
"""The versions released before: states that they left name their plugin, and this one's looks after what they made."""

FORM = 1
"""One more than before, from the version on whose states or folders an earlier one would misread."""

_FORM, _VERSION = "form", "version"


def stamp() -> dict[str, str]:
    """What is left beside what this version writes, for others to know it by."""
    return {_VERSION: VERSION, _FORM: str(FORM)}


def unstamped(written: Mapping[str, str]) -> dict[str, str]:
    """What was written, without the stamp."""
    return {key: value for key, value in written.items() if key not in (_VERSION, _FORM)}


def too_new(written: Mapping[str, Any]) -> str:
    """Why this version must not work with what carries a stamp, in words that follow its name; empty when it may.

    Args:
        written: what was written, stamp included; what has none is of the first form.
    """
    form = str(written.get(_FORM) or "")
    if not form.isdigit() or int(form) <= FORM:
        return ""
    other = str(written.get(_VERSION) or "a later version")
    return (
        f"was written by Kumulus {other}, in a form ({form}) that this one, Kumulus {VERSION}, does not know (it knows "
        f"up to {FORM}); nothing was changed. Work on it with Kumulus {other} or later"
    )

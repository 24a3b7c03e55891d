"""Comparing versions: `1.35.4`, `v1.35.4`, and ranges such as `>=3.6.0,<3.7.0`."""

from __future__ import annotations

import operator
import re

_VERSION = re.compile(r"v?(\d+(?:\.\d+)*)(-[0-9A-Za-z.-]+)?(\+[0-9A-Za-z.-]+)?")
_COMPARISONS = {">=": operator.ge, "<=": operator.le, "==": operator.eq, ">": operator.gt, "<": operator.lt}


def normal(version: str) -> str:
    """The version without the leading `v` that some tools print and others do not."""
    return version.strip().removeprefix("v")


def numbers(version: str) -> tuple[int, ...]:
    """The numeric part, at least three numbers long.

    Raises:
        ValueError: this is not a version.
    """
    match = _VERSION.fullmatch(version.strip())
    if match is None:
        raise ValueError(f"{version!r} is not a version")
    parts = tuple(int(part) for part in match[1].split("."))
    return parts + (0,) * (3 - len(parts))


def is_version(text: str) -> bool:
    """Whether this is a version, in its numeric part at least."""
    return _VERSION.fullmatch(text.strip()) is not None


def satisfies(version: str, accepts: str) -> bool:
    """Whether a version is in a range; a pre-release (`1.35.0-rc.1`) never is, and build metadata is ignored."""
    match = _VERSION.fullmatch(version.strip())
    if match is None or match[2] is not None:
        return False
    actual = numbers(version)
    for comparison in accepts.split(","):
        sign = next(sign for sign in _COMPARISONS if comparison.strip().startswith(sign))
        if not _COMPARISONS[sign](actual, numbers(comparison.strip().removeprefix(sign))):
            return False
    return True

"""Compare two property values; the differences are named by Pulumi's property paths."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any, Literal

Kind = Literal["add", "delete", "update", "add-replace", "delete-replace", "update-replace"]
_PLAIN_KEY = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")
_STEP = re.compile(r'\["((?:[^"\\]|\\.)*)"\]|([^.\[\]]+)')


@dataclass(frozen=True)
class PropertyDifference:
    """One entry of a detailed diff."""

    path: str
    """Property path in Pulumi's notation, such as ``capacity["nvidia.com/gpu"]``."""
    kind: Kind
    """What happens to it; the ``-replace`` kinds force a replacement of the resource."""

    @property
    def replaces(self) -> bool:
        """Whether this entry forces a replacement."""
        return self.kind.endswith("-replace")


def join(path: str, key: str) -> str:
    """Append a map key to a property path: ``a.b``, or ``a["x.io/y"]`` where the key needs quoting."""
    if _PLAIN_KEY.match(key):
        return f"{path}.{key}" if path else key
    escaped = key.replace("\\", "\\\\").replace('"', '\\"')
    return f'{path}["{escaped}"]'


def covers(pattern: str, path: str) -> bool:
    """Whether a property path matches a pattern, as in ``ignoreChanges``, or lies below it; ``*`` is any key."""
    wanted, steps = _steps(pattern), _steps(path)
    return 0 < len(wanted) <= len(steps) and all(want in ("*", have) for want, have in zip(wanted, steps, strict=False))


def _steps(path: str) -> list[str]:
    """The keys of a property path: ``a.b``, ``a["b"]`` and ``["a"].b`` are the same."""
    return [
        plain or re.sub(r"\\(.)", r"\1", quoted) for quoted, plain in (step.groups("") for step in _STEP.finditer(path))
    ]


def differences(
    path: str, old: Any, new: Any, *, replace: bool = False, deep: bool = False
) -> list[PropertyDifference]:
    """Return the differences between two values, descending into maps.

    Args:
        path: the property path of both values.
        old: the recorded value; None when absent.
        new: the wanted value; None when absent. An unknown differs from everything.
        replace: whether a difference forces a replacement.
        deep: whether to descend into lists too, matching items by index; otherwise lists are compared as a whole.
    """
    if isinstance(old, Mapping) and isinstance(new, Mapping):
        found: list[PropertyDifference] = []
        for key in sorted({*old, *new}):
            found += differences(join(path, key), old.get(key), new.get(key), replace=replace, deep=deep)
        return found
    if deep and isinstance(old, list) and isinstance(new, list):
        pairs = zip_longest(old, new)
        return [
            each
            for index, (one, other) in enumerate(pairs)
            for each in differences(f"{path}[{index}]", one, other, replace=replace, deep=deep)
        ]
    if old == new:
        return []
    kind: Kind
    if old is None:
        kind = "add-replace" if replace else "add"
    elif new is None:
        kind = "delete-replace" if replace else "delete"
    else:
        kind = "update-replace" if replace else "update"
    return [PropertyDifference(path, kind)]

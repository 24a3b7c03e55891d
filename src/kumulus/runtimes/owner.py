"""Who made a cluster, as the note beside its files and the stack's state have it: one line of JSON.

It says what people know a stack by (its name, the resource, the program's directory), and the stack's identity. Where
both have one, that decides: a project that was moved or a stack that was renamed is the same, and another checkout of
the same project is another. Earlier versions wrote none; then all the rest has to be the same.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from kumulus.model.identity import Owner
from kumulus.runtimes.place import Place

_IDENTITY = "stackId"


def owner(stack: str, urn: str, program: str, identity: str = "") -> str:
    """Write it.

    Args:
        stack: the stack's name.
        urn: the Cluster's.
        program: the program's directory.
        identity: the stack's; empty where it has none.
    """
    marked = {_IDENTITY: identity} if identity else {}
    return json.dumps({"stack": stack, "urn": urn, "program": program, **marked}, sort_keys=True)


def identified(written: str, identity: str) -> str:
    """What was written of an owner, with the stack's identity."""
    known = _read(written)
    return json.dumps({**known, _IDENTITY: identity}, sort_keys=True) if known and identity else written


def identity_of(written: str) -> str:
    """The identity in what was written; empty where there is none."""
    return str(_read(written).get(_IDENTITY) or "")


def same(one: str, other: str) -> bool:
    """Whether two that were written are the same owner."""
    if one == other:
        return True
    first, second = _read(one), _read(other)
    if first.get(_IDENTITY) and second.get(_IDENTITY):
        return bool(first[_IDENTITY] == second[_IDENTITY])
    return bool(first) and {**first, _IDENTITY: ""} == {**second, _IDENTITY: ""}


def described(written: str) -> str:
    """The owner in a message: the stack and its program's directory; what was written, where it says neither."""
    known = _read(written)
    return f"the stack {known['stack']} of {known['program']}" if {"stack", "program"} <= known.keys() else written


def beside(kubeconfig: Path) -> Owner:
    """The stack whose cluster a kubeconfig is of, by the note in its folder; nobody where there is none."""
    written = Place(kubeconfig.parent).note().get("owner", "")
    return Owner(identity_of(written), str(_read(written).get("stack") or ""))


def _read(written: str) -> dict[str, Any]:
    try:
        found = json.loads(written)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}

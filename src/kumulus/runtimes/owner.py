"""The owner of a cluster, as written in the note beside its files and in the stack's state: one line of JSON.

It has what people know a stack by (its name, the resource, the program's directory), and the stack's identity. If two
owners both have an identity, it decides: a moved project or a renamed stack is the same owner, and another checkout of
the same project is another one. If one has none, all the rest has to be the same.
"""

import json
from pathlib import Path
from typing import Any

from kumulus.model.identity import Owner
from kumulus.runtimes.place import Place

_IDENTITY = "stackId"


def owner(stack: str, urn: str, program: str, identity: str = "") -> str:
    """Write an owner.

    Args:
        identity: the stack's identity; empty where it has none.
    """
    marked = {_IDENTITY: identity} if identity else {}
    return json.dumps({"stack": stack, "urn": urn, "program": program, **marked}, sort_keys=True)


def identified(written: str, identity: str) -> str:
    """A written owner, with the stack's identity added."""
    known = _read(written)
    return json.dumps({**known, _IDENTITY: identity}, sort_keys=True) if known and identity else written


def identity_of(written: str) -> str:
    """The identity in a written owner; empty where there is none."""
    return str(_read(written).get(_IDENTITY) or "")


def same(one: str, other: str) -> bool:
    """Whether two written owners are the same."""
    if one == other:
        return True
    first, second = _read(one), _read(other)
    if first.get(_IDENTITY) and second.get(_IDENTITY):
        return bool(first[_IDENTITY] == second[_IDENTITY])
    return bool(first) and {**first, _IDENTITY: ""} == {**second, _IDENTITY: ""}


def described(written: str) -> str:
    """The owner in a message: the stack and its program's directory, or the text itself if it lacks one of these."""
    known = _read(written)
    return f"the stack {known['stack']} of {known['program']}" if {"stack", "program"} <= known.keys() else written


def stack_and_program(written: str) -> tuple[str, str]:
    """The stack's name, and the directory of its program; empty where the owner does not say."""
    known = _read(written)
    return str(known.get("stack") or ""), str(known.get("program") or "")


def cluster_owner(kubeconfig: Path) -> Owner:
    """The stack that owns a kubeconfig's cluster, by the note in its folder; an empty owner without a note."""
    written = Place(kubeconfig.parent).note().get("owner", "")
    return Owner(identity_of(written), str(_read(written).get("stack") or ""))


def _read(written: str) -> dict[str, Any]:
    try:
        found = json.loads(written)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}

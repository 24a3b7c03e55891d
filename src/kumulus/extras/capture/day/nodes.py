"""Cordons and drains, from requests that change nodes.

A recorded patch is applied to the known state of an object, if the answer was not recorded. The log does not say which
kind of patch it was: a list is a JSON patch (RFC 6902); a mapping is applied as a merge patch (RFC 7386), but lists of
named items, such as containers, are matched by name, as in a strategic merge patch.
"""

import copy
from collections.abc import Mapping
from typing import Any

from kumulus.extras.capture.day.requests import ApiRequest


class Cordons:
    """Which nodes are cordoned, and which of them are being drained."""

    def __init__(self) -> None:
        self._drained: dict[str, bool] = {}

    def take(self, request: ApiRequest) -> str:
        """Take one more change of a node; returns `cordon` or `uncordon` if it is one, otherwise an empty text."""
        closed = self._closed(request)
        if closed is None or closed == (request.name in self._drained):
            return ""
        if closed:
            self._drained[request.name] = False
            return "cordon"
        del self._drained[request.name]
        return "uncordon"

    def has(self, node: str) -> bool:
        """Whether a node is cordoned."""
        return node in self._drained

    def drain(self, node: str) -> bool:
        """Record that a pod of a cordoned node is evicted; returns whether it is the first one."""
        first = not self._drained[node]
        self._drained[node] = True
        return first

    def _closed(self, request: ApiRequest) -> bool | None:
        """Whether the node is cordoned afterwards; None if that cannot be determined from the request."""
        body = request.answered
        if body is None and request.verb == "update" and isinstance(request.sent, Mapping):
            body = request.sent
        if body is None:
            # A patch without the field leaves it unchanged.
            before = {"spec": {"unschedulable": request.name in self._drained}}
            try:
                body = patched(before, request.sent if request.sent is not None else {})
            except NotUnderstood:
                return None
        spec = body.get("spec") if isinstance(body, Mapping) else None
        return bool(isinstance(spec, Mapping) and spec.get("unschedulable"))


class NotUnderstood(Exception):
    """A patch has a form that is not supported."""


def patched(before: Any, patch: Any) -> Any:
    """An object with a patch applied.

    Raises:
        NotUnderstood: the patch has operations other than add, replace, remove and test, or a path that does not exist.
    """
    if not isinstance(patch, list):
        return _merged(before, patch)
    found = copy.deepcopy(before)
    for each in patch:
        if not isinstance(each, Mapping) or not isinstance(each.get("path"), str):
            raise NotUnderstood("has an entry without a path")
        try:
            _operation(found, each)
        except (KeyError, IndexError, ValueError, TypeError):
            raise NotUnderstood(f"has {each.get('op')} at {each['path'][:80]}, which is not there") from None
    return found


def _operation(found: Any, each: Mapping[str, Any]) -> None:
    path = [part.replace("~1", "/").replace("~0", "~") for part in each["path"].split("/")[1:]]
    operation, place = each.get("op"), found
    if operation == "test":
        return
    for part in path[:-1]:
        place = place[int(part)] if isinstance(place, list) else place[part]
    last = path[-1]
    if operation == "remove":
        del place[int(last) if isinstance(place, list) else last]
    elif operation not in ("add", "replace"):
        raise NotUnderstood(f"has the operation {str(operation)[:20]!r}")
    elif not isinstance(place, list):
        place[last] = each.get("value")
    elif operation == "add":
        place.insert(len(place) if last == "-" else int(last), each.get("value"))
    else:
        place[int(last)] = each.get("value")


def _merged(before: Any, patch: Any) -> Any:
    if isinstance(patch, Mapping):
        found = dict(before) if isinstance(before, Mapping) else {}
        for key, value in patch.items():
            if value is None:
                found.pop(key, None)
            elif not str(key).startswith("$"):
                found[key] = _merged(found.get(key), value)
        return found
    if _named(patch) and _named(before):
        there = {each["name"]: each for each in before}
        gone = {each["name"] for each in patch if each.get("$patch") == "delete"}
        changed = {each["name"]: _merged(there.get(each["name"]), each) for each in patch if each["name"] not in gone}
        kept = [changed.pop(name, each) for name, each in there.items() if name not in gone]
        return [*kept, *changed.values()]
    return copy.deepcopy(patch)


def _named(value: Any) -> bool:
    return (
        isinstance(value, list) and bool(value) and all(isinstance(each, Mapping) and "name" in each for each in value)
    )

"""Secrets inside plain values, marked so that Pulumi encrypts them in the state and hides them in its output."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pulumi

from kumulus.model.errors import Where


def marked(value: Any, places: Iterable[Where]) -> Any:
    """A value with secrets marked.

    Args:
        value: a plain value of mappings, lists, texts, numbers.
        places: the paths of the secrets in it; an empty path is all of it.
    """
    places = tuple(places)
    if not places or value is None or value == {}:
        return value
    if () in places:
        return pulumi.Output.secret(value)
    if isinstance(value, dict):
        return {key: marked(inner, _below(key, places)) for key, inner in value.items()}
    if isinstance(value, list):
        return [marked(inner, _below(index, places)) for index, inner in enumerate(value)]
    return pulumi.Output.secret(value)


def _below(part: str | int, places: tuple[Where, ...]) -> tuple[Where, ...]:
    return tuple(place[1:] for place in places if place[0] == part)

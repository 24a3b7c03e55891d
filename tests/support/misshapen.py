"""An object in which a field has a value of another type, as in a file that somebody has edited."""

import copy
import random
from collections.abc import Iterator
from typing import Any

_VALUES: tuple[Any, ...] = (None, 5, -1, 1.5, True, "x", "", [], {}, [1], ["a"], [{}], {"a": 1}, [None])


def misshapen(value: Any, draw: random.Random) -> Any:
    """A copy of a JSON value in which one or two places, drawn at random, have other values."""
    found = copy.deepcopy(value)
    for _ in range(draw.choice((1, 1, 2))):
        *path, last = draw.choice([place for place in _places(found) if place])
        inner = found
        for key in path:
            inner = inner[key]
        inner[last] = copy.deepcopy(draw.choice(_VALUES))
    return found


def _places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    yield path
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, each in items:
        yield from _places(each, (*path, key))

"""Which nodes pods may go to, as a history records it: kinds of pods, kinds of nodes, and which fit each other.

Written once for each pair of kinds, not for each pod and node: 10,000 of either have few kinds. Only the recorder
knows what a kind is; a reader needs just the numbers.
"""

from __future__ import annotations

import json
from typing import Any

from kumulus.extras.watch.history.document import History
from kumulus.extras.watch.live.admission import Nature, Rule, Shape


class Admitting:
    """Numbers the kinds, and adds to a history which of them fit each other."""

    def __init__(self) -> None:
        self._natures: dict[Nature, int] = {}
        self._shapes: dict[Shape, int] = {}
        self._rules: dict[Rule, int] = {}
        self._rows: dict[str, int] = {}

    def bind(self, history: History) -> None:
        """Add to this history from now on; it already has which of the known kinds fit each other."""
        self._history = history
        self._rules = {}
        self._rows = {json.dumps(row): number for number, row in enumerate(history.rules)}

    def nature(self, nature: Nature) -> int:
        """The number of a kind of nodes."""
        found = self._natures.get(nature)
        if found is None:
            found = self._natures[nature] = len(self._natures)
            fits = ([number, found] for shape, number in self._shapes.items() if shape.admits(nature))
            self._history.fits.extend(fits)
        return found

    def rule(self, rule: Rule) -> int:
        """The number of a rule that says where pods may go."""
        found = self._rules.get(rule)
        if found is None:
            ways = [
                [self._shape(way.shape), None if way.only is None else list(way.only), list(way.never)]
                for way in rule.ways
            ]
            row: list[Any] = [ways, list(rule.apart)]
            found = self._rows.setdefault(json.dumps(row), len(self._history.rules))
            if found == len(self._history.rules):
                self._history.rules.append(row)
            self._rules[rule] = found
        return found

    def _shape(self, shape: Shape) -> int:
        found = self._shapes.get(shape)
        if found is None:
            found = self._shapes[shape] = len(self._shapes)
            fits = ([found, number] for nature, number in self._natures.items() if shape.admits(nature))
            self._history.fits.extend(fits)
        return found

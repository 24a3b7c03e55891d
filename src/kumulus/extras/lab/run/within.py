"""The namespaces of a repetition: its own, and one for each that a recording names."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping
from typing import Any

from kumulus.extras.lab.plan.pods import Object
from kumulus.model.names import dns_safe

_LONGEST = 63


class Within:
    """Says which namespace each object goes to.

    Args:
        own: the repetition's namespace, for objects that name none.
        recorded: namespaces that a recording names.
    """

    def __init__(self, own: str, recorded: Iterable[str] = ()) -> None:
        self.own = own
        self._of: dict[str, str] = {}
        for number, each in enumerate(recorded, start=1):
            name = dns_safe(f"{own}-{each}")
            self._of[each] = name if len(f"{own}-{each}") <= _LONGEST else f"{own[:50]}-{number}"

    @property
    def others(self) -> tuple[str, ...]:
        """Every namespace except its own."""
        return tuple(self._of.values())

    def of(self, each: Mapping[str, Any]) -> str:
        """The namespace of an object."""
        return self._of.get(str(each["metadata"].get("namespace") or ""), self.own)

    def translated(self, each: Object) -> Object:
        """A recorded object as it is sent, with the run's namespaces in place of the recorded ones."""
        found = copy.deepcopy(each)
        found["metadata"].pop("namespace", None)
        self.translate(found)
        return found

    def translate(self, value: Any) -> None:
        """Replace the namespaces in affinity terms, at any depth and in place."""
        if isinstance(value, dict):
            if "topologyKey" in value and isinstance(value.get("namespaces"), list):
                value["namespaces"] = [self._of.get(str(name), str(name)) for name in value["namespaces"]]
            for each in value.values():
                self.translate(each)
        elif isinstance(value, list):
            for each in value:
                self.translate(each)

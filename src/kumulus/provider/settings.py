"""The user's settings for the plugin as a whole: Pulumi configures it with the keys of the namespace kumulus."""

import functools
import json
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from kumulus.host import machine, version
from kumulus.model.errors import SpecError
from kumulus.model.pools import INSTANCE_TYPE_LABEL, Pool
from kumulus.nodes.catalog import prices
from kumulus.nodes.catalog.instances import instance_types
from kumulus.nodes.errors import ProviderError
from kumulus.runtimes.whereabouts import Here

# A resource counts as gone when its cluster's kubeconfig does not exist. On another machine, that conclusion is wrong:
# a refresh reads all resources at once, and would drop them while their cluster reports that it is elsewhere. So the
# state has where the stack was last updated, in the plugin's own configuration.

LAST_PLACE = "lastPlace"
"""The key under which the state records that."""


class LastPlace:
    """Where the stack was last updated, once Pulumi has configured the plugin; `here` finds out where this is."""

    def __init__(self, here: Callable[[], Here] | None = None) -> None:
        self._here = functools.cache(here or (lambda: Here.of(machine.this(), Path.cwd())))
        self._recorded: Mapping[str, Any] = {}

    @property
    def here(self) -> Here:
        """The current machine and project."""
        return self._here()

    def noted(self, old: Mapping[str, Any], moving: bool) -> str:
        """The place to record: the recorded one, or this one if there is none yet or the user moves the stack here."""
        recorded = old.get(LAST_PLACE)
        if isinstance(recorded, str) and recorded and not moving:
            return recorded
        return json.dumps({"machine": self.here.machine.id, "program": str(self.here.program)})

    def take(self, configuration: Mapping[str, Any]) -> None:
        """Load the recorded place."""
        self._recorded = _recorded(configuration, LAST_PLACE)

    def elsewhere(self, kubeconfig: str) -> str | None:
        """Why a missing kubeconfig does not mean that its cluster is gone; None when it does."""
        if self._recorded and self._recorded.get("machine") != self.here.machine.id:
            return "the stack was last updated on another machine"
        program, file = Path(str(self._recorded.get("program") or self.here.program)), Path(kubeconfig)
        if self.here.state is None or program == self.here.program or not file.is_relative_to(program):
            return None
        # The project was moved: if its clusters' files went along, they are here.
        went_along = (self.here.program / file.relative_to(program)).exists()
        return f"this project was at {program}" if went_along else None


WRITTEN = "writtenBy"
"""The key under which the state records the version that wrote it, and in which format."""


@dataclass
class PluginSettings:
    """The user's settings: consent to what cannot be undone, and prices."""

    move_here: bool = False
    """`kumulus:moveHere`: a cluster that is elsewhere is made again here."""
    allow_replace: bool = False
    """`kumulus:allowReplace`: a cluster may be replaced, with everything in it."""
    place: LastPlace = field(default_factory=LastPlace)
    """Where the stack was last updated."""
    prices: str = ""
    """`kumulus:prices`: the user's own file of machine prices; empty for the catalog alone."""

    def take(self, configuration: Mapping[str, Any]) -> None:
        """Load the plugin's configuration from Pulumi; refuses a state in a format that this version does not know."""
        _require_known(configuration)
        self.move_here = _is_true(configuration.get("moveHere"))
        self.allow_replace = _is_true(configuration.get("allowReplace"))
        self.prices = str(configuration.get("prices") or "")
        self.place.take(configuration)

    def hourly(self, pool: Pool) -> float | None:
        """The price of one of a pool's nodes per hour, in US dollars.

        Returns:
            NaN for a machine of the catalog that has no price there; None for any other without one.
        """
        try:
            known = prices.with_own(Path(self.prices)) if self.prices else prices.catalog()
        except SpecError:
            # The program reports errors in the file when it reads it; a removal needs no price.
            known = prices.catalog()
        found = known.of_node(pool.labels)
        if found is not None:
            return found.hourly
        return math.nan if pool.labels.get(INSTANCE_TYPE_LABEL) in instance_types() else None

    @staticmethod
    def changed(old: Mapping[str, Any], new: Mapping[str, Any]) -> bool:
        """Whether two configurations differ in what the plugin uses."""
        keys = ("moveHere", "allowReplace", "prices", LAST_PLACE, WRITTEN)
        return any(old.get(key) != new.get(key) for key in keys)

    def kept(self, old: Mapping[str, Any], configuration: Mapping[str, Any]) -> dict[str, str]:
        """What the state keeps in addition to the user's settings."""
        _require_known(old)
        return {
            WRITTEN: json.dumps(version.stamp(), sort_keys=True),
            LAST_PLACE: self.place.noted(old, _is_true(configuration.get("moveHere"))),
        }


def _require_known(recorded: Mapping[str, Any]) -> None:
    if why := version.too_new(_recorded(recorded, WRITTEN)):
        raise ProviderError(f"the stack's state {why}")


def _recorded(configuration: Mapping[str, Any], key: str) -> dict[str, Any]:
    """What a key has as JSON; empty if it has no mapping, as in a state that was edited by hand."""
    try:
        found = json.loads(str(configuration.get(key) or "{}"))
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def _is_true(value: Any) -> bool:
    return value is True or value == "true"

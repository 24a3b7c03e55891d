"""Where a stack was last updated, kept with the plugin's own configuration in the state.

A resource in a cluster whose kubeconfig is not there counts as gone with the cluster. From another machine it only
looks so: a refresh asks all resources at once, and would forget them while their cluster says that it is elsewhere.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from kumulus.host import machine
from kumulus.runtimes.whereabouts import Here

KEY = "lastPlace"


class LastPlace:
    """Where the stack was last updated, once Pulumi has configured the plugin.

    Args:
        here: finds out where this is.
    """

    def __init__(self, here: Callable[[], Here] | None = None) -> None:
        self._here = functools.cache(here or (lambda: Here.of(machine.this(), Path.cwd())))
        self._recorded: Mapping[str, Any] = {}

    @property
    def here(self) -> Here:
        """Where this is."""
        return self._here()

    def noted(self, old: Mapping[str, Any], moving: bool) -> str:
        """What to keep: what was kept, or this place, where there is nothing yet or the stack moves here.

        Args:
            old: the plugin's configuration as recorded.
            moving: whether the user says so.
        """
        kept = old.get(KEY)
        if isinstance(kept, str) and kept and not moving:
            return kept
        return json.dumps({"machine": self.here.machine.id, "program": str(self.here.program)})

    def take(self, configuration: Mapping[str, Any]) -> None:
        """Take over what was kept."""
        try:
            found = json.loads(str(configuration.get(KEY) or "{}"))
        except ValueError:
            found = {}
        self._recorded = found if isinstance(found, dict) else {}

    def elsewhere(self, kubeconfig: str) -> str | None:
        """Why a kubeconfig that is not there is no sign of its cluster's end; None when it is one."""
        if self._recorded and self._recorded.get("machine") != self.here.machine.id:
            return "the stack was last updated on another machine"
        program, file = Path(str(self._recorded.get("program") or self.here.program)), Path(kubeconfig)
        if self.here.state is None or program == self.here.program or not file.is_relative_to(program):
            return None
        went_along = (self.here.program / file.relative_to(program)).exists()
        return f"this project was at {program}" if went_along else None

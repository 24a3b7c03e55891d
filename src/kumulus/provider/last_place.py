"""Where a stack was last updated, kept with the plugin's own configuration in the state.

A resource counts as gone when its cluster's kubeconfig does not exist. On another machine, that conclusion is wrong: a
refresh reads all resources at once, and would drop them while their cluster reports that it is elsewhere.
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
        here: finds out the current machine and project.
    """

    def __init__(self, here: Callable[[], Here] | None = None) -> None:
        self._here = functools.cache(here or (lambda: Here.of(machine.this(), Path.cwd())))
        self._recorded: Mapping[str, Any] = {}

    @property
    def here(self) -> Here:
        """The current machine and project."""
        return self._here()

    def noted(self, old: Mapping[str, Any], moving: bool) -> str:
        """The place to record: the recorded one, or this one if there is none yet or the stack moves here.

        Args:
            old: the plugin's configuration as recorded.
            moving: whether the user says that the stack moves here.
        """
        kept = old.get(KEY)
        if isinstance(kept, str) and kept and not moving:
            return kept
        return json.dumps({"machine": self.here.machine.id, "program": str(self.here.program)})

    def take(self, configuration: Mapping[str, Any]) -> None:
        """Load the recorded place."""
        try:
            found = json.loads(str(configuration.get(KEY) or "{}"))
        except ValueError:
            found = {}
        self._recorded = found if isinstance(found, dict) else {}

    def elsewhere(self, kubeconfig: str) -> str | None:
        """Why a missing kubeconfig does not mean that its cluster is gone; None when it does."""
        if self._recorded and self._recorded.get("machine") != self.here.machine.id:
            return "the stack was last updated on another machine"
        program, file = Path(str(self._recorded.get("program") or self.here.program)), Path(kubeconfig)
        if self.here.state is None or program == self.here.program or not file.is_relative_to(program):
            return None
        went_along = (self.here.program / file.relative_to(program)).exists()
        return f"this project was at {program}" if went_along else None

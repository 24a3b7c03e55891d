"""The process that shares out the loads of a stack's `podUsage`, alongside a control plane of the runtime kwok."""

import json
from typing import Any

from kumulus.host.ports import Claims
from kumulus.runtimes.kwok import components
from kumulus.runtimes.kwok.addition import Addition, Options
from kumulus.runtimes.kwok.layout import Layout

NAME = "pod-loads"


class Loads(Addition):
    """Keeps, on each pod that has a part of a load, how many share it."""

    names = frozenset({NAME})

    def asked(self, options: Options) -> bool:
        return bool(options.get("podLoads"))

    def fingerprints(self, options: Options) -> dict[str, str]:
        """See :meth:`Addition.fingerprints`: how large a load is does not matter to it."""
        return {NAME: components.fingerprint(_selections(options))} if self.asked(options) else {}

    def configured(self, settings: dict[str, Any], layout: Layout, options: Options, claims: Claims) -> dict[str, Any]:
        if not self.asked(options):
            return components.replaced(settings, self.names)
        made = components.python(layout, NAME, "kumulus.extras.loads.sharing", [_selections(options)])
        return components.replaced(settings, self.names, made)


def _selections(options: Options) -> str:
    return json.dumps(options["podLoads"], sort_keys=True)


ADDITION = Loads()

"""Coscheduling: a kube-scheduler that is built with the plugin, and a profile that enables it."""

from __future__ import annotations

from kumulus.schedulers import definitions
from kumulus.schedulers.kube_scheduler import launch
from kumulus.schedulers.launch.plan import Plan, Request

_PERMIT_WAIT_SECONDS = 10
_REJECTED_SECONDS = 10
"""After which a gang that Coscheduling has rejected is looked at again.

The plugin asks to hear of new pods and groups only (its EventsToRegister), not of pods that end. With the default of
five minutes a gang would wait that long before a half-empty cluster.
"""


def plan(request: Request) -> Plan:
    """See :class:`Plan`.

    Raises:
        SchedulerError: the program is not there, or the configuration cannot be used.
    """
    enabled = [{"name": "Coscheduling"}]
    profile = {
        "plugins": {
            "multiPoint": {"enabled": enabled},
            # Its queue sort keeps the pods of a gang together; a profile can have only one.
            "queueSort": {"enabled": list(enabled), "disabled": [{"name": "*"}]},
        },
        "pluginConfig": [{"name": "Coscheduling", "args": {"permitWaitingTimeSeconds": _PERMIT_WAIT_SECONDS}}],
    }
    build = launch.Build(
        profile=profile,
        arguments=(f"--pod-max-in-unschedulable-pods-duration={_REJECTED_SECONDS}s",),
        settings={"rejectedGangSeconds": _REJECTED_SECONDS},
        objects=lambda: definitions.crds(request.name),
    )
    return launch.plan(request, build)

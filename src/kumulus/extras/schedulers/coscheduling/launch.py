"""Coscheduling: a kube-scheduler that is built with the plugin, and a profile that enables it."""

from kumulus.extras.schedulers import definitions
from kumulus.extras.schedulers.kube_scheduler import launch
from kumulus.extras.schedulers.launch.plan import LaunchPlan, LaunchRequest

_PERMIT_WAIT_S = 10
_REJECTED_S = 10
"""Seconds after which a gang that Coscheduling has rejected is tried again.

The plugin registers only for new pods and groups (its EventsToRegister), not for pods that end. With the default of
five minutes, a gang would wait that long even if the cluster were half empty.
"""


def plan(request: LaunchRequest) -> LaunchPlan:
    """See :class:`LaunchPlan`."""
    enabled = [{"name": "Coscheduling"}]
    profile = {
        "plugins": {
            "multiPoint": {"enabled": enabled},
            # Its queue sort keeps the pods of a gang together; a profile can have only one.
            "queueSort": {"enabled": list(enabled), "disabled": [{"name": "*"}]},
        },
        "pluginConfig": [{"name": "Coscheduling", "args": {"permitWaitingTimeSeconds": _PERMIT_WAIT_S}}],
    }
    build = launch.Build(
        profile=profile,
        arguments=(f"--pod-max-in-unschedulable-pods-duration={_REJECTED_S}s",),
        settings={"rejectedGangSeconds": _REJECTED_S},
        objects=lambda: definitions.crds(request.name),
    )
    return launch.plan(request, build)

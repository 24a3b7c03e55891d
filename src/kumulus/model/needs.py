"""What a stack does in a cluster that is not its own, by names that both the program and the plugin know.

The provider plugin imports this file: it imports nothing that is not light.
"""

from __future__ import annotations

NODES = "nodes"
FAULTS = "faults"
STAGES = "stages"
USAGE = "usage"
DEVICES = "devices"
HYPERNODES = "hypernodes"
KWOK = "kwok"
ADDONS = "addons"
TENANTS = "tenants"
AUTOSCALER = "autoscaler"
NEEDS = (NODES, FAULTS, STAGES, USAGE, DEVICES, HYPERNODES, KWOK, ADDONS, TENANTS, AUTOSCALER)
"""Every part of a stack that takes permissions of its own."""


def is_content(kubeconfig: str) -> bool:
    """Whether a text is a kubeconfig itself rather than the path of one."""
    return "\n" in kubeconfig

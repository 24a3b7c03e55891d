"""What a stack does in a cluster that is not its own, by names that the program and the plugin share.

The provider plugin imports this file, so it must not import anything slow.
"""

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
"""Every part of a stack that needs its own permissions."""


def is_content(kubeconfig: str) -> bool:
    """Whether a text is the content of a kubeconfig rather than its path."""
    return "\n" in kubeconfig

"""The runtime existing: a cluster that exists already; the stack keeps a copy of its kubeconfig.

Here is also what a stack may do in such a cluster, by names that the program and the plugin share. The plugin imports
this file, so it must not import anything slow.
"""

from kumulus.runtimes.descriptor import Descriptor, RuntimeOptions
from kumulus.toolchain.plugins import PROVIDER

KUBECONFIG_FILE = "existing.yaml"

RUNTIME = Descriptor(
    name="existing",
    about="a cluster that is there, by kubeconfig and context",
    takes="credentials",
    ready_in="–",
    page="#an-existing-cluster",
    implementation="kumulus.runtimes.existing.runtime:ExistingRuntime",
    options=RuntimeOptions(
        "kumulus.runtimes.existing.section:Existing",
        "Which cluster the runtime existing uses (docs/clusters.md).",
        "{context: my-cluster}",
    ),
    tools=("helm", PROVIDER),
    chooses_version=False,
    outlives_stack=True,
    kubeconfig_file=KUBECONFIG_FILE,
    own_file=KUBECONFIG_FILE,
    given_up="delete what has the label kumulus.io/stack-id={identity} in that cluster, nodes first, then {directory}",
)

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

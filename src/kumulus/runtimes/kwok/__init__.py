"""The runtime kwok: etcd, the control plane and KWOK as processes of this machine."""

from kumulus.runtimes.descriptor import Descriptor, RuntimeOptions
from kumulus.toolchain.pins import CONTROL_PLANE

RUNTIME = Descriptor(
    name="kwok",
    short="local processes",
    about="etcd and the control plane as processes of this machine; every node is emulated",
    takes="nothing",
    ready_in="3 s",
    implementation="kumulus.runtimes.kwok.runtime:KwokRuntime",
    options=RuntimeOptions(
        "kumulus.runtimes.kwok.section:Kwok", "Settings of the runtime kwok.", "{heartbeatFactor: 5}"
    ),
    # A cluster is created by kwokctl, which runs kubectl.
    tools=("etcd", "kwok", "kwokctl", *CONTROL_PLANE, "kubectl"),
    local=True,
)

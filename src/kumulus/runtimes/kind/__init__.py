"""The runtime kind: a cluster whose real nodes are containers that run add-ons, with emulated nodes beside them."""

from kumulus.runtimes.descriptor import Descriptor, Options
from kumulus.runtimes.kind.rules import rules
from kumulus.toolchain.plugins import PROVIDER

RUNTIME = Descriptor(
    name="kind",
    short="containers",
    about="a real kind cluster; add-ons run on its nodes, beside emulated ones",
    takes="Docker, Podman or nerdctl",
    ready_in="15 to 30 s, pulling images not counted",
    page="#kind",
    implementation="kumulus.runtimes.kind.runtime:KindRuntime",
    options=Options(
        "kumulus.runtimes.kind.section:Kind", "Settings of the runtime kind.", "{nodeImage: kindest/node:v1.35.4}"
    ),
    further_sections=("kindConfig", "loadImages"),
    option_sections=("kindConfig",),
    tools=("kind", "helm", PROVIDER),
    container_engine=True,
    rules=rules,
)

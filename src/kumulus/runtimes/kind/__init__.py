"""The runtime kind: a cluster whose real nodes are containers that run add-ons, with emulated nodes next to them."""

from collections.abc import Iterator, Mapping
from typing import Literal, get_args

from kumulus.model.checks import problem
from kumulus.model.errors import Problem
from kumulus.runtimes.descriptor import Descriptor, RuntimeOptions
from kumulus.toolchain.plugins import PROVIDER

Provider = Literal["docker", "podman", "nerdctl"]
PROVIDERS: tuple[Provider, ...] = get_args(Provider)
DEFAULT_WAIT = "3m"
CONFIG_FILE = "kind.yaml"
"""The configuration that kind was given, in the cluster's directory."""


def rules(raw: Mapping[str, object]) -> Iterator[Problem]:
    """Problems of a cluster's mapping, as the file has it."""
    kind = raw.get("kind")
    if isinstance(kind, Mapping) and kind.get("nodeImage") and raw.get("kubernetesVersion"):
        message = "has no effect with kind.nodeImage, which is of one version"
        yield problem(("kubernetesVersion",), message, "leave one of the two out")


RUNTIME = Descriptor(
    name="kind",
    short="containers",
    about="a real kind cluster; add-ons run on its nodes, alongside emulated ones",
    takes="Docker, Podman or nerdctl",
    ready_in="15 to 30 s, pulling images not counted",
    page="#kind",
    implementation="kumulus.runtimes.kind.runtime:KindRuntime",
    options=RuntimeOptions(
        "kumulus.runtimes.kind.section:KindSpec", "Settings of the runtime kind.", "{nodeImage: kindest/node:v1.35.4}"
    ),
    further_sections=("kindConfig", "loadImages"),
    option_sections=("kindConfig",),
    tools=("kind", "helm", PROVIDER),
    container_engine=True,
    own_file=CONFIG_FILE,
    given_up="kind delete cluster --name {name}, then remove {directory}",
    rules=rules,
)

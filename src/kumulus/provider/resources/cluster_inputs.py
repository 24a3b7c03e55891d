"""A cluster's properties, their checks, and the recorded Kubernetes version, which stays."""

from __future__ import annotations

import re
from typing import Any

from kumulus.model.contents import is_contents
from kumulus.model.unknown import UNKNOWN
from kumulus.provider.object_types import CONTENTS
from kumulus.provider.properties import OBJECT, STRING, STRINGS, Property
from kumulus.provider.resources.base import Failure, Properties
from kumulus.provider.resources.in_cluster import STACK_ID
from kumulus.provider.values import contains_unknown
from kumulus.runtimes import registry
from kumulus.runtimes.base import Runtime
from kumulus.runtimes.descriptor import Descriptor

_VERSION = re.compile(r"v[0-9]+\.[0-9]+\.[0-9]+\Z")


def _known() -> str:
    """The runtimes, as text for users."""

    def words(each: Descriptor) -> str:
        remarks = [*([each.short] if each.short else []), *(["the default"] if each.name == registry.DEFAULT else [])]
        return f"`{each.name}`" + (f" ({', '.join(remarks)})" if remarks else "")

    *others, last = map(words, registry.every())
    return f"{', '.join(others)} or {last}"


INPUTS = (
    Property("name", STRING, "The cluster's name: a DNS-1123 label.", required=True, replaces=True),
    Property("runtime", STRING, f"How the control plane runs: {_known()}.", replaces=True),
    Property(
        "kubernetesVersion",
        STRING,
        "Such as `v1.35.4`; the runtime's default when not given, kept once the cluster exists. `kwok` clusters "
        "change it in place, by one minor version at a time.",
    ),
    Property("options", OBJECT, "The runtime's own options, as in the stack file's section of its name."),
    Property(
        "home",
        STRING,
        "Directory of all clusters' files; `$KUMULUS_HOME`, or `.kumulus` beside the program.",
        replaces=True,
    ),
    STACK_ID,
    Property("contents", CONTENTS, "What the stack has in it, so that a preview says what goes.", fleeting=True),
)
OUTPUTS = (
    Property("identity", STRING, "UID of the kube-system namespace: another one is another cluster.", required=True),
    Property("kubeconfig", STRING, "Path of the kubeconfig file, known in previews.", required=True),
    Property("server", STRING, "Address of the API server.", required=True),
    Property("directory", STRING, "Directory of this cluster's files.", required=True),
    Property("owner", STRING, "Who made it: its URN and the program's directory. Nobody else's is touched."),
    Property("machine", STRINGS, "The machine it is on: `id` and `name`; absent where it is not this stack's."),
    Property("status", STRING, "`running`, `degraded`, `stopped`, or `incomplete`: a part is lost.", required=True),
    Property("components", STRINGS, "Each component's state.", required=True),
    Property("endpoints", STRINGS, "Where further services answer: `prometheus`, of a stack with observability."),
    Property("configuration", STRING, "Fingerprint of the settings that can be changed in place."),
)


def sticky_version(runtime: Runtime, old_inputs: Properties) -> str | None:
    """The recorded version, or the default if none is recorded or this release can no longer run it.

    In the latter case the diff shows the change of version; the stack file can name a third.
    """
    recorded = old_inputs.get("kubernetesVersion")
    if not isinstance(recorded, str) or runtime.version_problem(recorded):
        return runtime.default_version()
    return recorded


def version_failures(runtime: Runtime, version: Any) -> list[Failure]:
    """Problems with the Kubernetes version."""
    if version is UNKNOWN:
        return []
    if not isinstance(version, str) or not _VERSION.match(version):
        return [Failure("kubernetesVersion", f"{version!r} is not a version; write it like v1.35.4")]
    problem = runtime.version_problem(version)
    return [Failure("kubernetesVersion", problem)] if problem else []


def contents_failures(inputs: Properties) -> list[Failure]:
    """Problems with the declared contents of the cluster."""
    found = inputs.get("contents")
    if found is None or contains_unknown(found) or is_contents(found):
        return []
    return [Failure("contents", "is not as Kumulus writes it; leave it out")]

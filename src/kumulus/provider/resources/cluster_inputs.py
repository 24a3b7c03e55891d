"""A cluster's properties, their checks, and the recorded Kubernetes version, which stays."""

import os
import re
from collections.abc import Mapping
from typing import Any

from kumulus.model.contents import is_contents
from kumulus.model.errors import under
from kumulus.model.plain import UNKNOWN
from kumulus.provider.object_types import CONTENTS
from kumulus.provider.properties import OBJECT, STRING, STRINGS, Property
from kumulus.provider.resources import adoption
from kumulus.provider.resources.base import CheckResult, InputFailure, Properties, name_failures
from kumulus.provider.resources.in_cluster import STACK_ID
from kumulus.provider.values import contains_unknown
from kumulus.runtimes import registry
from kumulus.runtimes.base import Runtime
from kumulus.runtimes.descriptor import Descriptor

_VERSION = re.compile(r"v[0-9]+\.[0-9]+\.[0-9]+\Z")


def _runtimes_text() -> str:
    """The runtimes, as text for users."""

    def words(each: Descriptor) -> str:
        default = "the default" if each.name == registry.DEFAULT else ""
        remarks = ", ".join(filter(None, (each.short, default)))
        return f"`{each.name}` ({remarks})" if remarks else f"`{each.name}`"

    *others, last = map(words, registry.every())
    return f"{', '.join(others)} or {last}"


INPUTS = (
    Property("name", STRING, "The cluster's name: a DNS-1123 label.", required=True, replaces=True),
    Property("runtime", STRING, f"How the control plane runs: {_runtimes_text()}.", replaces=True),
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
        "Directory of all clusters' files; `$KUMULUS_HOME`, or `.kumulus` next to the program.",
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


def checked_cluster_inputs(
    runtimes: Mapping[str, Runtime],
    old_inputs: Properties,
    inputs: Properties,
    program: str,
    failures: list[InputFailure],
) -> CheckResult:
    """The inputs with defaults filled in.

    Defaults stick: a Kubernetes version or home that was filled in at creation stays when the default changes.
    Otherwise an upgrade of Kumulus, or a moved checkout, would replace every cluster.

    Args:
        inputs: as the user wrote them, without those that are left out; the defaults are added.
        failures: the failures of checks common to all resources.
    """
    failures = failures + _name_failures(inputs.get("name"))
    runtime = runtimes.get(str(inputs.setdefault("runtime", registry.DEFAULT)))
    if runtime is None:
        known = ", ".join(sorted(runtimes))
        failures.append(InputFailure("runtime", f"{inputs['runtime']!r} is not a runtime; write one of {known}"))
        return CheckResult(inputs, failures)
    sticky = old_inputs if old_inputs.get("runtime") == inputs["runtime"] else {}
    version = inputs.get("kubernetesVersion") or _sticky_version(runtime, sticky)
    if version is not None:
        inputs["kubernetesVersion"] = version
        failures += _version_failures(runtime, version)
    home = inputs.setdefault("home", sticky.get("home") or adoption.default_home())
    if home is not UNKNOWN:
        if isinstance(home, str) and home.strip():
            inputs["home"] = os.path.normpath(os.path.join(program, home))
        else:
            failures.append(InputFailure("home", f"is {home!r}; write the path of a directory"))
    # Not for users to set: it makes a stopped control plane a difference, shown as "degraded" => "running".
    inputs["status"] = "running"
    failures += _option_failures(runtime, inputs.setdefault("options", {}))
    return CheckResult(inputs, failures + _contents_failures(inputs))


def _name_failures(name: Any) -> list[InputFailure]:
    if name is UNKNOWN:
        return []
    return name_failures(name) if isinstance(name, str) else [InputFailure("name", "a cluster needs a name")]


def _option_failures(runtime: Runtime, options: Any) -> list[InputFailure]:
    if not isinstance(options, dict):
        return [InputFailure("options", "is not a mapping")]
    if contains_unknown(options):
        return []
    return [InputFailure(under("options", path), remedy) for path, remedy in runtime.problems(options).items()]


def _sticky_version(runtime: Runtime, old_inputs: Properties) -> str | None:
    """The recorded version, or the default if none is recorded or this release of Kumulus can no longer run it.

    In the latter case the diff shows the change of version; the stack file can name a third.
    """
    recorded = old_inputs.get("kubernetesVersion")
    if not isinstance(recorded, str) or runtime.version_problem(recorded):
        return runtime.default_version()
    return recorded


def _version_failures(runtime: Runtime, version: Any) -> list[InputFailure]:
    if version is UNKNOWN:
        return []
    if not isinstance(version, str) or not _VERSION.match(version):
        return [InputFailure("kubernetesVersion", f"{version!r} is not a version; write it like v1.35.4")]
    problem = runtime.version_problem(version)
    return [InputFailure("kubernetesVersion", problem)] if problem else []


def _contents_failures(inputs: Properties) -> list[InputFailure]:
    found = inputs.get("contents")
    if found is None or contains_unknown(found) or is_contents(found):
        return []
    return [InputFailure("contents", "is not as Kumulus writes it; leave it out")]

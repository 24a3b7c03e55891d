"""What is asked of a cluster's inputs, and which of them stay as they were recorded."""

from __future__ import annotations

import re
from typing import Any

from kumulus.model.contents import is_contents
from kumulus.model.unknown import UNKNOWN
from kumulus.provider.resources.base import Failure, Properties
from kumulus.provider.values import contains_unknown
from kumulus.runtimes.base import Runtime

_VERSION = re.compile(r"v[0-9]+\.[0-9]+\.[0-9]+\Z")


def sticky_version(runtime: Runtime, old_inputs: Properties) -> str | None:
    """The recorded version, or the default where there is none or this release cannot run it any longer.

    The latter shows as a change from the one version to the other; the stack file can name a third.
    """
    recorded = old_inputs.get("kubernetesVersion")
    if not isinstance(recorded, str) or runtime.version_problem(recorded):
        return runtime.default_version()
    return recorded


def version_failures(runtime: Runtime, version: Any) -> list[Failure]:
    """What is wrong with the Kubernetes version."""
    if version is UNKNOWN:
        return []
    if not isinstance(version, str) or not _VERSION.match(version):
        return [Failure("kubernetesVersion", f"{version!r} is not a version; write it like v1.35.4")]
    problem = runtime.version_problem(version)
    return [Failure("kubernetesVersion", problem)] if problem else []


def contents_failures(inputs: Properties) -> list[Failure]:
    """What is wrong with what the stack says it has in the cluster."""
    found = inputs.get("contents")
    if found is None or contains_unknown(found) or is_contents(found):
        return []
    return [Failure("contents", "is not as Kumulus writes it; leave it out")]

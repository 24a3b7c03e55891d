"""Rules between the parts of a stack file that the runtime kind alone has."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from kumulus.model.checks import problem
from kumulus.model.errors import Problem


def rules(raw: Mapping[str, object]) -> Iterator[Problem]:
    """Problems of a cluster's mapping, as the file has it."""
    kind = raw.get("kind")
    if isinstance(kind, Mapping) and kind.get("nodeImage") and raw.get("kubernetesVersion"):
        message = "has no effect beside kind.nodeImage, which is of one version"
        yield problem(("kubernetesVersion",), message, "leave one of the two out")

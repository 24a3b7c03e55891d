"""Whether a stack installs KWOK in its cluster."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pulumi

from kumulus.components import plugin
from kumulus.components.engine import user_error
from kumulus.kwok.controllers import release_name
from kumulus.stackfile.load import LoadedStack


@dataclass(frozen=True)
class KwokPlan:
    """What becomes of KWOK in a cluster."""

    install: bool = False
    """Whether the stack installs it."""
    stages: bool = False
    """Whether the cluster takes KWOK's stages as objects, or will."""
    controller: str = ""
    """Where another than the stack has installed it, ``<namespace>/<name>``; empty for nowhere."""

    @classmethod
    def of(cls, loaded: LoadedStack, base: Path) -> KwokPlan:
        """The plan for a loaded stack; looks into an existing cluster.

        Raises:
            pulumi.RunError: the cluster does not answer. Taken for one without KWOK, it would get a second one, or
                lose the stack's stages, as soon as it answers again.
        """
        asked = loaded.spec.kwokCharts.install
        if loaded.spec.runtime_descriptor.local:
            return cls()
        if asked or not loaded.spec.runtime_descriptor.outlives_stack:
            return cls(install=asked is not False, stages=asked is not False)
        where = {**loaded.spec.runtime_options(base), "release": release_name(loaded.cluster_name)}
        answer = pulumi.runtime.invoke("kumulus:index:findKwok", where, plugin.asked()).value or {}
        if problem := answer.get("problem"):
            raise user_error(str(problem))
        controller = str(answer.get("controller") or "")
        install = asked is None and not controller
        return cls(install, install or bool(answer.get("stages")), controller)

"""The variables to run kind with.

kind starts its nodes by `docker run --privileged`, which asks for every capability there is. An engine that lacks one
itself, as in some containers and virtual machines, refuses. Only there, `shim/docker` is put before the real `docker`
on kind's PATH, and does not ask for the missing one; see docs/decisions/kind-offline.md.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from kumulus.runtimes.kind import capabilities

SHIM = Path(__file__).resolve().parent / "shim"


@dataclass(frozen=True)
class Environment:
    """How to run kind on this machine.

    Attributes:
        variables: its whole environment.
        notice: a line for the user about what is unusual; empty if nothing is.
    """

    variables: Mapping[str, str]
    notice: str


def environment(base: Mapping[str, str]) -> Environment:
    """How to run kind, given its usual variables; these are unchanged wherever `--privileged` works."""
    missing = capabilities.withheld(base)
    folders = [folder for folder in base.get("PATH", os.defpath).split(os.pathsep) if folder != str(SHIM)]
    docker = shutil.which("docker", path=os.pathsep.join(folders)) if missing else None
    if docker is None:
        return Environment(dict(base), "")
    variables = {
        **base,
        "PATH": os.pathsep.join([str(SHIM), *folders]),
        "KUMULUS_DOCKER": docker,
        "KUMULUS_CAPABILITIES_WITHHELD": " ".join(missing),
    }
    names = " and ".join(f"CAP_{name}" for name in missing)
    return Environment(variables, f"Docker's engine lacks {names}: kind's nodes go without (docs/kind.md)")

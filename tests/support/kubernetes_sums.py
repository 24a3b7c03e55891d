"""Write the checksums of the Go module that a Kubernetes version is built in, for every platform.

    .venv/bin/python -m tests.support.kubernetes_sums        # of each version in pins.toml that has none yet
    .venv/bin/python -m tests.support.kubernetes_sums 1.37.2 # of this one, anew

Go verifies them against its checksum database as it downloads the modules.
"""

import itertools
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from kumulus.toolchain import pins
from kumulus.toolchain.pins import Pins
from kumulus.toolchain.versions import KUBERNETES_MODULE, KubernetesVersion

FOLDER = pins.HERE / "modules" / KUBERNETES_MODULE
SYSTEMS, MACHINES = ("linux", "darwin"), ("amd64", "arm64")


def packages(known: Pins, version: str) -> Iterator[str]:
    """What is built of a version: of the default one every program, of another one the control plane's."""
    programs = known.tools if version == known.default_kubernetes else known.control_plane(version)
    return (tool.package for tool in programs if tool.kubernetes is not None and tool.package is not None)


def write(known: Pins, version: KubernetesVersion) -> None:
    """Write the checksums of one version."""
    target = FOLDER / f"{version.version}.sum"
    target.write_bytes(b"")
    with tempfile.TemporaryDirectory() as folder:
        for name, content in version.module_files(FOLDER):
            (Path(folder) / name).write_bytes(content)
        for system, machine in itertools.product(SYSTEMS, MACHINES):
            variables = {"GOOS": system, "GOARCH": machine, "CGO_ENABLED": "0", "GOFLAGS": "-mod=mod"}
            command = ["go", "list", "-deps", *packages(known, version.version)]
            subprocess.run(command, cwd=folder, env={**os.environ, **variables}, stdout=subprocess.DEVNULL, check=True)
        target.write_bytes((Path(folder) / "go.sum").read_bytes())


def main(wanted: list[str]) -> None:
    """Write those of the versions that are named, else of those that have none."""
    known = pins.load()
    for version in known.kubernetes:
        if version.version in wanted or not (wanted or (FOLDER / f"{version.version}.sum").exists()):
            write(known, version)


if __name__ == "__main__":
    main(sys.argv[1:])

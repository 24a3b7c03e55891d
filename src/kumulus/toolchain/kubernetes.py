"""The Kubernetes versions on offer: each is built in a Go module that is made from one template."""

from __future__ import annotations

import functools
import re
from dataclasses import asdict, dataclass
from pathlib import Path

from kumulus.toolchain.versions import numbers

MODULE = "kubernetes"
# Ends a line of the template that is left out for earlier versions.
_SINCE = re.compile(r" // since (\d+\.\d+)$")


@dataclass(frozen=True)
class KubernetesVersion:
    """One `[[kubernetes]]` of pins.toml."""

    version: str
    go: str
    godebug: str

    def module_files(self, folder: Path) -> tuple[tuple[str, bytes], ...]:
        """The files of the Go module to build this version in, by name.

        Args:
            folder: has the template of go.mod, and each version's checksums.

        Raises:
            OSError: one of them cannot be read.
        """
        return _module_files(self, folder)

    @property
    def staging(self) -> str:
        """The version of the modules that are released with Kubernetes, such as k8s.io/api: v0.37.2 of 1.37.2."""
        return f"v0.{self.version.partition('.')[2]}"


@functools.lru_cache(maxsize=8)
def _module_files(version: KubernetesVersion, folder: Path) -> tuple[tuple[str, bytes], ...]:
    lines = (folder / "go.mod.template").read_text().splitlines(keepends=True)
    applying = "".join(_SINCE.sub("", line) for line in lines if _applies(line, version.version))
    filled = applying.format(staging=version.staging, **asdict(version))
    return ("go.mod", filled.encode()), ("go.sum", (folder / f"{version.version}.sum").read_bytes())


def _applies(line: str, version: str) -> bool:
    since = _SINCE.search(line)
    return since is None or numbers(version) >= numbers(since[1])

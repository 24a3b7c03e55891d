"""Comparing versions: `1.35.4`, `v1.35.4`, and ranges such as `>=3.6.0,<3.7.0`; the module of a Kubernetes version."""

import functools
import operator
import re
from dataclasses import asdict, dataclass
from pathlib import Path

_VERSION = re.compile(r"v?(\d+(?:\.\d+)*)(-[0-9A-Za-z.-]+)?(\+[0-9A-Za-z.-]+)?")
_COMPARISONS = {">=": operator.ge, "<=": operator.le, "==": operator.eq, ">": operator.gt, "<": operator.lt}


def normal(version: str) -> str:
    """The version without the leading `v` that some tools print and others do not."""
    return version.strip().removeprefix("v")


def numbers(version: str) -> tuple[int, ...]:
    """The numeric part, at least three numbers long.

    Raises:
        ValueError: this is not a version.
    """
    match = _VERSION.fullmatch(version.strip())
    if match is None:
        raise ValueError(f"{version!r} is not a version")
    parts = tuple(int(part) for part in match[1].split("."))
    return parts + (0,) * (3 - len(parts))


def is_version(text: str) -> bool:
    """Whether this is a version, in its numeric part at least."""
    return _VERSION.fullmatch(text.strip()) is not None


def satisfies(version: str, accepts: str) -> bool:
    """Whether a version is in a range; a pre-release (`1.35.0-rc.1`) never is, and build metadata is ignored."""
    match = _VERSION.fullmatch(version.strip())
    if match is None or match[2] is not None:
        return False
    actual = numbers(version)
    for comparison in accepts.split(","):
        sign = next(sign for sign in _COMPARISONS if comparison.strip().startswith(sign))
        if not _COMPARISONS[sign](actual, numbers(comparison.strip().removeprefix(sign))):
            return False
    return True


KUBERNETES_MODULE = "kubernetes"
"""The name of the module in pins.toml that Kubernetes' own programs are built in."""
# Ends a line of the template that is left out for earlier versions.
_SINCE = re.compile(r" // since (\d+\.\d+)$")


@dataclass(frozen=True)
class KubernetesVersion:
    """One `[[kubernetes]]` of pins.toml."""

    version: str
    go: str
    godebug: str

    def module_files(self, folder: Path) -> tuple[tuple[str, bytes], ...]:
        """The files of the Go module to build this version in, by name."""
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

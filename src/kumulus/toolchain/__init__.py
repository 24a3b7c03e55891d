"""The pinned tools Kumulus runs: found on PATH, or built from Go modules once per machine.

Only the standard library and `kumulus.host` are used here, since this runs before the virtual environment
exists. The names below are the whole public interface; the heavier ones are imported when called.
"""

from pathlib import Path

from kumulus.toolchain.errors import ToolchainError, ToolMissing
from kumulus.toolchain.locate import find, kept, kubernetes_versions, version

__all__ = [
    "ToolMissing",
    "ToolchainError",
    "ensure",
    "find",
    "install_plugins",
    "kept",
    "kubernetes_versions",
    "version",
]


def ensure(kubernetes: str | None = None) -> None:
    """Download or build the required tools that are missing, and print the progress.

    Args:
        kubernetes: also the control plane of this Kubernetes version, one of `kubernetes_versions()`.
    """
    from kumulus.toolchain.supply import ensure as build_missing

    build_missing(kubernetes)


def install_plugins(pulumi_home: Path) -> None:
    """Put Pulumi's Kubernetes provider where an engine with this PULUMI_HOME looks, unless it is there already.

    Args:
        pulumi_home: the directory that holds, or will hold, `plugins/`.
    """
    from kumulus.toolchain.plugins import install

    install(pulumi_home)

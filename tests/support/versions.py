"""The Kubernetes versions on offer; tests of those that are not built are skipped, and say so."""

import pytest

from kumulus import toolchain
from kumulus.toolchain.pins import CONTROL_PLANE


def is_built(version: str) -> bool:
    """Whether all programs of a control plane are there at a version such as ``v1.35.4``."""
    try:
        for name in CONTROL_PLANE:
            toolchain.find(name, version)
    except toolchain.ToolchainError:
        return False
    return True


def needs(*versions: str) -> pytest.MarkDecorator:
    """Skips a test unless these versions are built."""
    missing = [version for version in versions if not is_built(version)]
    remedies = " ".join(f"./kumulus tools --kubernetes {version};" for version in missing)
    return pytest.mark.skipif(bool(missing), reason=f"Kubernetes {', '.join(missing)} is not built: {remedies}")


def on_offer() -> list[str]:
    """Each version, such as ``v1.35.4``, the default one first."""
    return [f"v{version}" for version in toolchain.kubernetes_versions()]

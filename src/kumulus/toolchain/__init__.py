"""The pinned tools Kumulus runs: found on PATH, or built from Go modules once per machine.

Only the standard library and `kumulus.host` are used here, since this runs before the virtual environment exists.
"""

from kumulus.toolchain.errors import ToolchainError, ToolMissing
from kumulus.toolchain.locate import find, kept, kubernetes_versions, version

__all__ = ["ToolMissing", "ToolchainError", "find", "kept", "kubernetes_versions", "version"]

"""Pulumi's provider protocol: the generated modules of its SDK, without the SDK.

``import pulumi`` takes longer (0.15 to 0.25 s) than everything else that the plugin needs, and every pulumi command
waits for the plugin to start.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pulumi.runtime.proto import (
        engine_pb2,
        engine_pb2_grpc,
        errors_pb2,
        plugin_pb2,
        provider_pb2,
        provider_pb2_grpc,
        status_pb2,
    )
else:
    _HOME = "pulumi.runtime.proto"

    def _package() -> str:
        """Return the name of a package that holds the generated modules: they import each other relatively."""
        if _HOME in sys.modules:
            return _HOME
        sdk = importlib.util.find_spec("pulumi")
        if sdk is None or not sdk.submodule_search_locations:
            raise ModuleNotFoundError("the Python package pulumi is missing; run 'make setup'")
        package = ModuleType("kumulus.provider._pulumi_protocol")
        package.__path__ = [str(Path(place) / "runtime" / "proto") for place in sdk.submodule_search_locations]
        sys.modules[package.__name__] = package
        return package.__name__

    _NAME = _package()
    engine_pb2 = importlib.import_module(f"{_NAME}.engine_pb2")
    engine_pb2_grpc = importlib.import_module(f"{_NAME}.engine_pb2_grpc")
    errors_pb2 = importlib.import_module(f"{_NAME}.errors_pb2")
    plugin_pb2 = importlib.import_module(f"{_NAME}.plugin_pb2")
    provider_pb2 = importlib.import_module(f"{_NAME}.provider_pb2")
    provider_pb2_grpc = importlib.import_module(f"{_NAME}.provider_pb2_grpc")
    status_pb2 = importlib.import_module(f"{_NAME}.status_pb2")

__all__ = [
    "engine_pb2",
    "engine_pb2_grpc",
    "errors_pb2",
    "plugin_pb2",
    "provider_pb2",
    "provider_pb2_grpc",
    "status_pb2",
]

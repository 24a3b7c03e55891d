"""Pulumi's provider protocol: the generated modules of its SDK, without the SDK.

``import pulumi`` takes longer (0.15 to 0.25 s) than everything else that the plugin needs, and every pulumi command
waits for the plugin to start.
"""

from __future__ import annotations

import importlib.util
import sys
from types import ModuleType
from typing import TYPE_CHECKING

__all__ = [
    "engine_pb2",
    "engine_pb2_grpc",
    "errors_pb2",
    "plugin_pb2",
    "provider_pb2",
    "provider_pb2_grpc",
    "status_pb2",
]

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
    _package = "pulumi.runtime.proto"
    if _package not in sys.modules:
        # The modules import each other relatively: a package of another name holds them.
        _sdk = importlib.util.find_spec("pulumi")
        if _sdk is None or not _sdk.submodule_search_locations:
            raise ModuleNotFoundError("the Python package pulumi is missing; run 'make setup'")
        _package = "kumulus.provider._pulumi_protocol"
        sys.modules[_package] = ModuleType(_package)
        sys.modules[_package].__path__ = [f"{place}/runtime/proto" for place in _sdk.submodule_search_locations]
    for _name in __all__:
        globals()[_name] = importlib.import_module(f"{_package}.{_name}")

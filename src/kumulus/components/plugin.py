"""Requests of the components to Pulumi's engine for the provider plugin, in their own version."""

from __future__ import annotations

import functools
import sys
from contextlib import suppress
from pathlib import Path

import pulumi
from pulumi.runtime.proto import resource_pb2_grpc
from pulumi.runtime.settings import get_monitor

from kumulus.host import installation
from kumulus.host.version import VERSION


def asked_for(opts: pulumi.ResourceOptions | None) -> pulumi.ResourceOptions:
    """Options for a resource of the plugin, with our version unless they name one."""
    # Imported here: that module asks for the plugin itself.
    from kumulus.components.engine import end_with_engine_if_its_program

    end_with_engine_if_its_program()
    make_known()
    return pulumi.ResourceOptions.merge(pulumi.ResourceOptions(version=VERSION), opts)


def asked() -> pulumi.InvokeOptions:
    """Options for invoking a function of the plugin."""
    make_known()
    return pulumi.InvokeOptions(version=VERSION)


def under_engine() -> bool:
    """Whether Pulumi's engine runs this program, rather than a test with mocks."""
    return isinstance(get_monitor(), resource_pb2_grpc.ResourceMonitorStub)


@functools.cache
def make_known() -> None:
    """Let the engine find the plugin of an installed Kumulus; in a checkout Pulumi.yaml names it.

    If the launcher cannot be written, the engine reports that there is no such plugin.
    """
    if installation.checkout() is None and under_engine():
        with suppress(OSError):
            installation.install_plugin(installation.pulumi_home(), Path(sys.executable))

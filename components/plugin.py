"""The provider plugin as the components ask Pulumi's engine for it: in their own version."""

from __future__ import annotations

import functools
import sys
from contextlib import suppress
from pathlib import Path

import pulumi
from pulumi.runtime.proto import resource_pb2_grpc
from pulumi.runtime.settings import get_monitor

from kumulus.surroundings import installation, launcher
from kumulus.surroundings.version import VERSION


def asked_for(opts: pulumi.ResourceOptions | None) -> pulumi.ResourceOptions:
    """Options of a resource of the plugin's, with the version wanted unless they name one."""
    make_known()
    return pulumi.ResourceOptions.merge(pulumi.ResourceOptions(version=VERSION), opts)


def asked() -> pulumi.InvokeOptions:
    """Options for asking the plugin something."""
    make_known()
    return pulumi.InvokeOptions(version=VERSION)


def under_engine() -> bool:
    """Whether Pulumi's engine runs this program, rather than a test with mocks."""
    return isinstance(get_monitor(), resource_pb2_grpc.ResourceMonitorStub)


@functools.cache
def make_known() -> None:
    """Let the engine find the plugin of an installed Kumulus; in a checkout Pulumi.yaml names it.

    Where that cannot be written, the engine says that there is no such plugin.
    """
    if installation.checkout() is None and under_engine():
        with suppress(OSError):
            launcher.install(launcher.pulumi_home(), Path(sys.executable))

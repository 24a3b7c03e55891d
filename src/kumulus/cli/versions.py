"""What `kumulus --version` says: the versions that a report of a fault should name."""

import platform
import sys
from collections.abc import Iterator

from kumulus.host import installation
from kumulus.host.version import VERSION
from kumulus.model.words import aligned
from kumulus.toolchain import pins
from kumulus.toolchain.locate import locate
from kumulus.toolchain.pins import Pins

_REPORTED = {"pulumi": "Pulumi", "kube-apiserver": "Kubernetes", "kwok": "KWOK", "etcd": "etcd"}


def versions() -> str:
    """One line for each program: its name, its version, and where it is."""
    known = pins.load()
    checkout = installation.checkout()
    rows = [
        ("Kumulus", VERSION, str(checkout or sys.prefix)),
        ("Python", platform.python_version(), sys.executable),
        *_tools(known),
    ]
    return aligned(rows)


def _tools(known: Pins) -> Iterator[tuple[str, str, str]]:
    for tool, name in _REPORTED.items():
        found = locate(known, known.tool(tool))
        yield name, found.version, str(found.path or "not there yet")

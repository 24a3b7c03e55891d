"""What `kumulus --version` says: the versions that a report of a fault should name."""

import platform
import sys

from kumulus.host import installation
from kumulus.host.version import VERSION
from kumulus.model.words import aligned
from kumulus.toolchain import pins
from kumulus.toolchain.locate import locate

_REPORTED = {"pulumi": "Pulumi", "kube-apiserver": "Kubernetes", "kwok": "KWOK", "etcd": "etcd"}


def versions() -> str:
    """One line for each program: its name, its version, and where it is."""
    known = pins.load()
    rows = [
        ("Kumulus", VERSION, str(installation.checkout() or sys.prefix)),
        ("Python", platform.python_version(), sys.executable),
    ]
    for tool, name in _REPORTED.items():
        found = locate(known, known.tool(tool))
        rows.append((name, found.version, str(found.path or "not there yet")))
    return aligned(rows)

"""Emulated clusters for tests: a control plane and its nodes in one line of Python, without Pulumi (docs/testing.md).

Public is what can be imported from here. The pytest plugin, the command `kumulus cluster` and the clusters themselves
are built on what is below Pulumi: `runtimes`, `nodes`, `stackfile`. The core imports nothing from here.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kumulus.testing.asynchronous import AsyncCluster
    from kumulus.testing.cluster import Cluster
    from kumulus.testing.errors import ClusterError, NotInTime
    from kumulus.testing.pool import Pool
    from kumulus.testing.reset import Reset
    from kumulus.testing.views import Event, Node, Pod

__all__ = ["AsyncCluster", "Cluster", "ClusterError", "Event", "Node", "NotInTime", "Pod", "Pool", "Reset"]

# Imported when asked for: pytest imports this package for everybody who has Kumulus, whether they use it or not.
_MODULES = {
    "AsyncCluster": "asynchronous",
    "Cluster": "cluster",
    "ClusterError": "errors",
    "Event": "views",
    "Node": "views",
    "NotInTime": "errors",
    "Pod": "views",
    "Pool": "pool",
    "Reset": "reset",
}


def __getattr__(name: str) -> object:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})

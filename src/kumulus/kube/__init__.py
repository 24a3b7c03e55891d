"""The asynchronous Kubernetes API client that the provider and the experiments share.

It knows the API's verbs, its errors and how to retry, and nothing about Kumulus: it imports no other package of ours.

Whatever gets a :class:`Client` and asks the API server may raise :class:`ApiError`, if the server refuses, and
:class:`Unreachable`, if it gives no answer. An argument `patience` is for how many seconds a server without an answer
is asked again. Docstrings name the two errors and this argument only where there is more to say of them.
"""

from typing import TYPE_CHECKING

from kumulus.kube.errors import ApiError, KubeconfigError, Unreachable

if TYPE_CHECKING:
    from kumulus.kube.client import Client
    from kumulus.kube.config import Connection, load_kubeconfig

__all__ = ["ApiError", "Client", "Connection", "KubeconfigError", "Unreachable", "load_kubeconfig"]


def __getattr__(name: str) -> object:
    # Imported when asked for: a plugin that only compares properties needs neither YAML, TLS nor HTTP.
    if name == "Client":
        from kumulus.kube.client import Client

        return Client
    if name in ("Connection", "load_kubeconfig"):
        from kumulus.kube import config

        return getattr(config, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

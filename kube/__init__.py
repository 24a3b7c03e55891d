"""The asynchronous Kubernetes API client that the provider and the experiments share.

It knows the API's verbs, its errors and how to retry, and nothing of Kumulus: it imports nothing of ours.
"""

from kube.client import Client
from kube.config import Connection, KubeconfigError, load_kubeconfig
from kube.errors import ApiError, Unreachable

__all__ = ["ApiError", "Client", "Connection", "KubeconfigError", "Unreachable", "load_kubeconfig"]

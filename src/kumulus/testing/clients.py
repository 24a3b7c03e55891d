"""Ready-made clients of other libraries, for the cluster's kubeconfig and never for the user's own."""

from functools import cached_property
from importlib import import_module
from pathlib import Path
from typing import Any

from kumulus.testing.errors import ClusterError


class Clients:
    """Clients of the libraries that are installed, each made when it is first asked for."""

    def __init__(self, kubeconfig: Path) -> None:
        self._kubeconfig = str(kubeconfig)

    @cached_property
    def kubernetes(self) -> Any:
        """An `ApiClient` of the package kubernetes: `CoreV1Api(cluster.clients.kubernetes)`."""
        return _library("kubernetes").config.new_client_from_config(config_file=self._kubeconfig)

    @cached_property
    def kr8s(self) -> Any:
        """The API of the package kr8s: `cluster.clients.kr8s.get("pods")`."""
        return _library("kr8s").api(kubeconfig=self._kubeconfig)

    @cached_property
    def lightkube(self) -> Any:
        """A `Client` of the package lightkube."""
        library = _library("lightkube")
        return library.Client(config=library.KubeConfig.from_file(self._kubeconfig))


def _library(name: str) -> Any:
    try:
        return import_module(name)
    except ImportError:
        raise ClusterError(f"the package {name} is not installed; install it: pip install {name}") from None

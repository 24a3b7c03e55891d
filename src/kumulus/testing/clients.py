"""Ready-made clients of other libraries, for the cluster's kubeconfig and never for the user's own."""

from importlib import import_module
from pathlib import Path
from typing import Any

from kumulus.testing.errors import ClusterError


class Clients:
    """Clients of the libraries that are installed, each made when it is first asked for."""

    def __init__(self, kubeconfig: Path) -> None:
        self._kubeconfig = str(kubeconfig)
        self._made: dict[str, Any] = {}

    @property
    def kubernetes(self) -> Any:
        """An `ApiClient` of the package kubernetes: `CoreV1Api(cluster.clients.kubernetes)`."""
        return self._one(
            "kubernetes", lambda library: library.config.new_client_from_config(config_file=self._kubeconfig)
        )

    @property
    def kr8s(self) -> Any:
        """The API of the package kr8s: `cluster.clients.kr8s.get("pods")`."""
        return self._one("kr8s", lambda library: library.api(kubeconfig=self._kubeconfig))

    @property
    def lightkube(self) -> Any:
        """A `Client` of the package lightkube."""
        return self._one(
            "lightkube",
            lambda library: library.Client(config=library.KubeConfig.from_file(self._kubeconfig)),
        )

    def _one(self, name: str, make: Any) -> Any:
        if name not in self._made:
            try:
                library = import_module(name)
            except ImportError:
                raise ClusterError(f"the package {name} is not installed; install it: pip install {name}") from None
            self._made[name] = make(library)
        return self._made[name]

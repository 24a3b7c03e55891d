"""A provider for pytest-kubernetes: the user's own fixture `k8s_manager` returns it (docs/testing.md)."""

from __future__ import annotations

import os
import shutil
from typing import Any, ClassVar

from pytest_kubernetes.options import ClusterOptions
from pytest_kubernetes.providers.base import AClusterManager

from kumulus import toolchain
from kumulus.testing.cluster import Cluster
from kumulus.testing.errors import ClusterError
from kumulus.testing.wanted import Nodes


class KumulusManager(AClusterManager):  # type: ignore[misc]
    """An emulated cluster; its provider configuration is a stack file."""

    nodes: ClassVar[Nodes] = 3
    """Its nodes, where there is no stack file; a subclass may say others."""
    cluster: Cluster | None = None
    """The cluster, for what pytest-kubernetes has no name for, such as faults; None before it is up."""
    _cluster_options: Any

    @classmethod
    def get_binary_name(cls) -> str:
        """The program that pytest-kubernetes asks for: kubectl, ours if the user has none."""
        if shutil.which("kubectl") is None:
            try:
                os.environ["PATH"] += f"{os.pathsep}{toolchain.find('kubectl').parent}"
            except toolchain.ToolchainError as error:
                raise ClusterError(str(error)) from None
        return "kubectl"

    def create(self, cluster_options: ClusterOptions | None = None, timeout: int = 20, **asked: Any) -> None:
        """Start it, and wait until its nodes take pods.

        Args:
            cluster_options: of pytest-kubernetes; the version of Kubernetes is not taken from it.
            timeout: has no effect.
            asked: further arguments of :class:`Cluster`.

        Raises:
            ClusterError: it does not start; nothing of it is left.
        """
        if cluster_options:
            self._cluster_options = self._cluster_options | cluster_options
        if self.cluster is None:
            file = self._cluster_options.provider_config
            like: dict[str, Any] = {"spec": file} if file else {"nodes": self.nodes}
            self.cluster = Cluster(**{**like, **asked}).start()
            self._cluster_options.kubeconfig_path = self.cluster.kubeconfig

    def reset(self) -> None:
        """Put it back to what it was when it had started; in place, unlike others."""
        if self.cluster is None:
            self.create()
        else:
            self.cluster.reset()

    def delete(self) -> None:
        """End it."""
        cluster, self.cluster = self.cluster, None
        self._cluster_options.kubeconfig_path = None
        if cluster is not None:
            cluster.stop()

    def load_image(self, image: str) -> None:
        """Do nothing: no image is needed, as nothing runs in a pod."""

    def _on_create(self, cluster_options: ClusterOptions, **asked: Any) -> None:
        self.create(cluster_options, **asked)

    def _on_delete(self) -> None:
        self.delete()

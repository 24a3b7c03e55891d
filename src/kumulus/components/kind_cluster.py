"""``KindCluster``: a real kind cluster, whose nodes are containers of this machine's Docker or Podman."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal, Unpack

import pulumi

from kumulus.components.arguments import checked
from kumulus.components.control_plane import ControlPlane, ControlPlaneArgs
from kumulus.components.inputs import CheckedInputs
from kumulus.components.mistakes import collected
from kumulus.stackfile.expand import kubelet_version
from kumulus.stackfile.model import ClusterSpec

# The keys of the section `kind`, by the arguments' names.
_KIND = {"node_image": "nodeImage", "provider": "provider", "wait": "wait", "adopt": "adopt"}
# The arguments' names, by the fields' paths in the stack file.
_NAMES = {
    "name": "cluster_name",
    "kubernetesVersion": "kubernetes_version",
    "kindConfig": "kind_config",
    **{f"kind.{key}": name for name, key in _KIND.items()},
}


class KindClusterArgs(ControlPlaneArgs, total=False):
    """Arguments of a KindCluster."""

    kubernetes_version: pulumi.Input[str]
    """A whole version such as ``1.35.4``. Default: that of kind's own node image. Another version replaces the cluster.
    """
    node_image: str
    """The image of every node, instead of the one that ``kind_config`` and ``kubernetes_version`` name."""
    provider: Literal["docker", "podman", "nerdctl"]
    """The container engine that runs the nodes. Default: the one that kind detects."""
    wait: str
    """How long to wait for the control plane, a Go duration such as ``3m``."""
    adopt: bool
    """Whether to take over a kind cluster of this name that already exists; ``destroy`` then deletes it. Default:
    False."""
    kind_config: Mapping[str, Any]
    """kind's own configuration, as in its file."""


@collected
class KindCluster(ControlPlane):
    """A cluster made by kind: add-ons run for real on its nodes, alongside the emulated ones."""

    runtime = "kind"

    def __init__(
        self, resource_name: str, *, opts: pulumi.ResourceOptions | None = None, **args: Unpack[KindClusterArgs]
    ) -> None:
        source = f"KindCluster {resource_name}"
        with checked(args, KindClusterArgs, source):
            values = {
                "runtime": self.runtime,
                "name": args.get("cluster_name") or resource_name,
                "kubernetesVersion": args.get("kubernetes_version"),
                "kind": {key: args.get(name) for name, key in _KIND.items()},
                "kindConfig": args.get("kind_config"),
            }
            found = CheckedInputs(ClusterSpec, source, values, _NAMES)
        self.kubelet_version = "" if found.is_later("kubernetesVersion") else kubelet_version(found.plain)
        options = found.plain.runtime_options(Path.cwd())
        self._declare(resource_name, found.plain.name, found["kubernetesVersion"], options, opts)

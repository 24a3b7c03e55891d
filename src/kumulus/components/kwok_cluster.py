"""``KwokCluster``: a local control plane without Docker."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Unpack

import pulumi

from kumulus.components.arguments import SectionOf, checked, fields
from kumulus.components.control_plane import ControlPlane, ControlPlaneArgs
from kumulus.components.inputs import CheckedInputs
from kumulus.components.mistakes import collected
from kumulus.stackfile.expand import kubelet_version
from kumulus.stackfile.model import ClusterSpec


class KwokClusterArgs(ControlPlaneArgs, total=False):
    """Arguments of a KwokCluster."""

    kubernetes_version: pulumi.Input[str]
    """A whole version such as ``1.35.4``. Default: the pinned one. The next minor version is applied in place."""
    api_server_port: int
    """The port of 127.0.0.1 that the API server listens on. Default: a free one."""
    feature_gates: Mapping[str, bool]
    """Kubernetes feature gates of all components."""
    runtime_config: Mapping[str, Any]
    """API groups and versions to enable or disable, such as ``{"api/all": True}``."""
    workloads: str
    """``native``: Kubernetes' own API for groups of pods, with its gates and API versions. Default: only with those."""
    events: str
    """``kubelet``: pods get the events that a kubelet writes. Default: only their scheduler's and controllers'."""
    device_bindings: Mapping[str, Mapping[str, Any]]
    """By DRA driver, what its controller does with devices that have to be made ready for a node, such as
    ``{"gpu.nvidia.com": {"after": "20s"}}``. Default: nothing."""
    etcd_fsync: bool
    """Whether etcd waits for the disk at every write; without it, a crash of the machine can lose the cluster."""
    etcd_quota: str
    """The most that etcd's data may take, a quantity such as ``8Gi``."""
    heartbeat_factor: int
    """Multiplies the intervals of the nodes' heartbeats, 1 to 1000."""
    create_through: str
    """``api`` to post every node. Default: ``storage``, wherever that gives the same nodes."""
    processes: Mapping[str, str]
    """Pods that really run, as processes of this machine: programs by image (docs/pods.md)."""
    stage_objects: bool
    """Whether KWOK takes its stages from objects of the cluster, as faults of pods need it. Default: False."""
    observability: Annotated[Mapping[str, Any], SectionOf("kumulus.extras.watch.observability:Observability")]
    """What is measured, as in the stack file's section, such as ``{"retention": "3h"}``. Default: nothing."""


_KWOK = fields(KwokClusterArgs, but=("cluster_name", "kubernetes_version", "stage_objects", "observability"))
_NAMES = {
    "name": "cluster_name",
    "kubernetesVersion": "kubernetes_version",
    **{f"kwok.{key}": name for name, key in _KWOK.items()},
}


@collected
class KwokCluster(ControlPlane):
    """etcd, the Kubernetes control plane and kwok-controller as processes on this machine."""

    runtime = "kwok"

    def __init__(
        self, resource_name: str, *, opts: pulumi.ResourceOptions | None = None, **args: Unpack[KwokClusterArgs]
    ) -> None:
        source = f"KwokCluster {resource_name}"
        with checked(args, KwokClusterArgs, source):
            values = {
                "name": args.get("cluster_name") or resource_name,
                "kubernetesVersion": args.get("kubernetes_version"),
                "kwok": {key: args.get(name) for name, key in _KWOK.items()},
                "observability": args.get("observability"),
            }
            found = CheckedInputs(ClusterSpec, source, values, _NAMES)
        self.kubelet_version = "" if found.is_later("kubernetesVersion") else kubelet_version(found.plain)
        options = found.plain.kwok.options()
        if args.get("stage_objects"):
            options["stageObjects"] = True
        # Any, as its class is in the extra that has brought the section.
        measured: Any = found.plain.sections_of_extras().get("observability")
        if measured:
            options |= {"observability": measured.options(), "podUsage": "gpus"}
        self._declare(resource_name, found.plain.name, found["kubernetesVersion"], options, opts)

"""``KwokCluster``: a local control plane without Docker."""

from __future__ import annotations

from typing import ClassVar

from components.control_plane import ControlPlane


class KwokCluster(ControlPlane):
    """etcd, the Kubernetes control plane and kwok-controller as processes on this machine.

    Arguments and attributes are those of :class:`ControlPlane`; its ``options`` are as the stack file's ``kwok:``
    section: apiServerPort, featureGates, runtimeConfig, etcdFsync, etcdQuota, heartbeatFactor; and ``observability``
    as its section of that name.
    """

    runtime: ClassVar[str] = "kwok"
    token: ClassVar[str] = "kumulus:index:KwokCluster"  # noqa: S105 - Pulumi's word for a type

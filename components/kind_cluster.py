"""``KindCluster``: a real kind cluster, whose nodes are containers of this machine's Docker or Podman."""

from __future__ import annotations

from typing import ClassVar

from components.control_plane import ControlPlane


class KindCluster(ControlPlane):
    """A cluster made by kind: add-ons run for real on its nodes, beside the emulated ones.

    Arguments and attributes are those of :class:`ControlPlane`; without a ``kubernetes_version`` kind's own node image
    is taken. Its ``options`` are as the stack file's ``kind:`` section (nodeImage, provider, wait, adopt), and
    ``kindConfig`` is kind's own configuration, a mapping.
    """

    runtime: ClassVar[str] = "kind"
    token: ClassVar[str] = "kumulus:index:KindCluster"  # noqa: S105 - Pulumi's word for a type

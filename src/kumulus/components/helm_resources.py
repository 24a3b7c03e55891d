"""The plugin's resources around a Helm release; the plugin's own documentation says what they do."""

from __future__ import annotations

from typing import Any

import pulumi

from kumulus.components.resources import ClusterLike, InCluster


class ReleasePreparation(InCluster):
    """``kumulus:index:ReleasePreparation``: a release's namespace, and that no leftover of an update is in its way.

    Args:
        resource_name: its name in the stack.
        namespace: the release's.
        name: the release's.
        create_namespace: make the namespace where it is missing, and remove it with the last add-on in it.
        cluster: the cluster component it belongs to.
        opts: Pulumi's resource options.

    Attributes:
        repairs: how often something was; the release follows.
    """

    repairs: pulumi.Output[int]

    def __init__(
        self,
        resource_name: str,
        *,
        namespace: pulumi.Input[str],
        name: str,
        create_namespace: pulumi.Input[bool],
        cluster: ClusterLike,
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        properties = {"namespace": namespace, "name": name, "createNamespace": create_namespace, "repairs": None}
        super().__init__("kumulus:index:ReleasePreparation", resource_name, cluster, properties, opts)


class ReleaseMark(InCluster):
    """``kumulus:index:ReleaseMark``: a note in the cluster that the state has a release.

    Args:
        resource_name: its name in the stack.
        namespace: the release's.
        name: the release's.
        cluster: the cluster component it belongs to.
        opts: Pulumi's resource options.
    """

    def __init__(
        self,
        resource_name: str,
        *,
        namespace: pulumi.Input[str],
        name: str,
        cluster: ClusterLike,
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        properties = {"namespace": namespace, "name": name}
        super().__init__("kumulus:index:ReleaseMark", resource_name, cluster, properties, opts)


class ReleaseReady(InCluster):
    """``kumulus:index:ReleaseReady``: that what a release has in the cluster has come up.

    Args:
        resource_name: its name in the stack.
        namespace: the release's.
        name: the release's.
        revision: the release's; another one is waited for again.
        timeout: how many seconds to wait.
        cluster: the cluster component it belongs to.
        opts: Pulumi's resource options.
    """

    def __init__(
        self,
        resource_name: str,
        *,
        namespace: pulumi.Input[str],
        name: str,
        revision: pulumi.Input[int | None],
        timeout: pulumi.Input[int],
        cluster: ClusterLike,
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        properties = {"namespace": namespace, "name": name, "revision": revision, "timeout": timeout}
        super().__init__("kumulus:index:ReleaseReady", resource_name, cluster, properties, opts)


class ChartCrds(InCluster):
    """``kumulus:index:ChartCrds``: the CRDs of a chart, made and kept up to date.

    Args:
        resource_name: its name in the stack.
        name: the add-on's name.
        chart: as Helm takes it.
        repository: the repository's URL, if it is from one.
        version: the newest when None.
        access: what a private source asks for.
        values: the release's, for the chart's schema to look at.
        cluster: the cluster component it belongs to.
        opts: Pulumi's resource options.
    """

    def __init__(
        self,
        resource_name: str,
        *,
        name: str,
        chart: pulumi.Input[str],
        repository: pulumi.Input[str | None] | None,
        version: pulumi.Input[str | None] | None,
        access: pulumi.Input[Any],
        values: pulumi.Input[Any],
        cluster: ClusterLike,
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        properties = {
            "name": name,
            "chart": chart,
            "repository": repository,
            "version": version,
            "access": access,
            "values": values,
        }
        super().__init__("kumulus:index:ChartCrds", resource_name, cluster, properties, opts)

"""``DeviceClass``: what ResourceClaims name to get a device of a driver."""

from __future__ import annotations

import pulumi
import pulumi_kubernetes as kubernetes
from pulumi_kubernetes.apiextensions import CustomResource

from components.resources import ClusterLike
from spec.pools import CLUSTER_LABEL
from spec.slices import RESOURCE_API, device_class_expression


class DeviceClass(pulumi.ComponentResource):
    """A DeviceClass of the cluster: one object, of the version of the API that its ResourceSlices have.

    Args:
        resource_name: its name in the stack, and the class's name.
        driver: the DRA driver whose devices belong to it.
        cluster: the cluster component it is declared in.
        provider: the Kubernetes provider of that cluster.
        opts: Pulumi's resource options.
    """

    def __init__(
        self,
        resource_name: str,
        *,
        driver: str,
        cluster: ClusterLike,
        provider: kubernetes.Provider,
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        super().__init__("kumulus:index:DeviceClass", resource_name, None, opts)
        self.object = CustomResource(
            f"{resource_name}-device-class",
            api_version=RESOURCE_API,
            kind="DeviceClass",
            # Another stack's class of this name is not taken over: its label is another one, which is a conflict.
            metadata={"name": resource_name, "labels": {CLUSTER_LABEL: cluster.cluster_name}},
            spec={"selectors": [{"cel": {"expression": device_class_expression(driver)}}]},
            opts=pulumi.ResourceOptions(
                parent=self,
                provider=provider,
                # As for add-ons, see docs/decisions/deleted-with.md.
                deleted_with=cluster.lifetime,
                delete_before_replace=False,
            ),
        )
        self.register_outputs({})

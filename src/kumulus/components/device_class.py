"""``DeviceClass``: what ResourceClaims name to get a device of a driver."""

from __future__ import annotations

from typing import Any, Required, TypedDict, Unpack

import pulumi

from kumulus.components.arguments import checked
from kumulus.components.inputs import CheckedInputs
from kumulus.components.mistakes import collected
from kumulus.components.resources import ClusterLike, KubernetesObject, depended_on
from kumulus.model.slices import RESOURCE_API, device_class_expression, device_class_spec
from kumulus.stackfile.resource_slices import ResourceSlices


class DeviceClassArgs(TypedDict, total=False):
    """Arguments of a DeviceClass."""

    cluster: Required[ClusterLike]
    """The cluster it is declared in."""
    driver: pulumi.Input[str]
    """The DRA driver whose devices belong to the class. Default: ``gpu.nvidia.com``."""
    class_name: str
    """The class's name. Default: the resource's name."""
    extended_resource_name: str
    """The extended resource that pods may request instead of claiming devices, such as ``nvidia.com/gpu``."""


@collected
class DeviceClass(pulumi.ComponentResource):
    """A DeviceClass of the cluster: one object, of the version of the API that its ResourceSlices have."""

    name: pulumi.Output[str]
    """The class's name, which ResourceClaims have as ``deviceClassName``."""

    def __init__(
        self, resource_name: str, *, opts: pulumi.ResourceOptions | None = None, **args: Unpack[DeviceClassArgs]
    ) -> None:
        source = f"DeviceClass {resource_name}"
        with checked(args, DeviceClassArgs, source):
            values = {"driver": args.get("driver"), "deviceClass": args.get("class_name") or resource_name}
            found = CheckedInputs(ResourceSlices, source, values, {"deviceClass": "class_name"})
        super().__init__("kumulus:index:DeviceClass", resource_name, None, opts)
        cluster, name = args["cluster"], found.plain.device_class
        spec = device_class_spec(_expression(found["driver"], name), args.get("extended_resource_name", ""))
        self.object = KubernetesObject(
            f"{resource_name}-device-class",
            cluster,
            {"apiVersion": RESOURCE_API, "kind": "DeviceClass", "metadata": {"name": name}, "spec": spec},
            parent=self,
            after=depended_on(opts),
        )
        self.name = pulumi.Output.from_input(name)
        self.register_outputs({"name": name})


def _expression(driver: Any, name: str) -> Any:
    if isinstance(driver, pulumi.Output):
        return driver.apply(lambda known: device_class_expression(known, name))
    return device_class_expression(driver, name)

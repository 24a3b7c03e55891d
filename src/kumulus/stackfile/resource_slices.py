"""Devices in the stack file, `nodeGroups[].resourceSlices`, and what a group's nodes publish because of it."""

from collections.abc import Iterable, Mapping
from typing import Annotated, Any, Literal

from pydantic import Field

from kumulus.model import device_checks as checks
from kumulus.model.devices import (
    MIG_CLASS,
    NVIDIA_DRIVER,
    Attribute,
    Devices,
    attribute,
    extended_resource,
    node_resources,
)
from kumulus.model.fields import DriverName, Section, checked, text, whole, whole_form
from kumulus.model.gfd import GPU_PRODUCT_LABEL, GpuProduct, family
from kumulus.model.names import ValueMistake, dns_subdomain_mistake
from kumulus.model.quantity import NANO, canonical_resources, parse
from kumulus.nodes.catalog.instances import gpu_products, mig_profiles


def _attributes(raw: Mapping[str, object]) -> dict[str, Attribute]:
    return {name: attribute(value) for name, value in raw.items()}


def _class_mistake(name: str) -> ValueMistake | None:
    return dns_subdomain_mistake(name) if name else None


DeviceCount = Annotated[int, checked(checks.count_problems, int, form=whole_form(1, checks.MOST_DEVICES))]
DeviceAttributes = Annotated[
    dict[str, dict[str, Any]], checked(checks.attribute_problems, _attributes, form="deviceAttributes")
]
DeviceCapacity = Annotated[
    dict[str, str], checked(checks.device_capacity_problems, canonical_resources, form="deviceCapacity")
]
TakenOfNode = Annotated[
    dict[str, Any], checked(checks.node_resource_problems, node_resources, form="nodeAllocatableResources")
]
Conditions = Annotated[tuple[str, ...], checked(checks.condition_problems, tuple, form="conditionTypes")]
ClassName = Annotated[str, text(_class_mistake, form="subdomainOrEmpty")]


BY_CLAIMS = "dra"
"""The `extendedResource` of groups whose pods get claims for it."""


class ResourceSlices(Section):
    """The devices each node of a group publishes for Dynamic Resource Allocation."""

    driver: DriverName = Field(default=NVIDIA_DRIVER, examples=[NVIDIA_DRIVER])
    """The DRA driver that publishes the devices."""
    count: DeviceCount | None = Field(default=None, examples=["8"])
    """Devices per node; by default as many as `capacity` has of the driver vendor's extended resource."""
    attributes: DeviceAttributes = Field(default_factory=dict, examples=["{example.com/tier: gold}"])
    """More attributes of every device; they override those of its product in the catalog."""
    capacity: DeviceCapacity = Field(default_factory=dict, examples=['{multiprocessors: "132"}'])
    """More capacities of every device; `memory` overrides the product's."""
    pcieRoots: Annotated[int, whole(1, checks.MOST_DEVICES)] | None = Field(default=None, examples=["4"])
    """How many PCIe roots a node's devices are spread over; by default each has its own."""
    numaNodes: Annotated[int, whole(1, checks.MOST_DEVICES)] | None = Field(default=None, examples=["2"])
    """How many NUMA nodes a node's devices are spread over; by default not published."""
    allowMultipleAllocations: bool = Field(default=False, examples=["true"])
    """Whether several claims may share a device, each taking part of its capacity `milli`, 1000, and of others. Before
    Kubernetes 1.36 it needs the feature gate DRAConsumableCapacity."""
    partitionable: bool = Field(default=False, examples=["true"])
    """Whether each GPU can also be claimed in parts: as any MIG devices of its product that fit on it together. Before
    Kubernetes 1.36 it needs the feature gate DRAPartitionableDevices."""
    bindingConditions: Conditions = Field(default=(), examples=["[FabricDeviceReady]"])
    """Conditions that an allocated device needs before its pod is bound; `kwok.deviceBindings` sets them. Before
    Kubernetes 1.36 they need the feature gate DRADeviceBindingConditions."""
    bindingFailureConditions: Conditions = Field(default=(), examples=["[FabricDeviceFailed]"])
    """Conditions by which it is given back; needed with `bindingConditions`."""
    bindsToNode: bool = Field(default=False, examples=["true"])
    """Whether an allocation with the device is for the chosen node only."""
    nodeAllocatableResources: TakenOfNode = Field(
        default_factory=dict, examples=['{memory: {overhead: {perPod: 2Gi}}, cpu: {mapping: {deviceMultiplier: "4"}}}']
    )
    """What an allocated device, or MIG device, takes of its node's cpu, memory or huge pages besides what pods request,
    as a ResourceSlice has it. It needs Kubernetes 1.37 and the feature gate DRANodeAllocatableResources."""
    extendedResource: bool | Literal["dra"] = Field(default=True, examples=["false"])
    """Whether nodes also offer the devices as the extended resource nvidia.com/gpu. With `dra` they do not, and pods
    that request it get claims, by `extendedResourceName` of the DeviceClass; before Kubernetes 1.36 this needs the
    feature gate DRAExtendedResource."""
    deviceClass: ClassName | None = Field(default=None, examples=[NVIDIA_DRIVER])
    """The DeviceClass to declare; by default one named after the driver; none if empty."""

    @property
    def device_class(self) -> str:
        """The name of the DeviceClass to declare; empty for none."""
        return self.driver if self.deviceClass is None else self.deviceClass


def device_classes(sections: Iterable[ResourceSlices | None]) -> dict[str, str]:
    """The DeviceClasses that groups declare, each with its driver, in the order of the file."""
    found: dict[str, str] = {}
    for each in sections:
        if each and each.device_class:
            found[each.device_class] = each.driver
            found |= {MIG_CLASS: each.driver} if each.partitionable else {}
    return found


def extended_names(sections: Iterable[ResourceSlices | None]) -> dict[str, str]:
    """The extended resources that pods may request instead of claiming devices, by the DeviceClass."""
    by_claims = [each for each in sections if each and each.device_class and each.extendedResource == BY_CLAIMS]
    return {each.device_class: extended_resource(each.driver) for each in by_claims}


def without_extended(resources: Mapping[str, str], slices: ResourceSlices | None) -> dict[str, str]:
    """A node's resources, without the extended resource if the group offers its devices only by slices."""
    dropped = extended_resource(slices.driver) if slices and slices.extendedResource is not True else ""
    return {name: amount for name, amount in resources.items() if name != dropped}


def devices_of(slices: ResourceSlices | None, capacity: Mapping[str, str], labels: Mapping[str, str]) -> Devices | None:
    """The devices that each node of a group publishes; None when it publishes none.

    Args:
        capacity: its nodes' capacity as written, including extended resources.
        labels: its nodes' labels, which name the product of its GPUs.
    """
    if slices is None:
        return None
    attributes: dict[str, Attribute] = {"type": {"string": "gpu"}}
    memory = {}
    product = gpu_products().get(labels.get(GPU_PRODUCT_LABEL, ""))
    if slices.driver == NVIDIA_DRIVER and product:
        attributes |= _nvidia(product)
        memory = {"memory": f"{product.memory}Mi"}
    return Devices(
        driver=slices.driver,
        count=slices.count or parse(capacity[extended_resource(slices.driver)]).nanos // NANO,
        attributes={**attributes, **slices.attributes},
        capacity=canonical_resources({**memory, **slices.capacity}),
        pcie_roots=slices.pcieRoots or 0,
        numa_nodes=slices.numaNodes or 0,
        allow_multiple_allocations=slices.allowMultipleAllocations,
        mig_profiles=mig_profiles().get(product.name, ()) if slices.partitionable and product else (),
        binds_to_node=slices.bindsToNode,
        binding_conditions=slices.bindingConditions,
        binding_failure_conditions=slices.bindingFailureConditions,
        node_allocatable_resources=slices.nodeAllocatableResources,
    )


def _nvidia(product: GpuProduct) -> dict[str, Attribute]:
    """The attributes that NVIDIA's driver publishes for a GPU, by its product."""
    major, minor = product.compute
    return {
        "productName": {"string": product.model},
        "brand": {"string": "Nvidia"},
        "architecture": {"string": family(major, minor).replace("-", " ").title()},
        "cudaComputeCapability": {"version": f"{major}.{minor}.0"},
        "driverVersion": {"version": _version(product.driver)},
        "cudaDriverVersion": {"version": _version(product.cuda)},
        "addressingMode": {"string": "None"},
    }


def _version(written: str) -> str:
    """A driver's version as a version of three numbers: 580.95.05 becomes 580.95.5, 13.0 becomes 13.0.0."""
    numbers = [str(int(number)) for number in written.split(".")]
    return ".".join([*numbers, "0", "0"][:3])

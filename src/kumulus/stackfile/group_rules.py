"""Rules of the stack file's `nodeGroups`: names of pools and nodes, what fits in a template, and what devices need.

As in `rules`, they check the plain file, so that all problems are reported at once.
"""

import re
from collections.abc import Mapping

from kumulus.model.checks import problem
from kumulus.model.device_checks import (
    binding_problems,
    capacity_key_problems,
    divided_and_shared_problem,
    milli_problems,
)
from kumulus.model.devices import GATES, NODE_ALLOCATABLE, NVIDIA_DRIVER, extended_resource
from kumulus.model.errors import Problem, Where, path_text, shown
from kumulus.model.gfd import GPU_PRODUCT_LABEL
from kumulus.model.named_nodes import named_count_problems
from kumulus.model.names import SYSTEM_GROUP, collisions, is_dns_subdomain, node_name, pool_name
from kumulus.model.pool_form import allocatable_problems, length_problems
from kumulus.model.quantity import QuantityError, parse
from kumulus.nodes.catalog.instances import gpu_products, instance_types, mig_profiles
from kumulus.runtimes import registry
from kumulus.stackfile.group_topology import placement_problems, template_problems, well_formed
from kumulus.stackfile.plain import Problems, count, duplicates, items, text
from kumulus.stackfile.resource_slices import BY_CLAIMS
from kumulus.stackfile.shapes import shape_problems


def group_problems(raw: Mapping[str, object]) -> Problems:
    """Groups of the same name, and problems within each group."""
    where: Where = ("nodeGroups",)
    groups = items(raw, "nodeGroups")
    yield from duplicates(groups, where, "name", "name")
    if any(_mapping(group, "nodeTemplate").get("declaredFeatures") for _, group in groups):
        yield from _older_gate_problems(raw, "NodeDeclaredFeatures", "groups have declaredFeatures")
    for index, group in groups:
        here = (*where, index)
        if group.get("name") == SYSTEM_GROUP:
            message = f"{shown(SYSTEM_GROUP)} is the group Kumulus adds for emulated add-ons"
            yield problem((*here, "name"), message, "write another name")
        yield from duplicates(items(group, "placement"), (*here, "placement"), "availabilityZone", "zone")
        yield from shape_problems(here, group)
        template = group.get("nodeTemplate")
        if isinstance(template, Mapping):
            inner = path_text((*here, "nodeTemplate"))
            for each in allocatable_problems(template.get("allocatable"), template.get("capacity")):
                yield Problem(f"{inner}.{each.path}", each.message, each.remedy)
        if topology := well_formed(group.get("topology")):
            yield from template_problems(here, topology, _mapping(group, "nodeTemplate", "metadata", "labels"))


def group_pool_problems(raw: Mapping[str, object]) -> Problems:
    """Pools whose nodes are miscounted, have too long names, or have the names of another pool's."""
    names: list[str] = []
    places: list[Where] = []
    seen: set[tuple[str, str]] = set()
    for index, group in items(raw, "nodeGroups"):
        topology = well_formed(group.get("topology"))
        for number, placement in items(group, "placement"):
            parts = text(group, "name"), text(placement, "availabilityZone")
            where: Where = ("nodeGroups", index, "placement", number)
            # The models report malformed names, and repeated ones are reported as duplicates.
            if not all(map(is_dns_subdomain, parts)) or parts in seen:
                continue
            seen.add(parts)
            pool = pool_name(*parts)
            names.append(pool)
            places.append(where)
            replicas, named = placement.get("replicas"), placement.get("nodes")
            yield from named_count_problems((*where, "replicas"), named, replicas)
            # A pool's name is part of its nodes' names only if the nodes do not have their own.
            counted = 0 if named else count(replicas)
            yield from length_problems(where, pool, counted, "write a shorter group or zone name")
            if topology:
                yield from placement_problems(where, topology, pool, count(replicas))
    for first, later in collisions(names):
        message = f"makes the same node names as {path_text(places[first])}, such as {node_name(names[later], 0)}"
        yield problem(places[later], message, "rename one of the two groups or zones")


def node_name_problems(raw: Mapping[str, object]) -> Problems:
    """Nodes with the same name as another named node, or as a node of a pool without named nodes."""
    counted: dict[str, int] = {}
    first: dict[str, str] = {}
    named: list[tuple[Where, str]] = []
    for index, group in items(raw, "nodeGroups"):
        for number, placement in items(group, "placement"):
            here: Where = ("nodeGroups", index, "placement", number)
            nodes = items(placement, "nodes")
            named += [((*here, "nodes", at, "name"), text(node, "name")) for at, node in nodes]
            if not nodes:
                pool = pool_name(text(group, "name"), text(placement, "availabilityZone"))
                counted[pool] = count(placement.get("replicas"))
    for place, name in named:
        listed = path_text(place[:-2])
        pool, _, ordinal = name.rpartition("-")
        if first.setdefault(name, listed) != listed:
            yield problem(place, f"{shown(name)} is already a node of {first[name]}", "write another name")
        elif pool in counted and _is_ordinal(ordinal, counted[pool]):
            yield problem(place, f"{shown(name)} is what the pool {pool} calls a node", "write another name")


def _is_ordinal(written: str, nodes: int) -> bool:
    """Whether a text is a number as in the name of one of so many nodes: without leading zeros."""
    # Python refuses to read a number of thousands of digits.
    if not written.isdecimal() or len(written) > len(str(nodes)):
        return False
    return written == str(int(written)) and int(written) < nodes


FIRST_VERSION = (1, 34)
"""The first version that serves and allocates resource.k8s.io/v1 by default (k8s.io/kubernetes pkg/features)."""

_GATE = "DynamicResourceAllocation"
_GATES_ON_SINCE = (1, 36)
"""The first version that allocates parts of devices, and has nodes declare features, by default (pkg/features)."""
_NODE_RESOURCES_SINCE = (1, 37)
"""The first version whose devices say what they take of their node (k8s.io/api/resource/v1)."""
_API_SWITCHES = ("resource.k8s.io/v1", "api/all", "api/ga")


def device_problems(raw: Mapping[str, object]) -> Problems:
    """Problems between the groups' `resourceSlices` and the rest of a cluster's mapping."""
    drivers: dict[str, str] = {}
    any_slices = False
    # The feature gates that are needed, each with the key that needs it.
    gates: dict[str, str] = {}
    for index, group in items(raw, "nodeGroups"):
        slices = group.get("resourceSlices")
        if not isinstance(slices, Mapping):
            continue
        any_slices = True
        where: Where = ("nodeGroups", index, "resourceSlices")
        template = _mapping(group, "nodeTemplate")
        yield from _count_problems(where, slices, _mapping(template, "capacity"))
        yield from _product_problems(where[:2], group, _mapping(template, "metadata", "labels"))
        yield from _class_problems(where, slices, drivers)
        if slices.get("allowMultipleAllocations") is True:
            gates[GATES["milli"]] = "allowMultipleAllocations"
            yield from milli_problems((*where, "capacity"), _mapping(slices, "capacity"))
        yield from binding_problems(where, slices)
        for key in ("bindingConditions", "bindsToNode"):
            if slices.get(key):
                gates["DRADeviceBindingConditions"] = key
        if slices.get("extendedResource") == BY_CLAIMS:
            gates["DRAExtendedResource"] = f"extendedResource: {BY_CLAIMS}"
            if slices.get("deviceClass") == "":
                remedy = "write its name, or leave it out"
                yield problem((*where, "deviceClass"), "is empty, and pods get their claims by it", remedy)
        yield from _node_resource_problems(raw, where, slices, template)
        if slices.get("partitionable") is True:
            gates[GATES["mig"]] = "partitionable"
            yield from _mig_problems(where, group, slices)
    if any_slices:
        yield from _api_problems(raw, "the groups' resourceSlices", "groups have resourceSlices")
    elif _mapping(raw, "kwok", "deviceBindings"):
        yield from _api_problems(raw, "deviceBindings", "deviceBindings are of its claims")
    for gate, key in gates.items():
        yield from _older_gate_problems(raw, gate, f"groups have resourceSlices with {key}")


def _mapping(raw: object, *keys: str) -> Mapping[str, object]:
    """The mapping at a path; empty where it is missing or is something else."""
    for key in keys:
        raw = raw.get(key) if isinstance(raw, Mapping) else None
    return raw if isinstance(raw, Mapping) else {}


def _driver(slices: Mapping[str, object]) -> str:
    driver = slices.get("driver")
    return driver if isinstance(driver, str) else NVIDIA_DRIVER


def _count_problems(where: Where, slices: Mapping[str, object], capacity: Mapping[str, object]) -> Problems:
    resource = extended_resource(_driver(slices))
    if slices.get("extendedResource") in (False, BY_CLAIMS) and not resource:
        message = f"says nothing, as no extended resource is known for the driver {_driver(slices)}"
        yield problem((*where, "extendedResource"), message, "leave it out, and the resource out of the capacity")
    if slices.get("count") is not None:
        return
    written = capacity.get(resource)
    if written is None:
        why = f", and the capacity has no {resource}" if resource else ""
        yield problem((*where, "count"), f"is missing{why}", "write count: 8")
        return
    try:
        amount = parse(written) if isinstance(written, str | int | float) else None
    except QuantityError:
        return
    if amount is not None and amount.is_whole() and not 1 <= amount.nanos // 10**9 <= 128:
        message = f"is missing, and the capacity's {resource} is {shown(written)}, not 1 to 128"
        yield problem((*where, "count"), message, "write count: 8")


def _product_problems(where: Where, group: Mapping[str, object], labels: Mapping[str, object]) -> Problems:
    slices = _mapping(group, "resourceSlices")
    if _driver(slices) != NVIDIA_DRIVER or "productName" in _mapping(slices, "attributes"):
        return
    label = labels.get(GPU_PRODUCT_LABEL)
    if isinstance(label, str) and label in gpu_products():
        return
    # An unknown product or instance type is reported by its own field.
    if group.get("gpuProduct") is not None or group.get("instanceType") not in (None, *instance_types()):
        return
    why = f", and {GPU_PRODUCT_LABEL}, {shown(label)}, is not in the catalog" if label is not None else ""
    remedy = "write gpuProduct: NVIDIA-H100-80GB-HBM3, or resourceSlices.attributes.productName for any other"
    yield problem((*where, "gpuProduct"), f"is missing, so that resourceSlices cannot say what is there{why}", remedy)


def _mig_problems(where: Where, group: Mapping[str, object], slices: Mapping[str, object]) -> Problems:
    """Only NVIDIA's driver publishes MIG devices, and only the catalog has a product's MIG profiles."""
    driver = _driver(slices)
    if driver != NVIDIA_DRIVER:
        yield problem((*where, "partitionable"), f"is of MIG devices, which {driver} does not have", "leave it out")
        return
    if slices.get("allowMultipleAllocations") is True:
        yield divided_and_shared_problem((*where, "allowMultipleAllocations"))
    labels = _mapping(group, "nodeTemplate", "metadata", "labels")
    named = group.get("instanceType")
    of_type = instance_types()[named].product if isinstance(named, str) and named in instance_types() else None
    product = labels.get(GPU_PRODUCT_LABEL) or group.get("gpuProduct") or of_type
    if isinstance(product, str) and product in gpu_products() and product not in mig_profiles():
        message = f"is true, and {product} cannot be divided"
        yield problem((*where, "partitionable"), message, f"leave it out, or take one of {', '.join(mig_profiles())}")
    elif product not in gpu_products() and "productName" in _mapping(slices, "attributes"):
        message = "is true, and the catalog does not know which MIG devices the GPUs have"
        yield problem((*where, "partitionable"), message, "write gpuProduct: NVIDIA-H100-80GB-HBM3")


def _class_problems(where: Where, slices: Mapping[str, object], drivers: dict[str, str]) -> Problems:
    """A DeviceClass of two drivers; `drivers` has those of the classes so far, to which this one is added."""
    driver = _driver(slices)
    name = slices.get("deviceClass")
    if name is None:
        name = driver
    if not isinstance(name, str) or not name:
        return
    other = drivers.setdefault(name, driver)
    if other != driver:
        message = f"{shown(name)} is already the class of the driver {other}"
        yield problem((*where, "deviceClass"), message, "write another name, or leave it out")


def _api_problems(raw: Mapping[str, object], needed_by: str, why: str) -> Problems:
    """Whether the cluster serves the API of devices."""
    if _is_before(FIRST_VERSION, raw):
        written = shown(raw["kubernetesVersion"])
        message = f"is {written}, which does not serve resource.k8s.io/v1 for {needed_by}"
        yield problem(("kubernetesVersion",), message, 'write "1.35.4" or later, or leave it out')
    if _mapping(raw, "kwok", "featureGates").get(_GATE) is False:
        message = f"is off, but {why}"
        yield problem(("kwok", "featureGates", _GATE), message, "leave it out: it is on by default")
    switches = _mapping(raw, "kwok", "runtimeConfig")
    if switches.get(_API_SWITCHES[0]) in (True, "true"):
        # The API's own switch wins over those of several.
        return
    for key in _API_SWITCHES:
        if switches.get(key) in (False, "false"):
            message = f"switches resource.k8s.io/v1 off, but {why}"
            yield problem(("kwok", "runtimeConfig", key), message, "leave it out")


def _node_resource_problems(
    raw: Mapping[str, object], where: Where, slices: Mapping[str, object], template: Mapping[str, object]
) -> Problems:
    key = "nodeAllocatableResources"
    if not slices.get(key):
        return
    if _is_before(_NODE_RESOURCES_SINCE, raw):
        message = f"is {shown(raw['kubernetesVersion'])}, which has no {key} of devices"
        yield problem(("kubernetesVersion",), message, f'write "1.37.2" or later, or leave {key} out')
    elif _is_kwok(raw):
        yield from _gate_problems(raw, NODE_ALLOCATABLE, f"groups have resourceSlices with {key}")
    declared = template.get("declaredFeatures")
    if isinstance(declared, list | tuple) and NODE_ALLOCATABLE not in declared:
        message = f"has no {NODE_ALLOCATABLE}, without which nodes cannot have devices with {key}"
        here = (*where[:2], "nodeTemplate", "declaredFeatures")
        yield problem(here, message, "add it, or leave declaredFeatures out")
    yield from capacity_key_problems(where, slices, ["memory"] if _driver(slices) == NVIDIA_DRIVER else ())


def _older_gate_problems(raw: Mapping[str, object], gate: str, why: str) -> Problems:
    """A kwok cluster of an older Kubernetes has the gate off; what other API servers drop is reported later."""
    if _is_kwok(raw) and _is_before(_GATES_ON_SINCE, raw):
        yield from _gate_problems(raw, gate, why)


def _gate_problems(raw: Mapping[str, object], gate: str, why: str) -> Problems:
    """A gate that is off by default, and not switched on."""
    if _mapping(raw, "kwok", "featureGates").get(gate) is not True:
        yield problem(("kwok", "featureGates", gate), f"is off, but {why}", f"write featureGates: {{{gate}: true}}")


def _is_kwok(raw: Mapping[str, object]) -> bool:
    return (raw.get("runtime") or registry.DEFAULT) == "kwok"


def _is_before(version: tuple[int, int], raw: Mapping[str, object]) -> bool:
    """Whether a cluster's Kubernetes is older than a version, major and minor; False if its file names none."""
    numbers = re.match(r"v?([0-9]+)\.([0-9]+)\.", text(raw, "kubernetesVersion"))
    return numbers is not None and (int(numbers[1]), int(numbers[2])) < version

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
from kumulus.stackfile.group_topology import placement_problems, template_problems, well_formed
from kumulus.stackfile.plain import Found, count, duplicates, items, text
from kumulus.stackfile.resource_slices import BY_CLAIMS
from kumulus.stackfile.shapes import shape_problems


def group_problems(raw: Mapping[str, object]) -> Found:
    """Groups of the same name, and problems within each group."""
    where: Where = ("nodeGroups",)
    groups = items(raw, "nodeGroups")
    yield from duplicates(groups, where, "name", "name")
    if any(_mapping(group, "nodeTemplate").get("declaredFeatures") for _, group in groups):
        yield from _gated(raw, "NodeDeclaredFeatures", "groups have declaredFeatures")
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


def group_pool_problems(raw: Mapping[str, object]) -> Found:
    """Pools whose nodes are miscounted, have too long names, or have the names of another pool's."""
    names, places, seen = [], [], set()
    for index, group in items(raw, "nodeGroups"):
        topology = well_formed(group.get("topology"))
        for number, placement in items(group, "placement"):
            parts = text(group, "name"), text(placement, "availabilityZone")
            where: Where = ("nodeGroups", index, "placement", number)
            # The models report malformed names, and repeated ones are reported as duplicates.
            if not all(map(is_dns_subdomain, parts)) or parts in seen:
                continue
            seen.add(parts)
            names.append(pool_name(*parts))
            places.append(where)
            named = placement.get("nodes")
            yield from named_count_problems((*where, "replicas"), named, placement.get("replicas"))
            # A pool's name is part of its nodes' names only if the nodes do not have their own.
            replicas = 0 if named else count(placement.get("replicas"))
            yield from length_problems(where, names[-1], replicas, "write a shorter group or zone name")
            if topology:
                yield from placement_problems(where, topology, names[-1], count(placement.get("replicas")))
    for one, other in collisions(names):
        node, place = node_name(names[other], 0), path_text(places[one])
        message = f"makes the same node names as {place}, such as {node}"
        yield problem(places[other], message, "rename one of the two groups or zones")


def node_name_problems(raw: Mapping[str, object]) -> Found:
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
        where, (pool, _, last) = path_text(place[:-2]), name.rpartition("-")
        if first.setdefault(name, where) != where:
            yield problem(place, f"{shown(name)} is already a node of {first[name]}", "write another name")
        elif pool in counted and last.isdecimal() and str(int(last)) == last and int(last) < counted[pool]:
            yield problem(place, f"{shown(name)} is what the pool {pool} calls a node", "write another name")


FIRST_VERSION = (1, 34)
"""The first version that serves and allocates resource.k8s.io/v1 by default (k8s.io/kubernetes pkg/features)."""

_GATE = "DynamicResourceAllocation"
_ON_SINCE = (1, 36)
"""The first version that allocates parts of devices, and has nodes declare features, by default (pkg/features)."""
_TAKEN_SINCE = (1, 37)
"""The first version whose devices say what they take of their node (k8s.io/api/resource/v1)."""
_API_SWITCHES = ("resource.k8s.io/v1", "api/all", "api/ga")


def device_problems(raw: Mapping[str, object]) -> Found:
    """Problems between the groups' `resourceSlices` and the rest of a cluster's mapping."""
    owners: dict[str, str] = {}
    some = False
    gates: dict[str, str] = {}
    for index, group in items(raw, "nodeGroups"):
        slices = group.get("resourceSlices")
        if not isinstance(slices, Mapping):
            continue
        some = True
        where: Where = ("nodeGroups", index, "resourceSlices")
        template = _mapping(group, "nodeTemplate")
        yield from _count(where, slices, _mapping(template, "capacity"))
        yield from _product(where[:2], group, _mapping(template, "metadata", "labels"))
        yield from _class(where, slices, owners)
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
        yield from _taken(raw, where, slices, template)
        if slices.get("partitionable") is True:
            gates[GATES["mig"]] = "partitionable"
            yield from _divided(where, group, slices)
    if some:
        yield from _served(raw, "the groups' resourceSlices", "groups have resourceSlices")
    elif _mapping(raw, "kwok", "deviceBindings"):
        yield from _served(raw, "deviceBindings", "deviceBindings are of its claims")
    for gate, key in gates.items():
        yield from _gated(raw, gate, f"groups have resourceSlices with {key}")


def _mapping(raw: object, *keys: str) -> Mapping[str, object]:
    """The mapping at a path; empty where it is missing or is something else."""
    for key in keys:
        raw = raw.get(key) if isinstance(raw, Mapping) else None
    return raw if isinstance(raw, Mapping) else {}


def _driver(slices: Mapping[str, object]) -> str:
    driver = slices.get("driver")
    return driver if isinstance(driver, str) else NVIDIA_DRIVER


def _count(where: Where, slices: Mapping[str, object], capacity: Mapping[str, object]) -> Found:
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


def _product(where: Where, group: Mapping[str, object], labels: Mapping[str, object]) -> Found:
    slices = _mapping(group, "resourceSlices")
    if _driver(slices) != NVIDIA_DRIVER or "productName" in _mapping(slices, "attributes"):
        return
    # An unknown product or instance type is reported by its own field.
    product_known = group.get("gpuProduct") is not None or group.get("instanceType") not in (None, *instance_types())
    label = labels.get(GPU_PRODUCT_LABEL)
    if product_known or (isinstance(label, str) and label in gpu_products()):
        return
    why = f", and {GPU_PRODUCT_LABEL}, {shown(label)}, is not in the catalog" if label is not None else ""
    remedy = "write gpuProduct: NVIDIA-H100-80GB-HBM3, or resourceSlices.attributes.productName for any other"
    yield problem((*where, "gpuProduct"), f"is missing, so that resourceSlices cannot say what is there{why}", remedy)


def _divided(where: Where, group: Mapping[str, object], slices: Mapping[str, object]) -> Found:
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


def _class(where: Where, slices: Mapping[str, object], owners: dict[str, str]) -> Found:
    name, driver = slices.get("deviceClass"), _driver(slices)
    name = driver if name is None else name
    if not isinstance(name, str) or not name:
        return
    other = owners.setdefault(name, driver)
    if other != driver:
        message = f"{shown(name)} is already the class of the driver {other}"
        yield problem((*where, "deviceClass"), message, "write another name, or leave it out")


def _served(raw: Mapping[str, object], needed_by: str, why: str) -> Found:
    version = _version(raw)
    if version and version < FIRST_VERSION:
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


def _taken(
    raw: Mapping[str, object], where: Where, slices: Mapping[str, object], template: Mapping[str, object]
) -> Found:
    key = "nodeAllocatableResources"
    if not slices.get(key):
        return
    if (_version(raw) or _TAKEN_SINCE) < _TAKEN_SINCE:
        message = f"is {shown(raw['kubernetesVersion'])}, which has no {key} of devices"
        yield problem(("kubernetesVersion",), message, f'write "1.37.2" or later, or leave {key} out')
    elif raw.get("runtime", "kwok") == "kwok":
        yield from _off(raw, NODE_ALLOCATABLE, f"groups have resourceSlices with {key}")
    declared = template.get("declaredFeatures")
    if isinstance(declared, list | tuple) and NODE_ALLOCATABLE not in declared:
        message = f"has no {NODE_ALLOCATABLE}, without which nodes cannot have devices with {key}"
        yield problem(
            (*where[:2], "nodeTemplate", "declaredFeatures"), message, "add it, or leave declaredFeatures out"
        )
    yield from capacity_key_problems(where, slices, ["memory"] if _driver(slices) == NVIDIA_DRIVER else ())


def _gated(raw: Mapping[str, object], gate: str, why: str) -> Found:
    """A kwok cluster of an older Kubernetes has the gate off; what other API servers drop is reported later."""
    if raw.get("runtime", "kwok") == "kwok" and (_version(raw) or _ON_SINCE) < _ON_SINCE:
        yield from _off(raw, gate, why)


def _off(raw: Mapping[str, object], gate: str, why: str) -> Found:
    """A gate that is off by default, and not switched on."""
    if _mapping(raw, "kwok", "featureGates").get(gate) is not True:
        yield problem(("kwok", "featureGates", gate), f"is off, but {why}", f"write featureGates: {{{gate}: true}}")


def _version(raw: Mapping[str, object]) -> tuple[int, int] | None:
    version = raw.get("kubernetesVersion")
    numbers = re.match(r"v?([0-9]+)\.([0-9]+)\.", version) if isinstance(version, str) else None
    return (int(numbers[1]), int(numbers[2])) if numbers else None

"""Checks of the devices of a pool, by the API server's rules for a ResourceSlice. Pure functions over plain values.

Source: k8s.io/kubernetes pkg/apis/resource/validation, and the limits in k8s.io/api/resource/v1.
"""

import re
from collections.abc import Iterable, Mapping
from functools import partial
from typing import Any

from kumulus.model.checks import (
    Check,
    of_mapping,
    problem,
    quantity_problems,
    switch_problems,
    text_problems,
    unknown_key_problems,
    whole_problems,
)
from kumulus.model.devices import MILLI, PER_DEVICE, PROFILES, SLICES_KEYS, WHOLE
from kumulus.model.errors import Problem, Where, shown
from kumulus.model.names import dns_subdomain_mistake, is_dns_subdomain, label_key_mistake, suggest
from kumulus.model.quantity import parse

MOST_DEVICES = 128
"""The most devices in one ResourceSlice; no machine has as many whole GPUs, so undivided devices fit in one slice."""

DRIVER_LENGTH = 63
_NAME_LENGTH = 32
_CONDITIONS = ("bindingConditions", "bindingFailureConditions")
MOST_CONDITIONS = 4
"""The most conditions of either kind that the binding of a device depends on."""
VALUE_LENGTH = 64
_MOST_NAMES = 32 - len(PER_DEVICE)
"""The most attributes and capacities of a device that a stack may set: Kumulus sets some itself."""
ATTRIBUTE_KINDS = ("string", "int", "bool", "version")
_INT64 = 2**63
_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
VERSION = re.compile(
    r"(0|[1-9][0-9]*)\.(0|[1-9][0-9]*)\.(0|[1-9][0-9]*)"
    r"(-[0-9A-Za-z-]+(\.[0-9A-Za-z-]+)*)?(\+[0-9A-Za-z-]+(\.[0-9A-Za-z-]+)*)?"
)
_PROFILE = re.compile(r"[1-7]g\.[0-9]+gb")
_LEADING_ZEROS = re.compile(r"(^|\.)0+(?=[0-9])")


@of_mapping
def devices_problems(where: Where, raw: Mapping[str, Any]) -> list[Problem]:
    """Every problem of devices in their plain form; empty when `devices_from` accepts it; None counts as absent."""
    found = unknown_key_problems(where, raw, SLICES_KEYS)
    for key, check in _CHECKS.items():
        if raw.get(key) is not None or key in _REQUIRED:
            found += check((*where, key), raw.get(key))
    capacity = raw.get("capacity")
    if raw.get("allowMultipleAllocations") is True and isinstance(capacity, Mapping):
        found += milli_problems((*where, "capacity"), capacity)
    found += binding_problems(where, raw)
    found += capacity_key_problems(where, raw)
    if raw.get("migProfiles"):
        found += profile_problems((*where, "migProfiles"), raw)
    names = sum(len(each) for each in (raw.get("attributes"), capacity) if isinstance(each, Mapping))
    if names > _MOST_NAMES:
        message = f"has {names} attributes and capacities, which is more than {_MOST_NAMES}"
        found.append(problem(where, message, "write fewer"))
    return found


def driver_problems(where: Where, raw: object) -> list[Problem]:
    """Whether a value is the name of a DRA driver: a DNS-1123 subdomain of at most 63 characters."""
    mistake_of = partial(dns_subdomain_mistake, longest=DRIVER_LENGTH)
    return text_problems(where, raw, mistake_of, "write a driver's name such as gpu.nvidia.com")


def count_problems(where: Where, raw: object) -> list[Problem]:
    """Whether a value is a number of devices that fits in one slice."""
    if isinstance(raw, int | float) and not isinstance(raw, bool) and raw > MOST_DEVICES:
        message = f"is {shown(raw)}, a ResourceSlice holds at most {MOST_DEVICES} devices"
        return [problem(where, message, f"write {MOST_DEVICES} or fewer; more devices take more nodes")]
    return whole_problems(where, raw, 1, MOST_DEVICES, "a number of devices")


@of_mapping
def attribute_problems(where: Where, raw: Mapping[str, Any]) -> list[Problem]:
    """Problems of a mapping from attribute names to values: a string, number or boolean, or {version: "1.2.3"}."""
    found: list[Problem] = []
    for name, value in raw.items():
        here = (*where, name)
        found += _name_problems(here, name, "attribute")
        if name in PER_DEVICE:
            found.append(problem(here, "differs from device to device, so Kumulus sets it itself", "leave it out"))
        found += _value_problems(here, value)
    return found


@of_mapping
def device_capacity_problems(where: Where, raw: Mapping[str, Any]) -> list[Problem]:
    """Problems of a mapping from the names of a device's capacities to quantities."""
    found: list[Problem] = []
    for name, written in raw.items():
        found += _name_problems((*where, name), name, "capacity")
        found += quantity_problems((*where, name), written, example="81559Mi")
    return found


def milli_problems(where: Where, capacity: Mapping[str, object]) -> list[Problem]:
    """Whether the capacities of a shared device leave out the name reserved for requesting parts of it."""
    message = f"is {WHOLE} on every device with allowMultipleAllocations, so Kumulus sets it itself"
    return [problem((*where, MILLI), message, "leave it out")] if MILLI in capacity else []


def profile_problems(where: Where, devices: Mapping[str, object]) -> list[Problem]:
    """Whether devices can be divided into the MIG devices whose profiles they name.

    Args:
        where: the place of their `migProfiles`.
        devices: in their plain form, or as the stack file has them.
    """
    names = devices["migProfiles"]
    if not isinstance(names, list | tuple) or not all(isinstance(n, str) and _PROFILE.fullmatch(n) for n in names):
        return [problem(where, f"is {shown(names)}", "write names of MIG profiles: [1g.10gb, …]")]
    if len(names) != len(PROFILES):
        return [problem(where, f"has {len(names)} names", f"write {len(PROFILES)}: of 1g, 1g twice, 2g, 3g, 4g and 7g")]
    capacity = devices.get("capacity")
    if not isinstance(capacity, Mapping) or "memory" not in capacity:
        return [problem((*where[:-1], "capacity"), "has no memory for MIG devices to have parts of", "write memory")]
    if devices.get("allowMultipleAllocations"):
        return [divided_and_shared_problem((*where[:-1], "allowMultipleAllocations"))]
    return []


def condition_problems(where: Where, raw: object) -> list[Problem]:
    """Whether a value is a list of types of conditions, at most four and each once."""
    remedy = "write a list of types of conditions, such as [FabricDeviceReady]"
    if not isinstance(raw, list | tuple) or not all(isinstance(each, str) for each in raw):
        return [problem(where, f"is {shown(raw)}", remedy)]
    mistakes = ((index, each, label_key_mistake(each)) for index, each in enumerate(raw))
    wrong = [problem((*where, index), f"{shown(each)} {why.message}", remedy) for index, each, why in mistakes if why]
    if wrong:
        return wrong
    if len(set(raw)) < len(raw) or len(raw) > MOST_CONDITIONS:
        message = f"has {len(raw)} conditions, {len(set(raw))} of them different"
        return [problem(where, message, f"write each once, and at most {MOST_CONDITIONS}")]
    return []


def binding_problems(where: Where, raw: Mapping[str, Any]) -> list[Problem]:
    """Whether devices have both kinds of conditions of binding or neither, and no condition in both."""
    ready, failed = (raw.get(key) or () for key in _CONDITIONS)
    if condition_problems(where, ready) or condition_problems(where, failed):
        # Reported with their own field.
        return []
    if bool(ready) != bool(failed):
        key, other = _CONDITIONS if failed else _CONDITIONS[::-1]
        return [problem((*where, key), f"is missing, and there are {other}", f"write {key}, or leave both out")]
    if both := sorted({*ready} & {*failed}):
        message = f"has {both[0]}, which {_CONDITIONS[0]} has, too"
        return [problem((*where, _CONDITIONS[1]), message, "write it in one of the two")]
    return []


NODE_RESOURCE = re.compile(r"cpu|memory|hugepages-.+")
NODE_WAYS: Mapping[str, tuple[str, ...]] = {
    "mapping": ("deviceMultiplier", "capacityKey", "capacityMultiplier"),
    "overhead": ("perPod", "perContainer"),
}
"""The two ways in which a device takes a resource of its node, and the keys of each."""
_KEYS_OF_A_MAPPING = ({"deviceMultiplier"}, {"capacityKey", "capacityMultiplier"})


@of_mapping
def node_resource_problems(where: Where, raw: Mapping[str, Any]) -> list[Problem]:
    """Problems of what an allocated device takes of its node: by resource, a mapping, an overhead, or both."""
    found: list[Problem] = []
    for name, ways in raw.items():
        here = (*where, name)
        if not NODE_RESOURCE.fullmatch(name):
            found.append(problem(here, "is nothing that devices take of a node", "write cpu, memory or hugepages-2Mi"))
        if not isinstance(ways, Mapping) or not ways:
            found.append(problem(here, f"is {shown(ways)}", 'write {overhead: {perPod: "2Gi"}}, or a mapping'))
            continue
        found += unknown_key_problems(here, ways, NODE_WAYS)
        for way in NODE_WAYS:
            if way in ways:
                found += _way_problems((*here, way), ways[way], way)
    return found


@of_mapping
def _way_problems(where: Where, raw: Mapping[str, Any], way: str) -> list[Problem]:
    found = unknown_key_problems(where, raw, NODE_WAYS[way])
    if way == "mapping" and {*raw} not in _KEYS_OF_A_MAPPING and not found:
        remedy = "write deviceMultiplier, or capacityKey with capacityMultiplier"
        found.append(problem(where, f"has {' and '.join(sorted(raw)) or 'nothing'}", remedy))
    elif not raw:
        found.append(problem(where, "is empty", "write perPod, perContainer or both"))
    for key in NODE_WAYS[way]:
        if key not in raw:
            continue
        here, value = (*where, key), raw[key]
        if key == "capacityKey":
            found += [] if isinstance(value, str) else [problem(here, f"is {shown(value)}", "write memory or milli")]
        elif wrong := quantity_problems(here, value, example='"2"'):
            found += wrong
        elif way == "mapping" and parse(value).nanos == 0:
            found.append(problem(here, "is 0", 'write more, such as "2"'))
    return found


def capacity_key_problems(where: Where, devices: Mapping[str, Any], more: Iterable[str] = ()) -> list[Problem]:
    """Problems of each `capacityKey`, by which what a claim takes of the node follows its part of a device's capacity.

    Args:
        devices: in their plain form, or as the stack file has them; what is malformed is reported elsewhere.
        more: names of further capacities that the devices have.
    """
    taken, capacity = devices.get("nodeAllocatableResources") or {}, devices.get("capacity")
    if node_resource_problems((), taken):
        return []
    names = {MILLI, *more, *(capacity if isinstance(capacity, Mapping) else ())}
    found = []
    for name, ways in taken.items():
        here = (*where, "nodeAllocatableResources", name, "mapping", "capacityKey")
        mapping = ways.get("mapping", {})
        if "capacityKey" not in mapping:
            continue
        key = mapping["capacityKey"]
        if key not in names:
            found.append(problem(here, f"{shown(key)} is no capacity", f"write one of {', '.join(sorted(names))}"))
        elif devices.get("allowMultipleAllocations") is not True:
            remedy = "write allowMultipleAllocations: true, or deviceMultiplier instead"
            found.append(problem(here, "is for claims of a part of a device, and devices are not shared", remedy))
    return found


def divided_and_shared_problem(where: Where) -> Problem:
    """The problem of devices that are both divided and shared."""
    return problem(where, "is true, and devices are divided into MIG devices", "leave one of the two out")


def version_problems(where: Where, raw: object) -> list[Problem]:
    """Whether a value is a version as semver.org defines it; 580.105.8 is one, 580.105.08 is not."""
    if isinstance(raw, str) and VERSION.fullmatch(raw) and len(raw) <= VALUE_LENGTH:
        return []
    meant = _LEADING_ZEROS.sub(r"\1", raw) if isinstance(raw, str) else str(raw)
    # 9 and 9.0 are 9.0.0.
    meant += ".0" * (2 - meant.count("."))
    remedy = f'write "{meant}"' if VERSION.fullmatch(meant) else 'write three numbers in quotes, such as "9.0.0"'
    return [problem(where, f"is {shown(raw)}, not a version of three numbers without leading zeros", remedy)]


def _name_problems(where: Where, name: str, what: str) -> list[Problem]:
    domain, slash, last = name.rpartition("/")
    if slash and not is_dns_subdomain(domain, DRIVER_LENGTH):
        return [problem(where, f"the {what}'s domain is not a DNS-1123 name", "write a name such as example.com/tier")]
    if len(last) > _NAME_LENGTH:
        message = f"the {what}'s name has {len(last)} characters, at most {_NAME_LENGTH} are allowed"
        return [problem(where, message, "write a shorter name")]
    if not _IDENTIFIER.fullmatch(last):
        meant = re.sub(r"[^A-Za-z0-9_]+", "_", last).strip("_")
        remedy = f"write {domain}{slash}{meant}" if _IDENTIFIER.fullmatch(meant) else "write letters, digits and '_'"
        return [problem(where, f"the {what}'s name is not of letters, digits and '_'", remedy)]
    return []


def _value_problems(where: Where, value: object) -> list[Problem]:
    if not isinstance(value, Mapping):
        return _plain_value_problems(where, value)
    if len(value) != 1 or next(iter(value)) not in ATTRIBUTE_KINDS:
        near = suggest(str(next(iter(value))), ATTRIBUTE_KINDS) if len(value) == 1 else None
        remedy = f"write {near}" if near else 'write a text, a number, true or false, or {version: "1.2.3"}'
        message = f"has {', '.join(map(str, value)) or 'no key'}, not one of {', '.join(ATTRIBUTE_KINDS)}"
        return [problem(where, message, remedy)]
    kind, content = next(iter(value.items()))
    here = (*where, kind)
    if kind == "version":
        return version_problems(here, content)
    wanted = {"string": str, "bool": bool, "int": int | float}[kind]
    if not isinstance(content, wanted) or (kind == "int" and isinstance(content, bool)):
        return [problem(here, f"is {shown(content)}", f"write a value of the kind {kind}")]
    return _plain_value_problems(here, content)


def _plain_value_problems(where: Where, value: object) -> list[Problem]:
    if isinstance(value, bool):
        return []
    if isinstance(value, int | float):
        return whole_problems(where, value, -_INT64, _INT64 - 1)
    if not isinstance(value, str):
        return [problem(where, f"is {shown(value)}", 'write a text, a number, true or false, or {version: "1.2.3"}')]
    size = len(value.encode("utf-8", "replace"))
    if size > VALUE_LENGTH:
        return [problem(where, f"is {size} bytes long, at most {VALUE_LENGTH} are allowed", "write less")]
    return []


_REQUIRED = ("driver", "count")
_SPREAD: Check[[]] = partial(whole_problems, least=1, most=MOST_DEVICES)
_CHECKS: Mapping[str, Check[[]]] = {
    "driver": driver_problems,
    "count": count_problems,
    "attributes": attribute_problems,
    "capacity": device_capacity_problems,
    "pcieRoots": _SPREAD,
    "numaNodes": _SPREAD,
    "allowMultipleAllocations": switch_problems,
    "bindsToNode": switch_problems,
    **dict.fromkeys(_CONDITIONS, condition_problems),
    "nodeAllocatableResources": node_resource_problems,
}
"""The checks of single keys."""

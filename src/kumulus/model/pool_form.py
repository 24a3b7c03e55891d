"""The plain form of a node pool, in which it is passed to the plugin and stored in records: checked, read, written."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, cast

from kumulus.model.bounds import bounds_from, bounds_problems
from kumulus.model.checks import (
    annotation_problems,
    label_problems,
    node_info_problems,
    problem,
    replicas_problems,
    resource_problems,
    taint_problems,
    unknown_key_problems,
    whole_problems,
)
from kumulus.model.device_checks import devices_problems
from kumulus.model.devices import devices_from
from kumulus.model.errors import Problem, SpecError, Where, shown
from kumulus.model.gfd import compacted, expanded, gpu_problems
from kumulus.model.named_nodes import named_nodes_from, named_nodes_problems
from kumulus.model.names import NODE_NAME_LENGTH, dns_subdomain_mistake, longest_node_name
from kumulus.model.pools import (
    ARCH_LABEL,
    GROUP_LABEL,
    INSTANCE_TYPE_LABEL,
    OS_LABEL,
    REGION_LABEL,
    ZONE_LABEL,
    NodeInfo,
    Pool,
    Taint,
    allocatable_of,
)
from kumulus.model.quantity import QuantityError, canonical, parse
from kumulus.model.shards import MOST_SHARDS
from kumulus.model.topology import topology_from, topology_problems

_OPTIONAL: dict[str, Callable[[Where, object], list[Problem]]] = {
    "labels": partial(label_problems, ours_too=True),
    "gpu": gpu_problems,
    "annotations": partial(annotation_problems, ours_too=True),
    "taints": taint_problems,
    "capacity": resource_problems,
    "allocatable": resource_problems,
    "nodeInfo": node_info_problems,
    "topology": topology_problems,
    "resourceSlices": devices_problems,
    "shards": lambda where, raw: whole_problems(where, raw, 1, MOST_SHARDS),
    "nodes": partial(named_nodes_problems, ours_too=True),
}
POOL_KEYS = ("name", "replicas", *_OPTIONAL, "minReplicas", "maxReplicas")
"""The keys of the plain form, in its order."""


def allocatable_problems(raw: object, capacity: object) -> list[Problem]:
    """Problems of an `allocatable` beyond those of its quantities: resources that the capacity lacks or has less of.

    Args:
        raw: the allocatable; may be malformed, which is reported elsewhere.
        capacity: the same template's capacity, likewise.
    """
    if not isinstance(raw, Mapping) or not isinstance(capacity, Mapping):
        return []
    found = []
    for name, written in raw.items():
        where = ("allocatable", str(name))
        if name not in capacity:
            found.append(problem(where, "is not in the capacity", "add it to the capacity or leave it out here"))
            continue
        try:
            too_much = parse(written).nanos > parse(capacity[name]).nanos
        except QuantityError:
            continue
        if too_much:
            remedy = f"write {shown(capacity[name])} or less"
            found.append(problem(where, f"{shown(written)} is more than the capacity", remedy))
    return found


def pool_problems(raw: Mapping[str, object]) -> list[Problem]:
    """Every problem of a pool in its plain form; empty when `pool_from_properties` accepts it.

    Args:
        raw: exactly the keys `POOL_KEYS`; `name` and `replicas` are required; None counts as absent. Numbers may be
            floats, as in JSON and protobuf.
    """
    found = unknown_key_problems((), raw, POOL_KEYS)
    most = raw.get("replicas") if raw.get("maxReplicas") is None else raw["maxReplicas"]
    found += _name_problems(raw.get("name"), 0 if raw.get("nodes") else most)
    found += replicas_problems(("replicas",), raw.get("replicas"))
    for key, check in _OPTIONAL.items():
        if raw.get(key) is not None:
            found += check((key,), raw[key])
    if raw.get("allocatable") is not None:
        found += allocatable_problems(raw["allocatable"], raw.get("capacity") or {})
    return found + bounds_problems((), raw, raw.get("replicas"))


def pool_from_properties(raw: Mapping[str, object]) -> Pool:
    """A pool from its plain form, with canonical quantities; group, zone and region are read from the labels.

    Raises:
        SpecError: the plain form is malformed, with every problem of `pool_problems`.
    """
    if problems := pool_problems(raw):
        name = raw.get("name")
        raise SpecError(problems, f"node pool {name}" if isinstance(name, str) else "a node pool")
    labels = dict(cast(Mapping[str, str], raw.get("labels") or {}))
    if raw.get("gpu"):
        labels = {**expanded(cast(Mapping[str, str], raw["gpu"])), **labels}
    capacity = canonical_resources(raw.get("capacity"))
    return Pool(
        name=cast(str, raw["name"]),
        group=labels.get(GROUP_LABEL) or labels.get(INSTANCE_TYPE_LABEL, ""),
        zone=labels.get(ZONE_LABEL, ""),
        region=labels.get(REGION_LABEL, ""),
        replicas=int(cast(float, raw["replicas"])),
        labels=labels,
        annotations=dict(cast(Mapping[str, str], raw.get("annotations") or {})),
        taints=taints_from(raw.get("taints")),
        capacity=capacity,
        allocatable=allocatable_of(capacity, canonical_resources(raw.get("allocatable"))),
        node_info=node_info_from(raw.get("nodeInfo"), labels),
        topology=topology_from(raw.get("topology")),
        devices=devices_from(cast(Mapping[str, Any], raw["resourceSlices"])) if raw.get("resourceSlices") else None,
        shards=int(cast(float, raw.get("shards") or 1)),
        nodes=named_nodes_from(raw.get("nodes")),
        bounds=bounds_from(raw),
    )


def pool_to_properties(pool: Pool) -> dict[str, object]:
    """The plain form of a pool, JSON-able, with the keys `POOL_KEYS`; `pool_from_properties` reads it back.

    A pool without GPU labels, a topology, devices, shards, named nodes or bounds has no such key, so that its form is
    the same as in states written before these keys existed.
    """
    labels, gpu = compacted(pool.labels)
    return {
        "name": pool.name,
        "replicas": pool.replicas,
        "labels": labels,
        **({"gpu": gpu} if gpu else {}),
        "annotations": dict(pool.annotations),
        "taints": [{"key": taint.key, "value": taint.value, "effect": taint.effect} for taint in pool.taints],
        "capacity": dict(pool.capacity),
        "allocatable": dict(pool.allocatable),
        "nodeInfo": pool.node_info.to_plain(),
        **({"topology": pool.topology.to_plain()} if pool.topology else {}),
        **({"resourceSlices": pool.devices.to_plain()} if pool.devices else {}),
        **({"shards": pool.shards} if pool.shards > 1 else {}),
        **({"nodes": [node.to_plain() for node in pool.nodes]} if pool.nodes else {}),
        **({"minReplicas": pool.bounds.least, "maxReplicas": pool.bounds.most} if pool.bounds else {}),
    }


def canonical_resources(raw: object) -> dict[str, str]:
    """Resources with their quantities in canonical form; the values are already checked."""
    return {name: canonical(written) for name, written in cast(Mapping[str, str], raw or {}).items()}


def taints_from(raw: object) -> tuple[Taint, ...]:
    """Taints from a checked list of mappings."""
    taints = cast(Sequence[Mapping[str, str]], raw or ())
    return tuple(Taint(taint["key"], taint.get("value") or "", taint["effect"]) for taint in taints)


def node_info_from(raw: object, labels: Mapping[str, str]) -> NodeInfo:
    """Node information: the given values (already checked), else those in the labels, else the defaults."""
    overrides = cast(Mapping[str, str | None], raw or {})
    default = NodeInfo()
    return NodeInfo(
        architecture=overrides.get("architecture") or labels.get(ARCH_LABEL) or default.architecture,
        operating_system=overrides.get("operatingSystem") or labels.get(OS_LABEL) or default.operating_system,
        kubelet_version=overrides.get("kubeletVersion") or default.kubelet_version,
    )


def _name_problems(name: object, replicas: object) -> list[Problem]:
    if not isinstance(name, str):
        return [problem(("name",), f"is {shown(name)}", "write the pool's name")]
    if mistake := dns_subdomain_mistake(name, NODE_NAME_LENGTH):
        return [problem(("name",), f"{shown(name)} {mistake.message}", mistake.remedy)]
    if replicas_problems((), replicas):
        return []
    longest = longest_node_name(name, int(cast(float, replicas)))
    if len(longest) <= NODE_NAME_LENGTH:
        return []
    message = f"makes the node name {longest} of {len(longest)} characters, at most {NODE_NAME_LENGTH} are allowed"
    return [problem(("name",), message, "write a shorter name")]

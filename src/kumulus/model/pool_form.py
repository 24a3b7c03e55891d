"""The plain form of a node pool, in which it is passed to the plugin and stored in records: checked, read, written.

What the form has follows from the fields of :class:`kumulus.model.pools.Pool`; here is what spans several of them.
"""

from collections.abc import Mapping
from dataclasses import fields
from typing import Any, cast

from kumulus.model.checks import problem, replicas_problems, text_problems, unknown_key_problems
from kumulus.model.errors import Problem, SpecError, Where, shown
from kumulus.model.gfd import expanded
from kumulus.model.names import NODE_NAME_LENGTH, node_name, node_name_mistake
from kumulus.model.pools import (
    GROUP_LABEL,
    INSTANCE_TYPE_LABEL,
    REGION_LABEL,
    ZONE_LABEL,
    Bounds,
    Key,
    Pool,
    allocatable_of,
    node_info_from,
)
from kumulus.model.quantity import QuantityError, parse

_KEYS: tuple[tuple[str, Key], ...] = tuple(
    (each.name, key) for each in fields(Pool) for key in each.metadata.get("keys", ())
)
POOL_KEYS = tuple(key.name for _, key in _KEYS)
"""The keys of the plain form, in its order."""


def allocatable_problems(raw: object, capacity: object) -> list[Problem]:
    """Problems of an `allocatable`, unless either is malformed: resources that the capacity lacks or has less of."""
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
    for _, key in _KEYS:
        if key.check and (raw.get(key.name) is not None or key.name == "replicas"):
            found += key.check((key.name,), raw.get(key.name))
    if raw.get("allocatable") is not None:
        found += allocatable_problems(raw["allocatable"], raw.get("capacity") or {})
    return found + bounds_problems((), raw, raw.get("replicas"))


def pool_from_properties(raw: Mapping[str, Any]) -> Pool:
    """A pool from its plain form, with canonical quantities; group, zone and region are read from the labels.

    Raises:
        SpecError: the plain form is malformed, with every problem of `pool_problems`.
    """
    if problems := pool_problems(raw):
        name = raw.get("name")
        raise SpecError(problems, f"node pool {name}" if isinstance(name, str) else "a node pool")
    return checked_pool(raw)


def checked_pool(raw: Mapping[str, Any]) -> Pool:
    """A pool from its plain form, of which `pool_problems` is empty; otherwise as :func:`pool_from_properties`."""
    read: dict[str, Any] = {
        field: key.read(raw[key.name]) for field, key in _KEYS if key.read and raw.get(key.name) is not None
    }
    labels = {**(expanded(raw["gpu"]) if raw.get("gpu") else {}), **read.get("labels", {})}
    most = raw.get("maxReplicas")
    following: dict[str, Any] = {
        "labels": labels,
        "group": labels.get(GROUP_LABEL) or labels.get(INSTANCE_TYPE_LABEL, ""),
        "zone": labels.get(ZONE_LABEL, ""),
        "region": labels.get(REGION_LABEL, ""),
        "allocatable": allocatable_of(read.get("capacity", {}), read.get("allocatable")),
        "node_info": node_info_from(raw.get("nodeInfo"), labels),
        "bounds": None if most is None else Bounds(int(raw.get("minReplicas") or 0), int(most)),
    }
    return Pool(**{**read, **following})


def pool_within(properties: Mapping[str, Any]) -> Pool:
    """A pool from properties that contain its plain form, such as the plugin's; SpecError if it is malformed."""
    return pool_from_properties({key: properties[key] for key in POOL_KEYS if key in properties})


def pool_to_properties(pool: Pool) -> dict[str, object]:
    """The plain form of a pool, JSON-able, with the keys `POOL_KEYS`; `pool_from_properties` reads it back."""
    # What a pool does not have has no key: its form is the same as in states written before the key existed.
    written = {key.name: key.write(getattr(pool, field)) for field, key in _KEYS}
    return {name: value for name, value in written.items() if value is not None}


def _name_problems(name: object, replicas: object) -> list[Problem]:
    if wrong := text_problems(("name",), name, node_name_mistake, "write the pool's name"):
        return wrong
    if replicas_problems((), replicas):
        return []
    return length_problems(("name",), str(name), int(cast(float, replicas)), "write a shorter name")


def length_problems(where: Where, pool: str, replicas: int, remedy: str) -> list[Problem]:
    """Whether the names of a pool's nodes, made of the pool's and their ordinals, are too long."""
    longest = node_name(pool, max(replicas - 1, 0))
    if len(longest) <= NODE_NAME_LENGTH:
        return []
    name = longest if len(longest) <= 100 else f"{longest[:97]}..."
    message = f"makes the node name {name} of {len(longest)} characters, at most {NODE_NAME_LENGTH} are allowed"
    return [problem(where, message, remedy)]


def bounds_problems(where: Where, raw: Mapping[str, object], replicas: object) -> list[Problem]:
    """Problems of `minReplicas` and `maxReplicas`, between which replicas are, if these are not malformed."""
    least, most = raw.get("minReplicas"), raw.get("maxReplicas")
    found = [
        each
        for key, value in (("minReplicas", least), ("maxReplicas", most))
        if value is not None
        for each in replicas_problems((*where, key), value)
    ]
    if found or (least is None and most is None):
        return found
    if most is None:
        return [problem((*where, "minReplicas"), "has no effect without maxReplicas", "write maxReplicas as well")]
    low, high = int(cast(float, least or 0)), int(cast(float, most))
    if low > high:
        return [problem((*where, "minReplicas"), f"is {low}, more than maxReplicas, {high}", f"write {high} or less")]
    if not isinstance(replicas, int | float) or replicas_problems((), replicas) or low <= replicas <= high:
        return []
    message = f"are {int(replicas)} replicas, and the group's bounds are {low} and {high}"
    return [problem((*where, "replicas"), message, f"write a number from {low} to {high}")]

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

_FIELD_KEYS: tuple[tuple[str, Key], ...] = tuple(
    (field.name, key) for field in fields(Pool) for key in field.metadata.get("keys", ())
)
"""The keys of the plain form, in its order, each with the name of its field of `Pool`."""
POOL_KEYS = tuple(key.name for _, key in _FIELD_KEYS)
"""Their names."""


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
    found += _name_problems(raw)
    for _, key in _FIELD_KEYS:
        value = raw.get(key.name)
        required = key.name == "replicas"
        if key.problems_of and (required or value is not None):
            found += key.problems_of((key.name,), value)
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
    """A pool from its plain form, which has no problems; otherwise the same as :func:`pool_from_properties`."""
    read: dict[str, Any] = {
        field: key.read(raw[key.name]) for field, key in _FIELD_KEYS if key.read and raw.get(key.name) is not None
    }
    gpu_labels = expanded(raw["gpu"]) if raw.get("gpu") else {}
    labels = {**gpu_labels, **read.get("labels", {})}
    most = raw.get("maxReplicas")
    derived: dict[str, Any] = {
        "labels": labels,
        "group": labels.get(GROUP_LABEL) or labels.get(INSTANCE_TYPE_LABEL, ""),
        "zone": labels.get(ZONE_LABEL, ""),
        "region": labels.get(REGION_LABEL, ""),
        "allocatable": allocatable_of(read.get("capacity", {}), read.get("allocatable")),
        "node_info": node_info_from(raw.get("nodeInfo"), labels),
        "bounds": None if most is None else Bounds(int(raw.get("minReplicas") or 0), int(most)),
    }
    return Pool(**{**read, **derived})


def pool_within(properties: Mapping[str, Any]) -> Pool:
    """A pool from properties that contain its plain form, such as the plugin's; SpecError if it is malformed."""
    return pool_from_properties({key: properties[key] for key in POOL_KEYS if key in properties})


def pool_to_properties(pool: Pool) -> dict[str, object]:
    """The plain form of a pool, JSON-able, with the keys `POOL_KEYS`; `pool_from_properties` reads it back."""
    # What a pool does not have has no key: its form is the same as in states written before the key existed.
    written = {key.name: key.write(getattr(pool, field)) for field, key in _FIELD_KEYS}
    return {name: value for name, value in written.items() if value is not None}


def _name_problems(raw: Mapping[str, object]) -> list[Problem]:
    """Problems of a pool's name, and of the longest node name that is made of it."""
    name = raw.get("name")
    if wrong := text_problems(("name",), name, node_name_mistake, "write the pool's name"):
        return wrong
    most = raw.get("replicas") if raw.get("maxReplicas") is None else raw["maxReplicas"]
    if raw.get("nodes"):
        # These have names of their own.
        most = 0
    if replicas_problems((), most):
        return []
    return length_problems(("name",), str(name), int(cast(float, most)), "write a shorter name")


def length_problems(where: Where, pool: str, replicas: int, remedy: str) -> list[Problem]:
    """Whether the names of a pool's nodes, made of the pool's and their ordinals, are too long."""
    longest = node_name(pool, max(replicas - 1, 0))
    if len(longest) <= NODE_NAME_LENGTH:
        return []
    name = longest if len(longest) <= 100 else f"{longest[:97]}..."
    message = f"makes the node name {name} of {len(longest)} characters, at most {NODE_NAME_LENGTH} are allowed"
    return [problem(where, message, remedy)]


def bounds_problems(where: Where, raw: Mapping[str, object], replicas: object) -> list[Problem]:
    """Problems of `minReplicas` and `maxReplicas`, and of replicas that are not between them.

    Args:
        replicas: if they are malformed, that is reported elsewhere.
    """
    least, most = raw.get("minReplicas"), raw.get("maxReplicas")
    found: list[Problem] = []
    for key in ("minReplicas", "maxReplicas"):
        if raw.get(key) is not None:
            found += replicas_problems((*where, key), raw[key])
    if found or (least is None and most is None):
        return found
    if most is None:
        return [problem((*where, "minReplicas"), "has no effect without maxReplicas", "write maxReplicas as well")]
    low, high = int(cast(float, least or 0)), int(cast(float, most))
    if low > high:
        return [problem((*where, "minReplicas"), f"is {low}, more than maxReplicas, {high}", f"write {high} or less")]
    if not isinstance(replicas, int | float) or replicas_problems((), replicas) or low <= replicas <= high:
        return []
    message = f"is {int(replicas)}, and the group's bounds are {low} and {high}"
    return [problem((*where, "replicas"), message, f"write a number from {low} to {high}")]

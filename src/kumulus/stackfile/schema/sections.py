"""Forms of whole sections without their own model: distributions, usage, devices, kind's file."""

from collections.abc import Mapping
from typing import Any

from kumulus.model.device_checks import ATTRIBUTE_KINDS, DRIVER_LENGTH, NODE_RESOURCE, NODE_WAYS, VALUE_LENGTH, VERSION
from kumulus.model.devices import PER_DEVICE
from kumulus.model.distributions import LARGEST_SIGMA, PARAMETERS
from kumulus.model.fields import FORM
from kumulus.model.topology import LEVELS
from kumulus.runtimes.kind.kind_config import CLUSTER, EMPTY, Values
from kumulus.stackfile.schema import patterns
from kumulus.stackfile.schema.document import Schema, closed

_DURATION: Schema = {FORM: "duration"}


def forms() -> dict[str, Schema]:
    """Every form of a section, by name."""
    absolute = [{"type": "string", "pattern": patterns.AMOUNT_SHARE}, {FORM: "quantity"}]
    return {
        "distribution": _distribution(),
        "usage": _usage({"anyOf": absolute}, load={"anyOf": absolute[1:]}),
        "usageShare": _usage(absolute[0]),
        "mappingOrYaml": {"anyOf": [{"type": "object"}, {"type": "string"}]},
        "kindConfig": {"anyOf": [_kind_config(), {"type": "string"}]},
        "topologyLabels": _topology_labels(),
        "deviceAttributes": _attributes(),
        "deviceCapacity": {
            "type": "object",
            "propertyNames": {"pattern": _device_name()},
            "additionalProperties": {FORM: "quantity"},
        },
        "nodeAllocatableResources": _node_resources(),
    }


_MEANINGS: Mapping[str, str] = {
    "fixed": "Always the same.",
    "uniform": "Evenly spread between two durations.",
    "normal": "Spread around a mean; what would be below 0 is 0.",
    "lognormal": "Spread around a median, with a long tail.",
    "exponential": "Distributed like the times between random events.",
    "value": "How long it takes.",
    "from": "The shortest.",
    "to": "The longest.",
    "mean": "The mean.",
    "median": "The median.",
    "sigma": "The standard deviation; for lognormal, that of the logarithm, a plain number.",
}


def _distribution() -> Schema:
    number = {"type": "number", "minimum": 0, "maximum": LARGEST_SIGMA}
    kinds = {}
    for kind, parameters in PARAMETERS.items():
        keys = {
            name: {**(_DURATION if unit == "duration" else number), "description": _MEANINGS[name]}
            for name, unit in parameters.items()
        }
        kinds[kind] = {**closed(keys, required=list(parameters)), "description": _MEANINGS[kind]}
    return {"anyOf": [_DURATION, closed(kinds, minProperties=1, maxProperties=1)]}


def _usage(amount: Schema, load: Schema | None = None) -> Schema:
    def described(form: Schema, description: str) -> Schema:
        return {**form, "description": description}

    point = {"at": described(_DURATION, "The pod's age."), "value": described(amount, "How much it uses then.")}
    spread = {"from": described(amount, "The least."), "to": described(amount, "The most.")}
    curve = {"type": "array", "minItems": 1, "items": closed(point, required=list(point))}
    ways = {
        "range": described(closed(spread, required=list(spread)), "Each reading is drawn between two amounts."),
        "curve": described(curve, "Points ordered by age, joined by lines; the last one holds from then on."),
    }
    if load:
        ways["load"] = described(load, "What the ready pods use together: each container an equal part of it.")
    return {"anyOf": [amount, closed(ways, minProperties=1, maxProperties=1)]}


def _topology_labels() -> Schema:
    key = {"type": "string", "pattern": patterns.LABEL_KEY}
    levels = {level: {**key, "description": f"The label key of the level {level}."} for level in LEVELS}
    return closed(levels, description="Label keys by level of the topology.")


def _device_name() -> str:
    return rf"^(?:(?=[^/]{{1,{DRIVER_LENGTH}}}/){patterns.SUBDOMAIN[1:-1]}/)?[A-Za-z_][A-Za-z0-9_]{{0,31}}$"


def _attributes() -> Schema:
    text = {"type": "string", "maxLength": VALUE_LENGTH}
    number = {"type": "integer", "minimum": -(2**63), "maximum": 2**63 - 1}
    version = {"type": "string", "maxLength": VALUE_LENGTH, "pattern": patterns.whole(VERSION)}
    kinds: Mapping[str, Schema] = {"string": text, "int": number, "bool": {"type": "boolean"}, "version": version}
    by_kind = {kind: {**kinds[kind], "description": f"A value of the kind {kind}."} for kind in ATTRIBUTE_KINDS}
    value = [text, number, {"type": "boolean"}, closed(by_kind, minProperties=1, maxProperties=1)]
    ours = "|".join(map(patterns.literal, PER_DEVICE))
    return {
        "type": "object",
        "propertyNames": {"pattern": f"^(?!(?:{ours})$){_device_name()[1:]}"},
        "additionalProperties": {"anyOf": value},
    }


_TAKEN: Mapping[str, str] = {
    "mapping": "For a device that is a part of the node's resource itself, such as a CPU.",
    "overhead": "For a device that needs some of the resource besides, such as a GPU.",
    "deviceMultiplier": "How much each allocated device takes.",
    "capacityKey": "The capacity of which a claim has a part.",
    "capacityMultiplier": "How much each unit of that part takes.",
    "perPod": "How much each pod with the claim takes.",
    "perContainer": "How much each of its containers with the claim takes.",
}


def _node_resources() -> Schema:
    keys = {key: {"type": "string"} if key == "capacityKey" else {FORM: "quantity"} for key in _TAKEN}
    described = {key: {**keys[key], "description": text} for key, text in _TAKEN.items()}
    ways = {
        way: {**closed({key: described[key] for key in of_it}, minProperties=1), "description": _TAKEN[way]}
        for way, of_it in NODE_WAYS.items()
    }
    whole, part = ["deviceMultiplier"], ["capacityKey", "capacityMultiplier"]
    ways["mapping"]["anyOf"] = [{"required": whole, "maxProperties": 1}, {"required": part, "maxProperties": 2}]
    return {
        "type": "object",
        "propertyNames": {"pattern": patterns.whole(NODE_RESOURCE)},
        "additionalProperties": closed(ways, minProperties=1),
    }


def _kind_config() -> Schema:
    whole = _kind_shape(CLUSTER)
    # kind also accepts an empty file.
    whole["anyOf"] = [{"maxProperties": 0}, {"required": list(EMPTY)}]
    return whole


def _kind_shape(shape: Any) -> Schema:
    if isinstance(shape, tuple):
        return {"enum": [*shape, None]}
    if isinstance(shape, list):
        return {"type": ["array", "null"], "items": _kind_shape(shape[0])}
    if isinstance(shape, Values):
        return {"type": ["object", "null"], "additionalProperties": _kind_shape(shape.shape)}
    if isinstance(shape, dict):
        return {**closed({key: _kind_shape(each) for key, each in shape.items()}), "type": ["object", "null"]}
    # As in go-yaml, any scalar is accepted as a string where a string is expected.
    kinds = {bool: ["boolean", "null"], int: ["integer", "null"]}
    return {"type": kinds.get(shape, ["string", "number", "boolean", "null"])}

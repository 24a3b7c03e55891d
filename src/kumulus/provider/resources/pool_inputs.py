"""A node pool's properties, their checks, and the pool that they describe."""

from __future__ import annotations

from dataclasses import replace

from kumulus.model.checks import MOST_REPLICAS
from kumulus.model.errors import SpecError
from kumulus.model.identity import Owner
from kumulus.model.named_nodes import count_problems
from kumulus.model.pool_form import POOL_KEYS, pool_from_properties, pool_problems, pool_to_properties
from kumulus.model.pools import Pool
from kumulus.nodes.errors import ProviderError
from kumulus.provider.object_types import DEVICES, NAMED_NODE, NODE_INFO, TAINT, TOPOLOGY
from kumulus.provider.properties import INTEGER, STRING, STRINGS, Property, listing
from kumulus.provider.resources.base import Checked, Failure, Operation, Properties
from kumulus.provider.resources.in_cluster import PLACE, PLACE_KEYS
from kumulus.provider.values import contains_unknown

# The inputs of PLACE, then the keys of `POOL_KEYS`; as an output, `replicas` is the number that a read has counted.
INPUTS = (
    *PLACE,
    Property(
        "name",
        STRING,
        "The pool's name; nodes are `<name>-<ordinal>`, from 0, unless they are named.",
        required=True,
        replaces=True,
    ),
    Property("replicas", INTEGER, "How many nodes; shrinking removes the highest ordinals.", required=True),
    Property("labels", STRINGS, "Labels of every node."),
    Property("gpu", STRINGS, "What the labels of GPU Feature Discovery follow from, in their place."),
    Property("annotations", STRINGS, "Annotations of every node."),
    Property("taints", listing(TAINT), "Taints of every node."),
    Property("capacity", STRINGS, "Quantities by resource, such as `cpu`, `memory`, `nvidia.com/gpu`."),
    Property("allocatable", STRINGS, "Quantities by resource; the capacity where it names none."),
    Property("nodeInfo", NODE_INFO, "What a node reports about its machine."),
    Property("topology", TOPOLOGY, "Where its nodes stand: racks, blocks, switches, NVLink domains."),
    Property("resourceSlices", DEVICES, "Devices of a node for Dynamic Resource Allocation, a ResourceSlice each."),
    Property("shards", INTEGER, "How many kwok-controllers share the nodes, each by its label."),
    Property("nodes", listing(NAMED_NODE), "Its nodes by name, as many as there are replicas."),
    Property("minReplicas", INTEGER, "The fewest nodes that an autoscaler leaves; 0 without."),
    Property("maxReplicas", INTEGER, "The most nodes that an autoscaler makes; with it, `replicas` is for the start."),
)


def checked(inputs: Properties, failures: list[Failure]) -> Checked:
    """The inputs in the form that is kept.

    Args:
        inputs: as the user wrote them.
        failures: the failures of checks common to all resources.
    """
    wire = {key: inputs[key] for key in POOL_KEYS if key in inputs}
    if not contains_unknown(wire):
        problems = pool_problems(wire)
        problems += count_problems(("replicas",), wire.get("nodes"), wire.get("replicas"))
        failures += [Failure(p.path, f"{p.message}; {p.remedy}") for p in problems]
        if not problems:
            # Quantities in the API server's own form, so that "1000m" and "1" are no difference.
            wire = pool_to_properties(pool_from_properties(wire))
    return Checked({**{key: inputs[key] for key in PLACE_KEYS if key in inputs}, **wire}, failures)


def pool_of(properties: Properties) -> Pool:
    """The pool, with the stack's identity among its nodes' labels.

    Raises:
        ProviderError: they describe no pool, as in a state that was edited by hand.
    """
    try:
        pool = pool_from_properties({key: properties[key] for key in POOL_KEYS if key in properties})
    except SpecError as error:
        raise ProviderError(str(error)) from None
    return replace(pool, labels={**pool.labels, **Owner(_identity(properties)).labels})


def _identity(properties: Properties) -> str:
    found = properties.get("stackId")
    return found if isinstance(found, str) else ""


def formerly(op: Operation, outputs: Properties) -> int:
    """How many nodes a pool had before; the number that a read counted may be lower."""
    counts = (op.old_inputs.get("replicas"), outputs.get("replicas"))
    # A state that was edited by hand may contain anything.
    return int(max((n for n in counts if isinstance(n, int | float) and 0 <= n <= MOST_REPLICAS), default=0))


def as_recorded(inputs: Properties, old_outputs: Properties) -> Properties:
    """The inputs, with what stays on record until an update is complete.

    That is the identity that nodes may still have, and what :func:`left_behind` returns.
    """
    marked = {"stackId": old_outputs.get("stackId")} if old_outputs else {}
    return {**inputs, **left_behind(old_outputs, inputs), **marked}


def left_behind(old_outputs: Properties, inputs: Properties) -> Properties:
    """The recorded devices of a pool that no longer publishes any, kept on record until their slices are gone."""
    key = "resourceSlices"
    return {key: old_outputs[key]} if old_outputs.get(key) and not inputs.get(key) else {}

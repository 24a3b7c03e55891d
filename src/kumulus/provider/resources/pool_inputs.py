"""A node pool's inputs: checked once, and what follows from them."""

from __future__ import annotations

from dataclasses import dataclass, replace

from kumulus.model.checks import MOST_REPLICAS
from kumulus.model.errors import SpecError
from kumulus.model.identity import Owner
from kumulus.model.named_nodes import count_problems
from kumulus.model.pool_form import POOL_KEYS, pool_from_properties, pool_problems, pool_to_properties, pool_within
from kumulus.model.pools import Pool
from kumulus.nodes.errors import ProviderError
from kumulus.provider.object_types import POOL
from kumulus.provider.resources.base import Checked, Failure, Operation, Properties
from kumulus.provider.resources.in_cluster import PLACE, PLACE_KEYS
from kumulus.provider.values import contains_unknown

INPUTS = (*PLACE, *(replace(each, replaces=each.name == "name") for each in POOL))
"""As an output, `replicas` is the number that a read has counted."""


@dataclass(frozen=True)
class Wanted:
    """What a stack wants of a pool.

    Args:
        pool: the pool, with the stack's identity among its nodes' labels.
        inputs: the checked inputs, which are recorded.
    """

    pool: Pool
    inputs: Properties


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
        pool = pool_within(properties)
    except SpecError as error:
        raise ProviderError(str(error)) from None
    identity = properties.get("stackId")
    return replace(pool, labels={**pool.labels, **Owner(identity if isinstance(identity, str) else "").labels})


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

"""Which pods a selector means, in jq."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence

from kumulus.model.owner_kinds import belongs_to
from kumulus.stackfile.pod_selection import PodSelector


def condition(selector: PodSelector) -> str:
    """A jq expression that is true for the pods of a selector and false for all others."""
    parts = [f".metadata.labels[{json.dumps(key)}]? == {json.dumps(value)}" for key, value in selector.labels.items()]
    if selector.namespaces:
        parts.append(_any(f".metadata.namespace == {json.dumps(name)}" for name in selector.namespaces))
    if selector.ownerKinds:
        parts.append(_any(map(belongs_to, selector.ownerKinds)))
    return " and ".join(parts) or "true"


def first_condition(selectors: Sequence[PodSelector], index: int) -> str:
    """As :func:`condition`, for the pods that no earlier one of several selectors has."""
    mine = selectors[index]
    earlier = [condition(other) for other in selectors[:index] if not other.apart_from(mine)]
    return (
        f"({condition(mine)}) and ({' or '.join(f'({each})' for each in earlier)} | not)"
        if earlier
        else condition(mine)
    )


def _any(parts: Iterable[str]) -> str:
    return f"({' or '.join(parts)})"

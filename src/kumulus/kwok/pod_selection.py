"""Which pods a selection means, in jq."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence

from kumulus.model.lifecycles import PodSelection
from kumulus.model.owner_kinds import belongs_to


def condition(selection: PodSelection) -> str:
    """A jq expression that is true for the pods of a selection and false for all others."""
    parts = [f".metadata.labels[{json.dumps(key)}]? == {json.dumps(value)}" for key, value in selection.labels.items()]
    if selection.namespaces:
        parts.append(_any(f".metadata.namespace == {json.dumps(name)}" for name in selection.namespaces))
    if selection.owner_kinds:
        parts.append(_any(map(belongs_to, selection.owner_kinds)))
    return " and ".join(parts) or "true"


def first_condition(selections: Sequence[PodSelection], index: int) -> str:
    """Like :func:`condition`, for the pods that no earlier selection selects."""
    mine = selections[index]
    earlier = [condition(other) for other in selections[:index] if not other.apart_from(mine)]
    return (
        f"({condition(mine)}) and ({' or '.join(f'({each})' for each in earlier)} | not)"
        if earlier
        else condition(mine)
    )


def _any(parts: Iterable[str]) -> str:
    return f"({' or '.join(parts)})"

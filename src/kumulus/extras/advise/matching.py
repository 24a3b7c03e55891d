"""Whether a pod's node selector and required node affinity allow a node, as the scheduler matches them.

Source: k8s.io/component-helpers/scheduling/corev1/nodeaffinity. Terms are alternatives; all expressions of a term hold.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def allowed(spec: Mapping[str, Any], labels: Mapping[str, str]) -> bool:
    """Whether a pod may run on a node with these labels.

    Args:
        spec: its `nodeSelector`, and its required node affinity as `nodeAffinity`.
        labels: the node's.
    """
    if any(labels.get(key) != str(value) for key, value in (spec.get("nodeSelector") or {}).items()):
        return False
    required = spec.get("nodeAffinity")
    if not required:
        return True
    return any(_term(term, labels) for term in required.get("nodeSelectorTerms") or [])


def _term(term: Mapping[str, Any], labels: Mapping[str, str]) -> bool:
    expressions = term.get("matchExpressions") or []
    # A node that does not exist yet has no name to match, and a term without expressions matches nothing.
    if term.get("matchFields") or not expressions:
        return False
    return all(_expression(each, labels.get(str(each.get("key")))) for each in expressions)


def _expression(expression: Mapping[str, Any], value: str | None) -> bool:
    values = [str(each) for each in expression.get("values") or []]
    match expression.get("operator"):
        case "In":
            return value in values
        case "NotIn":
            return value not in values
        case "Exists":
            return value is not None
        case "DoesNotExist":
            return value is None
        case "Gt" | "Lt" as operator:
            return _compared(operator, value, values)
    return False


def _compared(operator: str, value: str | None, values: list[str]) -> bool:
    try:
        mine, other = int(value or ""), int(values[0])
    except (ValueError, IndexError):
        return False
    return mine > other if operator == "Gt" else mine < other

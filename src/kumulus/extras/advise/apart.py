"""Which pods of a workload must not share a node: required anti-affinity by host, of one workload or between several.

Source: k8s.io/kubernetes/pkg/scheduler/framework/plugins/interpodaffinity. The rule holds both ways: a pod gets no node
that has a pod which it keeps away from, or which keeps away from it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

HOST = "kubernetes.io/hostname"
_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
# With these, it is not known here which pods a term selects.
_UNKNOWN = ("namespaces", "namespaceSelector", "mismatchLabelKeys")

Object = Mapping[str, Any]


@dataclass(frozen=True)
class Pods:
    """Pods that are alike."""

    name: str
    """Of their workload."""
    spec: Object
    labels: Object
    count: int
    namespace: str = "default"


@dataclass(frozen=True)
class _Kind:
    """What matters of pods here: their namespace, those of their labels that rules name, and their own rules."""

    namespace: str
    labels: Object
    terms: Sequence[Object]

    def keeps_away(self, other: _Kind) -> bool:
        """Whether a rule of these pods selects the others."""
        return self.namespace == other.namespace and any(
            _is_understood(term) and _selects(term, self.labels, other.labels) for term in self.terms
        )


def groups(pods: Sequence[Pods]) -> tuple[list[str], bool]:
    """For each of the pods, the group of which a node takes only one, empty if it may share its node with any.

    And whether there are rules that these groups do not express.
    """
    named = sorted({key for each in pods for term in _terms(each.spec) for key in _keys(term)})
    kinds: dict[str, _Kind] = {}
    keys: list[str] = []
    for each in pods:
        terms, labels = _terms(each.spec), {key: each.labels[key] for key in named if key in each.labels}
        # Labels that a controller adds, such as pod-template-hash, are different ones in every workload.
        added = any(key not in labels for term in terms for key in term.get("matchLabelKeys") or ())
        keys.append(json.dumps([each.namespace, labels, terms, each.name if added else ""], sort_keys=True))
        kinds.setdefault(keys[-1], _Kind(each.namespace, labels, terms))
    clashes = {
        key: frozenset(other for other, theirs in kinds.items() if kind.keeps_away(theirs) or theirs.keeps_away(kind))
        for key, kind in kinds.items()
    }
    group: dict[str, str] = {}
    for key, those in clashes.items():
        # Each keeps away from all of them, itself included: a node takes one.
        if key in those and all(clashes[other] == those for other in those):
            group[key] = group.get(min(those), str(len(group)))
            group.update(dict.fromkeys(those, group[key]))
        elif key in those:
            group[key] = str(len(group))
    left = any(
        not (key in group and group[key] == group.get(other)) for key, those in clashes.items() for other in those
    )
    return [group.get(key, "") for key in keys], left or any(_has_more(each) for each in pods)


def _has_more(pods: Pods) -> bool:
    """Whether they have a rule that is more than to keep away from each other."""
    rules = (pods.spec.get("affinity") or {}).get("podAntiAffinity") or {}
    own = [_is_understood(term) and _selects(term, pods.labels, pods.labels) for term in _terms(pods.spec)]
    return bool(rules.get(_PREFERRED)) or not all(own)


def _terms(spec: Object) -> Sequence[Object]:
    return ((spec.get("affinity") or {}).get("podAntiAffinity") or {}).get(_REQUIRED) or []


def _is_understood(term: Object) -> bool:
    selector = term.get("labelSelector")
    plain = isinstance(selector, Mapping) and bool(selector.get("matchLabels")) and not selector.get("matchExpressions")
    return plain and term.get("topologyKey") == HOST and not any(term.get(key) for key in _UNKNOWN)


def _selects(term: Object, mine: Object, theirs: Object) -> bool:
    """Whether a term that is understood, of a pod with labels (`mine`), selects pods with others."""
    if any(theirs.get(key) != value for key, value in term["labelSelector"]["matchLabels"].items()):
        return False
    return mine is theirs or all(
        key in mine and mine[key] == theirs.get(key) for key in term.get("matchLabelKeys") or ()
    )


def _keys(term: Object) -> Iterable[str]:
    return (
        *(term["labelSelector"]["matchLabels"] if _is_understood(term) else ()),
        *(term.get("matchLabelKeys") or ()),
    )

"""What pods use, as one ``ClusterResourceUsage`` object of KWOK with a CEL expression for each resource.

There is only one because KWOK selects its pods by name alone, and takes any one of several objects that fit. In an
expression, the first usage in the file that selects the pod decides, as with lifecycles.

An expression sees one pod. How many share a load stands in the pod's annotation :data:`SHARERS`, which
kumulus.extras.loads keeps.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import Any

from kumulus.model.lifecycles import Amount, PodSelection, PodUsage, Usage
from kumulus.model.owner_kinds import OWNER_LABELS

NAME = "kumulus"
SHARERS = "kumulus.io/load-sharers"
"""On a pod that is ready: how many containers, in all such pods, share the load. A pod without it has no part of it."""
_RUNNING = 'pod.status.phase == "Running"'
_NOTHING = 'Quantity("0")'
_AGE = "(UnixSecond(Now()) - UnixSecond(pod.status.startTime))"


def resource_usage(usages: Sequence[PodUsage]) -> dict[str, Any]:
    """The object's spec, for a stack's ``podUsage``."""
    gpus = _requested("nvidia.com/gpu")
    expressions = {
        "cpu": _chosen(usages, lambda usage: usage.cpu, _requested("cpu")),
        "memory": _chosen(usages, lambda usage: usage.memory, _requested("memory")),
        "gpus": f"{_RUNNING} ? {gpus} : {_NOTHING}",
        "gpu-busy": _chosen(usages, lambda usage: usage.gpu, gpus),
        "gpu-filled": _chosen(usages, lambda usage: usage.gpu_memory, gpus),
    }
    return {"usages": [{"usage": {name: {"expression": text} for name, text in expressions.items()}}]}


def _chosen(usages: Sequence[PodUsage], part: Callable[[PodUsage], Usage | None], whole: str) -> str:
    """A CEL expression of what a container uses, by the first usage that selects its pod.

    Args:
        part: a usage's part for one resource.
        whole: an expression of what a container requests of it, of which relative amounts are shares.
    """
    text = _NOTHING
    for usage in reversed(usages):
        wanted = part(usage)
        used = _over_time(wanted, whole) if wanted else _NOTHING
        text = f"{_condition(usage.selection)} ? {used} : ({text})"
    return f"{_RUNNING} ? ({text}) : {_NOTHING}"


def _condition(selection: PodSelection) -> str:
    """A CEL expression that is true for the pods of a selection; :func:`selects` is the same in Python."""
    labels = "pod.metadata.labels"
    parts = [
        f"{json.dumps(key)} in {labels} && {labels}[{json.dumps(key)}] == {json.dumps(value)}"
        for key, value in selection.labels.items()
    ]
    if selection.namespaces:
        parts.append(f"pod.metadata.namespace in {json.dumps(selection.namespaces)}")
    if selection.owner_kinds:
        parts.append("(" + " || ".join(f"({_owned(kind)})" for kind in selection.owner_kinds) + ")")
    return " && ".join(parts) or "true"


def selects(selection: PodSelection, pod: Mapping[str, Any]) -> bool:
    """Whether a selection selects a pod, as :func:`_condition` does in CEL."""
    metadata = pod["metadata"]
    labels = metadata.get("labels") or {}
    return (
        selection.labels.items() <= labels.items()
        and (not selection.namespaces or metadata["namespace"] in selection.namespaces)
        and (not selection.owner_kinds or any(_is_owned(kind, labels) for kind in selection.owner_kinds))
    )


def _is_owned(kind: str, labels: Mapping[str, str]) -> bool:
    key, values = OWNER_LABELS[kind]
    return key in labels and (not values or labels[key] in values)


def _owned(kind: str) -> str:
    """Whether a pod is of an owner of that kind, by its labels: KWOK's expressions cannot look into a pod's owners."""
    label, values = OWNER_LABELS[kind]
    labels, key = "pod.metadata.labels", json.dumps(label)
    return f"{key} in {labels}" + (f" && {labels}[{key}] in {json.dumps(values)}" if values else "")


def _requested(resource: str) -> str:
    """How much of a resource a container requests."""
    requests = "container.resources.requests"
    name = json.dumps(resource)
    return f"({name} in {requests} ? {requests}[{name}] : {_NOTHING})"


def _over_time(usage: Usage, whole: str) -> str:
    """A CEL expression of a usage at a pod's present age."""
    first = _number(usage.points[0][1], whole)
    if usage.shared:
        annotations = "pod.metadata.annotations"
        return f'("{SHARERS}" in {annotations} ? {first} / double({annotations}["{SHARERS}"]) : {_NOTHING})'
    if usage.upper is not None:
        # Drawn at each reading: CEL cannot derive a number from a pod's name.
        return f"({first} + ({_number(usage.upper, whole)} - {first}) * Rand())"
    # From the last line between two points to the first one: each is what holds before its end, or else what follows.
    text = _number(usage.points[-1][1], whole)
    lines = list(pairwise(usage.points))
    for (start, low), (end, high) in reversed(lines):
        share = f"({_AGE} - {start:.3f}) / {end - start:.3f}"
        line = f"{_number(low, whole)} + ({_number(high, whole)} - {_number(low, whole)}) * {share}"
        text = f"{_AGE} < {end:.3f} ? {line} : ({text})"
    before = usage.points[0][0]
    return f"({_AGE} < {before:.3f} ? {first} : ({text}))" if before else f"({text})"


def _number(amount: Amount, whole: str) -> str:
    return f"({whole} * {amount.number:.9f})" if amount.relative else f'Quantity("{amount.number:.9f}")'

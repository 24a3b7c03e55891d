"""Workloads as manifests: their pod templates, number of pods, and requests."""

import copy
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from kumulus.extras.schedulers.errors import SchedulerError
from kumulus.extras.schedulers.manifests import COUNTED, counted_templates
from kumulus.extras.schedulers.pod_requests import add, spec_requests
from kumulus.model.quantity import Quantity, QuantityError, parse

Manifest = dict[str, Any]


def copied(workloads: Iterable[Mapping[str, Any]]) -> list[Manifest]:
    """Copies that can be changed without touching the caller's manifests."""
    return [copy.deepcopy(dict(workload)) for workload in workloads]


def templates(workload: Manifest) -> list[tuple[Manifest, int]]:
    """The pod templates of a workload, each with the number of pods made from it; a Pod is its own template."""
    kind = workload.get("kind")
    if kind not in COUNTED:
        known = ", ".join(COUNTED)
        raise SchedulerError(
            f"{label(workload)}: a {kind} has no pod template that is known here\n  Write one of {known}"
        )
    if not (found := counted_templates(workload)):
        raise SchedulerError(f"{label(workload)} has no pod template\n  Write one with a list of containers")
    return found


def size(workloads: Sequence[Manifest]) -> int:
    """How many pods several workloads have at once."""
    return sum(count for workload in workloads for _, count in templates(workload))


def require_together(workloads: Sequence[Manifest], gang: str, minimum: int) -> None:
    """Make sure that a gang's pods are created together: if some come only once others run, all would wait forever.

    A StatefulSet creates its pods one by one, unless its podManagementPolicy is Parallel; a JobSet with the startup
    policy InOrder creates its Jobs likewise.
    """
    if sum(map(_at_first, workloads)) < minimum:
        raise SchedulerError(
            f"gang {gang!r}: some of its {minimum} pods are created only once others run\n"
            "  Write podManagementPolicy: Parallel in a StatefulSet, and no startupPolicy in a JobSet"
        )


def _at_first(workload: Manifest) -> int:
    counts, spec = [count for _, count in templates(workload)], workload["spec"]
    if workload["kind"] == "StatefulSet" and spec.get("podManagementPolicy") != "Parallel":
        return min(1, *counts)
    in_order = (spec.get("startupPolicy") or {}).get("startupPolicyOrder") == "InOrder"
    return counts[0] if workload["kind"] == "JobSet" and in_order else sum(counts)


def label(workload: Mapping[str, Any]) -> str:
    """A workload's name in messages: `Job default/train`."""
    metadata = workload.get("metadata") or {}
    return f"{workload.get('kind')} {metadata.get('namespace', 'default')}/{metadata.get('name')}"


def namespace(workload: Mapping[str, Any]) -> str:
    """The namespace of a workload; `default` if it names none."""
    return str(workload.get("metadata", {}).get("namespace") or "default")


def annotate(
    template: Manifest, labels: Mapping[str, str] | None = None, annotations: Mapping[str, str] | None = None
) -> None:
    """Add labels and annotations to a pod template or a workload."""
    # A key without a value is one that is missing.
    template["metadata"] = metadata = template.get("metadata") or {}
    for field, added in (("labels", labels), ("annotations", annotations)):
        if added:
            metadata[field] = {**(metadata.get(field) or {}), **added}


def assign(workloads: Sequence[Manifest], scheduler_name: str) -> None:
    """Make a scheduler responsible for the pods of the given workloads."""
    for workload in workloads:
        for template, _ in templates(workload):
            template["spec"]["schedulerName"] = scheduler_name


def priority_class(workloads: Sequence[Manifest]) -> str:
    """The priority class of a gang: that of the first pod template that names one; empty if none does."""
    pods = (template for workload in workloads for template, _ in templates(workload))
    return next((str(found) for pod in pods if (found := pod.get("spec", {}).get("priorityClassName"))), "")


def never_preempt(workloads: Sequence[Manifest]) -> bool:
    """Whether the pods of a gang preempt no others: its first pod template says it."""
    pods = (template for workload in workloads for template, _ in templates(workload))
    return bool(next(pods, {}).get("spec", {}).get("preemptionPolicy") == "Never")


def requests(template: Manifest) -> dict[str, Quantity]:
    """The requests of one pod of a template, as the scheduler counts them after the API server's defaulting."""
    return spec_requests(defaulted(template.get("spec", {})), _quantities)


def total_requests(workloads: Sequence[Manifest], pods: int) -> dict[str, str]:
    """The total requests of the first `pods` pods of the workloads, for a gang that needs no more than those."""
    total: dict[str, Quantity] = {}
    for workload in workloads:
        for template, count in templates(workload):
            taken = min(count, pods)
            add(total, {resource: amount * taken for resource, amount in requests(template).items()})
            pods -= taken
    return written(total)


def written(amounts: Mapping[str, Quantity]) -> dict[str, str]:
    """Amounts in the format of a manifest."""
    return {resource: str(amount) for resource, amount in amounts.items()}


def defaulted(spec: Mapping[str, Any]) -> dict[str, Any]:
    """A pod's spec in which a limit without a request becomes the request, as the API server does it.

    At the pod level this applies only to resources that no container requests. Source: k8s.io/kubernetes
    pkg/apis/core/v1/defaults.go, SetDefaults_Pod.
    """
    parts = {
        kind: [_limits_are_requests(container) for container in spec.get(kind) or []]
        for kind in ("containers", "initContainers")
    }
    named = {
        name for part in (*parts["containers"], *parts["initContainers"]) for name in part["resources"]["requests"]
    }
    return {**_limits_are_requests(spec, named), **parts}


def _limits_are_requests(part: Mapping[str, Any], but: Collection[str] = ()) -> dict[str, Any]:
    resources = part.get("resources") or {}
    limits = {name: amount for name, amount in (resources.get("limits") or {}).items() if name not in but}
    return {**part, "resources": {**resources, "requests": {**limits, **(resources.get("requests") or {})}}}


def _quantities(amounts: Mapping[str, Any]) -> dict[str, Quantity]:
    found = {}
    for resource, text in amounts.items():
        try:
            found[resource] = parse(text)
        except QuantityError as error:
            raise SchedulerError(f"{resource}: {text!r} {error}; write a quantity such as 500m or 16Gi") from None
    return found

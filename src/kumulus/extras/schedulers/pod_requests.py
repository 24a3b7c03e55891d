"""What a pod requests of its node, as the scheduler counts it.

Source: k8s.io/component-helpers/resource, helpers.go, `PodRequests`; a test compares the two on random pods.
"""

from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from typing import Any

from kumulus.model.quantity import ZERO, Quantity, QuantityError, parse

Requests = Mapping[str, Quantity]
"""Resources by name, such as ``cpu`` (cores), ``memory`` (bytes), ``nvidia.com/gpu`` (pieces)."""

_POD_LEVEL = ("cpu", "memory")
_HUGE_PAGES = "hugepages-"


def pod_requests(
    containers: Iterable[Requests],
    init_containers: Iterable[tuple[Requests, bool]] = (),
    pod: Requests | None = None,
    overhead: Requests | None = None,
) -> dict[str, Quantity]:
    """Add up what the parts of a pod request.

    Args:
        init_containers: what each init container requests, in their order, and whether it is a sidecar (its
            restartPolicy is Always), which keeps running alongside all later ones.
        pod: what the pod as a whole requests; it replaces the containers' requests for the resources that can be
            requested for a whole pod: cpu, memory and huge pages.
        overhead: the pod overhead of its RuntimeClass.
    """
    total: dict[str, Quantity] = {}
    for asked in containers:
        add(total, asked)
    sidecars: dict[str, Quantity] = {}
    peak: dict[str, Quantity] = {}
    for asked, sidecar in init_containers:
        if sidecar:
            add(total, asked)
            add(sidecars, asked)
        else:
            while_it_runs = dict(sidecars)
            add(while_it_runs, asked)
            _most(peak, while_it_runs)
    _most(total, peak)
    total.update((name, amount) for name, amount in (pod or {}).items() if is_pod_level(name))
    add(total, overhead or {})
    return total


def spec_requests(spec: Mapping[str, Any], read: Callable[[Mapping[str, Any]], Requests]) -> dict[str, Quantity]:
    """What a pod with this spec requests.

    Args:
        spec: a pod's ``spec`` as in JSON, with its defaults filled in, as returned by the API server.
        read: parses the quantities in a mapping from resources to strings.
    """
    return pod_requests(
        [read(_requests(container)) for container in spec.get("containers") or ()],
        [
            (read(_requests(container)), container.get("restartPolicy") == "Always")
            for container in spec.get("initContainers") or ()
        ],
        read(_requests(spec)),
        read(spec.get("overhead") or {}),
    )


def lenient(written: Mapping[str, Any]) -> dict[str, Quantity]:
    """Parses quantities from an API server; malformed ones are left out."""
    found = {}
    for name, text in written.items():
        with suppress(QuantityError):
            found[name] = parse(text)
    return found


def is_pod_level(resource: str) -> bool:
    """Whether the resource can be requested for a pod as a whole."""
    return resource in _POD_LEVEL or resource.startswith(_HUGE_PAGES)


def _requests(part: Mapping[str, Any]) -> Mapping[str, Any]:
    return (part.get("resources") or {}).get("requests") or {}


def add(total: dict[str, Quantity], more: Requests) -> None:
    """Add amounts to a total."""
    for name, amount in more.items():
        total[name] = total.get(name, ZERO) + amount


def _most(total: dict[str, Quantity], other: Requests) -> None:
    for name, amount in other.items():
        if name not in total or amount.nanos > total[name].nanos:
            total[name] = amount

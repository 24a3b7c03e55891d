"""The little of a pod and of a node that is looked at, taken out of a watch's events as they arrive.

An event is decoded, this much is kept of it, and the rest is dropped: so the memory of a run grows with the number of
pods by some hundred bytes each.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

from kube.codecs import JsonCodec, Listed
from kube.media import JSON
from lab.cluster.resources import Amount, amount, requested
from lab.plan.pods import JOB_LABEL, WORKLOAD_LABEL
from spec.pools import GROUP_LABEL, ZONE_LABEL

FINAL = ("Succeeded", "Failed")


class View(Protocol):
    """What a watch has to know of an object."""

    @property
    def key(self) -> str:
        """Namespace and name, or the name alone."""

    @property
    def version(self) -> str:
        """The resourceVersion."""


V = TypeVar("V", bound=View)


class PodView(NamedTuple):
    """A pod.

    Attributes:
        key: namespace and name.
        uid: tells it from another of its name.
        version: its resourceVersion.
        workload, job: what it is of; empty for none of ours.
        node: where it is bound; empty when it is not.
        phase: Pending, Running, Succeeded or Failed.
        waits: why it has no node: the reason and message of its condition PodScheduled; empty before it was tried.
        disrupted: the reason of its condition DisruptionTarget; empty without.
        scheduled: when it was bound by its condition, RFC 3339 to the second; empty when it is not.
        wants: what it requests.
    """

    key: str
    uid: str
    version: str
    workload: str
    job: str
    node: str
    phase: str
    waits: str
    disrupted: str
    scheduled: str
    wants: Amount


class NodeView(NamedTuple):
    """A node: its name, resourceVersion, labels that matter, and what pods can have of it."""

    key: str
    version: str
    product: str
    zone: str
    has: Amount


def pod_view(pod: dict[str, Any]) -> PodView:
    """Look at a pod."""
    metadata, spec, status = pod["metadata"], pod["spec"], pod["status"]
    labels = metadata.get("labels") or {}
    waits = disrupted = scheduled = ""
    for condition in status.get("conditions") or ():
        if condition["type"] == "PodScheduled":
            if condition["status"] == "True":
                scheduled = condition.get("lastTransitionTime") or ""
            else:
                waits = f"{condition.get('reason', '')}: {condition.get('message', '')}"
        elif condition["type"] == "DisruptionTarget" and condition["status"] == "True":
            disrupted = condition.get("reason", "")
    return PodView(
        f"{metadata['namespace']}/{metadata['name']}",
        metadata["uid"],
        metadata["resourceVersion"],
        labels.get(WORKLOAD_LABEL, ""),
        labels.get(JOB_LABEL, ""),
        spec.get("nodeName") or "",
        status.get("phase") or "Pending",
        waits,
        disrupted,
        scheduled,
        _wanted(pod),
    )


def _wanted(pod: dict[str, Any]) -> Amount:
    # Thousands of pods are alike, and parsing quantities costs more than all the rest.
    spec = pod["spec"]
    return _wanted_by(json.dumps([spec["containers"], spec.get("initContainers")], sort_keys=True))


@lru_cache(maxsize=1024)
def _wanted_by(containers: str) -> Amount:
    main, first = json.loads(containers)
    return requested({"spec": {"containers": main, "initContainers": first}})


def node_view(node: dict[str, Any], product_label: str) -> NodeView:
    """Look at a node.

    Args:
        node: the object.
        product_label: the label that says which GPUs it has; without it, its group says so.
    """
    metadata = node["metadata"]
    labels = metadata.get("labels") or {}
    product = labels.get(product_label) or labels.get(GROUP_LABEL) or "other"
    has = amount(node["status"].get("allocatable") or {})
    return NodeView(metadata["name"], metadata["resourceVersion"], product, labels.get(ZONE_LABEL, "-"), has)


class ViewCodec(Generic[V]):
    """Objects as what is looked at of them.

    Args:
        view: looks at one.
    """

    list_type = watch_type = JSON

    def __init__(self, view: Callable[[dict[str, Any]], V]) -> None:
        self._view = view
        self._json = JsonCodec()

    def listed(self, raw: bytes) -> Listed[V]:
        """Decode a page of a list."""
        page = self._json.listed(raw)
        return Listed([self._view(each) for each in page.items], page.version, page.token)

    def frames(self, buffer: bytearray) -> Iterator[bytes]:
        """Take whole events out of what was received."""
        return self._json.frames(buffer)

    def event(self, frame: bytes) -> tuple[str, Any]:
        """An event's type and what is looked at of its object."""
        kind, item = self._json.event(frame)
        return kind, self._view(item) if kind in ("ADDED", "MODIFIED", "DELETED") else item

    def key(self, item: V) -> str:
        """The object's key."""
        return item.key

    def version(self, item: Any) -> str:
        """The resourceVersion; bookmarks are whole objects."""
        return self._json.version(item) if isinstance(item, dict) else str(item.version)

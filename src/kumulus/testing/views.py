"""Nodes, pods and events as tests look at them: the usual questions as attributes, and the whole object."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Node:
    """A node."""

    object: Mapping[str, Any]
    """The whole object, as the API server has it."""

    @property
    def name(self) -> str:
        """Its name."""
        return str(self.object["metadata"]["name"])

    @property
    def labels(self) -> Mapping[str, str]:
        """Its labels."""
        return self.object["metadata"].get("labels") or {}

    @property
    def unschedulable(self) -> bool:
        """Whether it is cordoned."""
        return bool(self.object["spec"].get("unschedulable"))

    @property
    def taints(self) -> list[Mapping[str, str]]:
        """Its taints."""
        return self.object["spec"].get("taints") or []

    @property
    def conditions(self) -> dict[str, str]:
        """The status of each of its conditions, by type."""
        return {each["type"]: each["status"] for each in self.object["status"].get("conditions") or ()}

    @property
    def ready(self) -> bool:
        """Whether it is Ready."""
        return self.conditions.get("Ready") == "True"


@dataclass(frozen=True)
class Pod:
    """A pod."""

    object: Mapping[str, Any]
    """The whole object, as the API server has it."""

    @property
    def name(self) -> str:
        """Its name."""
        return str(self.object["metadata"]["name"])

    @property
    def namespace(self) -> str:
        """Its namespace."""
        return str(self.object["metadata"]["namespace"])

    @property
    def labels(self) -> Mapping[str, str]:
        """Its labels."""
        return self.object["metadata"].get("labels") or {}

    @property
    def phase(self) -> str:
        """Pending, Running, Succeeded, Failed or Unknown."""
        return str((self.object.get("status") or {}).get("phase") or "Pending")

    @property
    def node(self) -> str:
        """The node that it is bound to; empty for none."""
        return str(self.object["spec"].get("nodeName") or "")


@dataclass(frozen=True)
class Event:
    """An event."""

    when: str
    """When it was last seen, RFC 3339."""
    kind: str
    """The kind of the object that it is about."""
    name: str
    """The object's name."""
    namespace: str
    """The object's namespace; empty for none."""
    type: str
    """Normal or Warning."""
    reason: str
    """Such as FailedScheduling."""
    message: str
    """What happened."""
    count: int
    """How often."""

    def __str__(self) -> str:
        """One line."""
        where = f"{self.namespace}/" if self.namespace else ""
        times = f" (×{self.count})" if self.count > 1 else ""
        return f"{self.when} {self.type} {self.kind} {where}{self.name} {self.reason}: {self.message}{times}"


def events_of(items: Iterable[Mapping[str, Any]]) -> list[Event]:
    """Events by the time when they were last seen, the latest last."""
    return sorted((_event(each) for each in items), key=lambda each: each.when)


def last_events(events: Sequence[Event], most: int) -> list[Event]:
    """The last events for the report of a failed test: without those that say that a node is there, as each has one."""
    return [each for each in events if each.reason != "RegisteredNode"][-most:]


def _event(item: Mapping[str, Any]) -> Event:
    about, series = item.get("involvedObject") or {}, item.get("series") or {}
    times = (
        series.get("lastObservedTime"),
        item.get("lastTimestamp"),
        item.get("eventTime"),
        item["metadata"].get("creationTimestamp"),
    )
    last_seen = next(filter(None, times), "")
    return Event(
        # Without the fractions of a second that some of them have.
        when=f"{last_seen[:19]}Z",
        kind=str(about.get("kind") or ""),
        name=str(about.get("name") or ""),
        namespace=str(about.get("namespace") or ""),
        type=str(item.get("type") or ""),
        reason=str(item.get("reason") or ""),
        message=str(item.get("message") or "").strip(),
        count=int(series.get("count") or item.get("count") or 1),
    )

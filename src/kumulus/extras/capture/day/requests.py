"""One request that changed something in a cluster, from any kind of recording.

Who made a request: a user, a controller that would do so again, a scheduler, or a node. Kubernetes' own components are
recognized by their user names, or, if all have the same one, as under kwokctl, by the program's name in the user agent.
Source: k8s.io/kubernetes cmd/kube-controller-manager, plugin/pkg/auth/authorizer/rbac.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from kumulus.extras.schedulers import registry

CHANGING = frozenset(("create", "update", "patch", "delete", "deletecollection"))
_CONTROL = "kube-controller-manager"
_ACCOUNT = "system:serviceaccount:kube-system:"
# Controllers that delete pods because of the state of their nodes, or because the pods have ended.
_FOLLOWING = ("taint-eviction-controller", "pod-garbage-collector", "node-controller", "node-lifecycle-controller")
_OTHER_SCHEDULERS = ("koord-scheduler",)
_NODES = ("kubelet", "kwok")


class Unusable(Exception):
    """An entry cannot be used for a replay; says why."""


@dataclass(frozen=True, slots=True)
class ApiRequest:
    """A request that the API server carried out.

    Args:
        at: when it was received, in seconds since 1970.
        verb: one of `CHANGING`.
        group, resource, subresource: what it was about; the subresource is empty for the object itself.
        namespace, name: of the object; the name is empty if the server generated it and no answer was recorded.
        sent: the request's body; None if it was not recorded.
        answered: the object in the server's answer; None if it was not recorded.
        program: the user agent.
        selector: the label selector of a deleted collection, from the request.
        created: whether the answer said that the object is new.
    """

    at: float
    verb: str
    group: str
    version: str
    resource: str
    subresource: str
    namespace: str
    name: str
    sent: Any = None
    answered: Mapping[str, Any] | None = None
    user: str = ""
    program: str = ""
    selector: str = ""
    created: bool = False

    @property
    def body(self) -> Mapping[str, Any] | None:
        """The object itself: as the server stored it, or else as it was sent."""
        if self.answered is not None:
            return self.answered
        return self.sent if isinstance(self.sent, Mapping) else None

    @property
    def api_version(self) -> str:
        """The `apiVersion` of the object."""
        return f"{self.group}/{self.version}" if self.group else self.version


@dataclass
class RequestCounts:
    """Counts what was read."""

    entries: int = 0
    bad: list[str] = field(default_factory=list)
    """The first entries that cannot be read, with their lines."""
    bad_count: int = 0
    apart: float = 0.0
    """The most seconds between two captures; 0 without captures."""

    MOST = 10

    def refuse(self, place: str, why: str) -> None:
        """Count an entry that cannot be read."""
        self.bad_count += 1
        if len(self.bad) < self.MOST:
            self.bad.append(f"{place}: {why}")


def seconds(written: object) -> float:
    """A time of RFC 3339 as seconds since 1970."""
    try:
        found = datetime.fromisoformat(str(written).replace("Z", "+00:00"))
    except ValueError:
        raise Unusable(f"{str(written)[:40]!r} is no time") from None
    return (found if found.tzinfo else found.replace(tzinfo=UTC)).timestamp()


def by_control(request: ApiRequest) -> bool:
    """Whether one of Kubernetes' own controllers made the request."""
    return (
        _CONTROL in request.user
        or (request.user.startswith(_ACCOUNT) and request.user.endswith("-controller"))
        or request.user == f"{_ACCOUNT}generic-garbage-collector"
        or request.program.startswith(_CONTROL)
    )


def by_scheduler(request: ApiRequest) -> bool:
    """Whether a scheduler made the request: its deletions are preemptions."""
    user = request.user.rpartition(":")[2]
    names = (*registry.all_of("users"), *_OTHER_SCHEDULERS)
    return user.startswith(names) or request.program.startswith(names)


def followed(request: ApiRequest) -> bool:
    """Whether the request followed from the state of the pod or its node: from a node or a controller for nodes."""
    if request.user.startswith("system:node:") or request.program.startswith(_NODES):
        return True
    return request.user.endswith(_FOLLOWING) or request.program.endswith(_FOLLOWING)

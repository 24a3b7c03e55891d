"""The kinds of schedulers' objects: what reads them, and what is kept of them. Each scheduler's are in its folder."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from kumulus.extras.schedulers.forms import Form

_VERSION = re.compile(r"v[0-9]{1,2}(?:(?:alpha|beta)[0-9]{1,2})?")
Object = Mapping[str, Any]


class JobReport(NamedTuple):
    """What an object says about a job.

    Attributes:
        kind, name, namespace: of the job.
        size: pods it wants; 0 if the object does not say.
        queue: empty if it does not say.
        priority: 0 if it does not say.
        says: its state in the object's words.
        created: seconds since 1970; 0 if it does not say.
        admitted: whether it has what it waited for, so that its pods are made next.
    """

    kind: str
    name: str
    namespace: str
    size: int = 0
    queue: str = ""
    priority: int = 0
    says: str = ""
    created: float = 0.0
    admitted: bool = False


class Quota(NamedTuple):
    """What an object says about a queue; amounts as Kubernetes writes them."""

    kind: str
    name: str
    quota: dict[str, str]
    used: dict[str, str]
    waiting: int
    admitted: int


class QueueMember(NamedTuple):
    """The queue that an object is in, for queues that do not report their own counts.

    Attributes:
        kind, queue: the queue's.
        admitted: whether it has what it waited for.
    """

    kind: str
    queue: str
    admitted: bool


@dataclass(frozen=True)
class ObjectKind:
    """A kind of objects, and what they are read for."""

    name: str
    plural: str
    group: str = ""
    """The API group; empty for the core."""
    versions: tuple[str, ...] = ("v1",)
    """The versions to try; the first one that is served is used."""
    pages: str = ""
    """As which its pages are kept, if another group has a kind of that name; empty for its name."""
    fields: Mapping[str, Form] | None = field(default=None, compare=False)
    """What a capture keeps of its objects; None for a scheduler's kind that is not captured."""
    replayed: bool = False
    """Whether a recording may create its objects, as they are a user's."""
    job: Callable[[Object], JobReport | None] | None = None
    says_why: bool = False
    """Whether it says why a job waits before any of its pods is tried, so that no pod does."""
    queues: Callable[[Object], list[Quota]] | None = None
    member: Callable[[Object], QueueMember | None] | None = None
    """Reads which queue an object is in, if queues do not count that."""
    only: str = ""
    """The query that selects those objects which are read for jobs and queues; empty for all."""
    started_with: bool = False
    """Whether a scheduler is started with objects of it, in no namespace; existing ones are used as they are."""
    finalized: bool = False
    """Whether its objects have finalizers that nobody may be there to remove when their namespace goes."""
    of_nodes: bool = False
    """Whether its objects describe the nodes of a cluster, and so do not move into another one."""

    @property
    def kept_as(self) -> str:
        """As which its pages are kept."""
        return self.pages or self.name

    @property
    def read_at(self) -> str:
        """The path at which it is read for jobs and queues."""
        return self.path(self.versions[0]) + self.only

    def path(self, version: str) -> str:
        """The collection's path, of all namespaces."""
        return f"/apis/{self.group}/{version}/{self.plural}" if self.group else f"/api/{version}/{self.plural}"

    def api_version(self, version: str) -> str:
        """As in `apiVersion`."""
        return f"{self.group}/{version}" if self.group else version

    def is_in(self, api_version: str) -> bool:
        """Whether objects of this kind can have an `apiVersion` of a file; a list's items may lack the group."""
        group, _, version = api_version.rpartition("/")
        return group in ("", self.group) and _VERSION.fullmatch(version) is not None

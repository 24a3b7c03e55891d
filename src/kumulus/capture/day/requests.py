"""One request that changed something in a cluster, whatever recorded it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

CHANGING = frozenset(("create", "update", "patch", "delete", "deletecollection"))


class Unusable(Exception):
    """An entry that says nothing that could be replayed, and why."""


@dataclass(frozen=True, slots=True)
class Request:
    """A request that the API server carried out.

    Args:
        at: when it came, in seconds since 1970.
        verb: one of `CHANGING`.
        group, resource, subresource: what it was about; the subresource is empty for the object itself.
        version: of the group.
        namespace, name: of the object; the name is empty where the server made it up and no answer was recorded.
        sent: the request's body; None where it was not recorded.
        answered: the object as the server answered it; None where it was not recorded.
        user: who asked.
        program: with what.
        selector: of a collection that was deleted, as the request had it.
        created: whether the answer was that the object is new.
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
        """The object itself: as the server had it afterwards, or as it was sent."""
        if self.answered is not None:
            return self.answered
        return self.sent if isinstance(self.sent, Mapping) else None

    @property
    def api_version(self) -> str:
        """As objects of it say."""
        return f"{self.group}/{self.version}" if self.group else self.version


@dataclass
class Counted:
    """What was read.

    Attributes:
        entries: all entries.
        bad: entries that cannot be read, by line; the first of them.
        bad_count: how many there are.
    """

    entries: int = 0
    bad: list[str] = field(default_factory=list)
    bad_count: int = 0

    MOST = 10

    def refuse(self, place: str, why: str) -> None:
        """An entry that cannot be read."""
        self.bad_count += 1
        if len(self.bad) < self.MOST:
            self.bad.append(f"{place}: {why}")


def seconds(written: object) -> float:
    """A time of RFC 3339 as seconds since 1970.

    Raises:
        Unusable: it is none.
    """
    try:
        found = datetime.fromisoformat(str(written).replace("Z", "+00:00"))
    except ValueError:
        raise Unusable(f"{str(written)[:40]!r} is no time") from None
    return (found if found.tzinfo else found.replace(tzinfo=UTC)).timestamp()

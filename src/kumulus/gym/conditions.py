"""What has to hold in a cluster for a problem to be solved: objects that match, and how many of them."""

# ruff: noqa: N815 - fields are called what the file calls them, so that a path in an error is a path in the code

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

from pydantic import Field, model_validator

from kumulus.kube import ApiError
from kumulus.kube.objects import inside, root
from kumulus.model.checks import problem
from kumulus.model.fields import Section, malformed
from kumulus.testing.cluster import Api

BOUNDS = ("atLeast", "atMost", "equals")
Number = int | str | None
"""A number, or the name of one that is drawn."""


class ProblemCondition(Section):
    """So many objects of a kind match. Objects that are being deleted do not count.

    Attributes:
        about: what it says, in words.
        apiVersion, kind: of the objects.
        namespace: where they are; by default where the problem is.
        name: of the only one that counts.
        labels: a label selector.
        match: the part of each that has to be there, see :func:`matches`.
        onNodes: a label selector: only pods on these nodes count.
        distinct: the path of a field: how many values it has is counted, instead of objects.
        atLeast, atMost, equals: how many; at least 1 if none of them is there.
    """

    about: str = ""
    apiVersion: str = "v1"
    kind: str = Field(examples=["Pod"])
    namespace: str = ""
    name: str = ""
    labels: str = ""
    match: dict[str, Any] = Field(default_factory=dict, examples=["{status: {phase: Running}}"])
    onNodes: str = ""
    distinct: str = ""
    atLeast: Number = None
    atMost: Number = None
    equals: Number = None

    @model_validator(mode="after")
    def _together(self) -> Self:
        wrong = []
        for bound in BOUNDS:
            value = getattr(self, bound)
            if not (value is None or (value.startswith("$") if isinstance(value, str) else value >= 0)):
                wrong.append(problem((bound,), f"is {value!r}", f"write {bound}: 3, or the name of a drawn number"))
        if self.equals is not None and (self.atLeast is not None or self.atMost is not None):
            wrong.append(problem(("equals",), "cannot be combined with another bound", "write one of them"))
        if self.onNodes and self.kind != "Pod":
            wrong.append(
                problem(("onNodes",), f"is there for the kind {self.kind}", "leave it out, or write kind: Pod")
            )
        if wrong:
            raise malformed(wrong)
        return self

    @property
    def least(self) -> int:
        """How many there have to be."""
        value = self.equals if self.equals is not None else self.atLeast
        return int(value) if value is not None else 0 if self.atMost is not None else 1

    @property
    def most(self) -> int | None:
        """How many there may be; None for any number."""
        value = self.equals if self.equals is not None else self.atMost
        return int(value) if value is not None else None

    def __str__(self) -> str:
        """What it says, in words."""
        if self.about:
            return self.about
        named = " ".join(each for each in (self.kind, self.name, self.labels) if each)
        bounds = " and ".join(f"{each} {getattr(self, each)}" for each in BOUNDS if getattr(self, each) is not None)
        return f"{named} {bounds or 'atLeast 1'}"


@dataclass(frozen=True)
class Outcome:
    """What was found of a condition."""

    about: str
    """The condition, in words."""
    holds: bool
    """Whether it holds."""
    count: int
    """How many objects match."""
    progress: float
    """How near it is, from 0 to 1."""

    def __str__(self) -> str:
        """In words."""
        return f"{'holds' if self.holds else 'missed'}: {self.about} (found {self.count})"


@dataclass(frozen=True)
class Verdict:
    """What was found of all conditions of a problem."""

    outcomes: tuple[Outcome, ...]
    """Of each condition."""

    @property
    def solved(self) -> bool:
        """Whether all of them hold."""
        return all(each.holds for each in self.outcomes)

    @property
    def progress(self) -> float:
        """The mean of their progress, from 0 to 1."""
        return sum(each.progress for each in self.outcomes) / len(self.outcomes)

    def __str__(self) -> str:
        """In words, a line for each."""
        return "\n".join(map(str, self.outcomes))


class Objects:
    """The objects of a cluster as of one moment; each list is read once.

    Args:
        kinds: the resources of each version of an API group that has been read, to which this adds.
    """

    def __init__(self, api: Api, kinds: dict[str, Any]) -> None:
        self._api, self._kinds = api, kinds
        self._lists: dict[tuple[str, ...], list[dict[str, Any]]] = {}

    def verdict(self, conditions: Sequence[ProblemCondition], namespace: str) -> Verdict:
        """What is found of conditions."""
        return Verdict(tuple(self._outcome(each, namespace) for each in conditions))

    def _outcome(self, wanted: ProblemCondition, namespace: str) -> Outcome:
        matching = [
            each
            for each in self._list(wanted.apiVersion, wanted.kind, wanted.namespace or namespace, wanted.labels)
            if wanted.name in ("", each["metadata"]["name"])
            and "deletionTimestamp" not in each["metadata"]
            and matches(each, wanted.match)
        ]
        if wanted.onNodes:
            nodes = {each["metadata"]["name"] for each in self._list("v1", "Node", "", wanted.onNodes)}
            matching = [each for each in matching if each["spec"].get("nodeName") in nodes]
        count = len({_field(each, wanted.distinct) for each in matching} - {None}) if wanted.distinct else len(matching)
        least, most = wanted.least, wanted.most
        if count < least:
            return Outcome(str(wanted), False, count, count / least)
        if most is not None and count > most:
            return Outcome(str(wanted), False, count, most / count)
        return Outcome(str(wanted), True, count, 1.0)

    def _list(self, *of: str) -> list[dict[str, Any]]:
        if of not in self._lists:
            self._lists[of] = self._read(*of)
        return self._lists[of]

    def _read(self, api_version: str, kind: str, namespace: str, labels: str) -> list[dict[str, Any]]:
        try:
            if api_version not in self._kinds:
                self._kinds[api_version] = self._api.get(root(api_version))["resources"]
            served = [each for each in self._kinds[api_version] if each["kind"] == kind and "/" not in each["name"]]
            if not served:
                return []
            within = inside(namespace) if served[0]["namespaced"] else ""
            path = f"{root(api_version)}{within}/{served[0]['name']}"
            items: list[dict[str, Any]] = self._api.get(path, {"labelSelector": labels} if labels else None)["items"]
        except ApiError as error:
            # A kind that the agent has removed has no objects.
            if error.status == 404:
                return []
            raise
        return items


def matches(value: object, pattern: object) -> bool:
    """Whether a part of an object is there: keys of mappings, some items of lists, and None for what is absent."""
    if isinstance(pattern, Mapping):
        return isinstance(value, Mapping) and all(matches(value.get(key), each) for key, each in pattern.items())
    if isinstance(pattern, list):
        items: Iterable[object] = value if isinstance(value, list) else ()
        return all(any(matches(item, each) for item in items) for each in pattern)
    return value == pattern


def _field(item: object, path: str) -> object:
    for key in path.split("."):
        item = item.get(key) if isinstance(item, Mapping) else None
    return item

"""Which pods a lifecycle or a usage selects: by labels, namespaces, and owners."""

from collections.abc import Callable, Sequence
from typing import Annotated

from pydantic import Field

from kumulus.model.checks import problem
from kumulus.model.errors import Problem, Where, shown
from kumulus.model.fields import CheckedField, Labels, Section, checked
from kumulus.model.lifecycles import PodSelection
from kumulus.model.names import ValueMistake, dns_label_mistake
from kumulus.model.owner_kinds import OWNER_KINDS

_KINDS = {kind.lower(): kind for kind in (*OWNER_KINDS, "ReplicaSet", "StatefulSet", "DaemonSet", "RayCluster")}


def _kind_mistake(kind: str) -> ValueMistake | None:
    """Any kind may own pods; one that differs from a known kind only in spelling, such as its case, is a mistake."""
    meant = _KINDS.get(kind.lower().replace("-", "").replace("_", "").removesuffix("s"))
    if meant and meant != kind:
        return ValueMistake("is not a kind", f"write {meant}")
    named = kind.isalnum() and kind[0].isupper()
    return None if named else ValueMistake("is not a kind", "write a kind such as Job or StatefulSet")


def _names(mistake_of: Callable[[str], ValueMistake | None], form: str) -> CheckedField:
    """A list of names, each checked by itself."""

    def check(where: Where, raw: object) -> list[Problem]:
        if not isinstance(raw, list | tuple):
            return [problem(where, f"is {shown(raw)}", "write a list, such as [Job]")]
        found = []
        for index, name in enumerate(raw):
            if not isinstance(name, str) or not name:
                found.append(problem((*where, index), f"is {shown(name)}, not a name", "write a name"))
            elif mistake := mistake_of(name):
                found.append(problem((*where, index), f"{shown(name)} {mistake.message}", mistake.remedy))
        return found

    return checked(check, tuple, form=form)


Namespaces = Annotated[tuple[str, ...], _names(dns_label_mistake, "namespaces")]
OwnerKinds = Annotated[tuple[str, ...], _names(_kind_mistake, "ownerKinds")]


class PodSelector(Section):
    """Pods that match every field; all pods if there is none."""

    labels: Labels = Field(default_factory=dict, examples=["{app: training}"])
    """Labels that a pod must have, with these values."""
    namespaces: Namespaces = Field(default=(), examples=["[default]"])
    """The pod is in one of these namespaces."""
    ownerKinds: OwnerKinds = Field(default=(), examples=["[Job, JobSet]"])
    """The pod belongs to a workload of one of these kinds."""

    def selection(self) -> PodSelection:
        """The selection in the model's form."""
        return PodSelection(self.labels, self.namespaces, self.ownerKinds)


def order_problems(key: str, items: Sequence[tuple[str, PodSelector]]) -> list[Problem]:
    """Duplicate names, and selectors whose pods are all selected by an earlier item: the first in the file wins.

    Places are relative to the list, whose key is podLifecycles or podUsage.
    """
    wrong: list[Problem] = []
    names = [name for name, _ in items]
    selections = [selector.selection() for _, selector in items]
    for index, (name, own) in enumerate(zip(names, selections, strict=True)):
        if (same := names.index(name)) < index:
            wrong.append(problem((index, "name"), f"{shown(name)} is already {key}[{same}].name", "write another name"))
        first = next(other for other, earlier in enumerate(selections) if other == index or earlier.covers(own))
        if first == index:
            continue
        alike = own.covers(selections[first])
        what = "the same pods" if alike else "all of these pods"
        message = f"never holds: {key}[{first}] selects {what}, and the first in the file wins"
        remedy = "leave it out, or select other pods" if alike else f"move it before {key}[{first}]"
        wrong.append(problem((index, "selector"), message, remedy))
    return wrong

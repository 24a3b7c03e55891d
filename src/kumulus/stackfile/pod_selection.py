"""Which pods a lifecycle or a usage selects: by labels, namespaces, and owners."""

from collections.abc import Sequence
from typing import Annotated

from pydantic import Field

from kumulus.model.checks import problem
from kumulus.model.errors import Problem, Where, shown
from kumulus.model.fields import Labels, Section, checked
from kumulus.model.lifecycles import PodSelection
from kumulus.model.names import dns_label_mistake
from kumulus.model.owner_kinds import OWNER_KINDS


def _text_list_problems(where: Where, raw: object) -> list[Problem]:
    if not isinstance(raw, list | tuple):
        return [problem(where, f"is {shown(raw)}", "write a list, such as [Job]")]
    return [
        problem((*where, index), f"is {shown(item)}, not a name", "write a name")
        for index, item in enumerate(raw)
        if not isinstance(item, str) or not item
    ]


def _namespace_problems(where: Where, raw: object) -> list[Problem]:
    found = _text_list_problems(where, raw)
    if found:
        return found
    assert isinstance(raw, list | tuple)
    for index, name in enumerate(raw):
        if mistake := dns_label_mistake(name):
            found.append(problem((*where, index), f"{shown(name)} {mistake.message}", mistake.remedy))
    return found


def _owner_kind_problems(where: Where, raw: object) -> list[Problem]:
    """Any kind may own pods; one that differs from a known kind only in spelling, such as its case, is a mistake."""
    found = _text_list_problems(where, raw)
    if found:
        return found
    assert isinstance(raw, list | tuple)
    known = {kind.lower(): kind for kind in (*OWNER_KINDS, "ReplicaSet", "StatefulSet", "DaemonSet", "RayCluster")}
    for index, kind in enumerate(raw):
        meant = known.get(kind.lower().replace("-", "").replace("_", "").removesuffix("s"))
        if meant and meant != kind:
            found.append(problem((*where, index), f"{shown(kind)} is not a kind", f"write {meant}"))
        elif not kind.isalnum() or not kind[0].isupper():
            remedy = "write a kind such as Job or StatefulSet"
            found.append(problem((*where, index), f"{shown(kind)} is not a kind", remedy))
    return found


class PodSelector(Section):
    """Pods that match every field; all pods if there is none."""

    labels: Labels = Field(default_factory=dict, examples=["{app: training}"])
    """Labels that a pod must have, with these values."""
    namespaces: Annotated[tuple[str, ...], checked(_namespace_problems, tuple, form="namespaces")] = Field(
        default=(), examples=["[default]"]
    )
    """The pod is in one of these namespaces."""
    ownerKinds: Annotated[tuple[str, ...], checked(_owner_kind_problems, tuple, form="ownerKinds")] = Field(
        default=(), examples=["[Job, JobSet]"]
    )
    """The pod belongs to a workload of one of these kinds."""

    def selection(self) -> PodSelection:
        """The selection in the model's form."""
        return PodSelection(self.labels, self.namespaces, self.ownerKinds)


def order_problems(key: str, items: Sequence[tuple[str, PodSelector]]) -> list[Problem]:
    """Duplicate names, and selectors whose pods are all selected by an earlier item: the first in the file wins.

    Args:
        key: the list's key, such as podLifecycles; places in the problems are relative to it.
        items: name and selector of each.
    """
    wrong: list[Problem] = []
    selections = [selector.selection() for _, selector in items]
    for index, (name, _) in enumerate(items):
        before = items[:index]
        same = next((other for other, (known, _) in enumerate(before) if known == name), None)
        if same is not None:
            wrong.append(problem((index, "name"), f"{shown(name)} is already {key}[{same}].name", "write another name"))
        first = next(
            (other for other, earlier in enumerate(selections[:index]) if earlier.covers(selections[index])),
            None,
        )
        if first is None:
            continue
        alike = selections[index].covers(selections[first])
        what = "the same pods" if alike else "all of these pods"
        message = f"never holds: {key}[{first}] selects {what}, and the first in the file wins"
        remedy = "leave it out, or select other pods" if alike else f"move it before {key}[{first}]"
        wrong.append(problem((index, "selector"), message, remedy))
    return wrong

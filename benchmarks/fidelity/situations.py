"""The situations of situations.yaml, and the objects that they come to."""

from collections.abc import Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any

import yaml

FILE = Path(__file__).with_name("situations.yaml")
GROUPS = ("pods", "nodes", "controllers", "schedulers")
SHAPE = "example.com/shape"
"""The label of a node's shape, by which the nodes of both places are paired."""
SITUATION = "example.com/situation"
IMAGE = "kumulus/busybox:node"
# The first process of a container is not ended by a signal that it does not handle.
_WAITS = ["sh", "-c", "trap 'exit 143' TERM; sleep 36000 & wait"]

Object = dict[str, Any]


@dataclass(frozen=True)
class Situation:
    """One of them; situations.yaml says what the fields are."""

    group: str
    """One of :data:`GROUPS`."""
    name: str
    steps: Sequence[Mapping[str, Any]]
    pod: Mapping[str, Any] | None = None
    objects: Sequence[Mapping[str, Any]] = ()
    with_: Sequence[Mapping[str, Any]] = ()
    node: bool = False
    shape: str = "a"
    within: float = 60
    lifecycle: Mapping[str, Any] | None = None
    fault: Mapping[str, Any] | None = None
    finalizers: Sequence[str] = ()
    """Of the bare pod."""
    ends: Sequence[Mapping[str, Any]] = field(default_factory=list)
    """Steps after which nothing is compared any more."""
    about: str = ""
    scheduler: str = ""
    """Of its pods, in place of the cluster's own."""

    @property
    def slug(self) -> str:
        """Its name as a label's value."""
        return "".join(each if each.isalnum() else "-" for each in self.name.lower()).replace("--", "-")[:40].strip("-")

    def wanted(self, node: str) -> list[Object]:
        """Its objects, the one that is looked at last.

        Args:
            node: the node that bare pods and templates go to, where they do not say otherwise.
        """
        first = {"apiVersion": "v1", "kind": "Pod", "metadata": {"finalizers": [*self.finalizers]}, "spec": self.pod}
        found = [*self.with_, *([first] if self.pod is not None else self.objects[::-1])]
        return [self.completed(each, node) for each in found]

    def completed(self, given: Mapping[str, Any], node: str) -> Object:
        """An object with what every one of them has."""
        made = deepcopy(dict(given))
        made.setdefault("metadata", {}).setdefault("name", "w")
        self._fill(made, node)
        return made

    def _fill(self, value: Any, node: str) -> None:
        for each in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
            self._fill(each, node)
        if not isinstance(value, dict):
            return
        # A pod or its template: nothing else has a spec without a selector below `template` or as a kind Pod.
        for holder in [value] if value.get("kind") == "Pod" else [value["template"]] if "template" in value else []:
            labels = {"app": "w" if holder.get("metadata", {}).get("name", "w") == "w" else "other"}
            holder.setdefault("metadata", {}).setdefault("labels", {}).update(labels | {SITUATION: self.slug})
            spec = holder["spec"]
            spec.setdefault("containers", [{"name": "main"}])
            spec.setdefault("terminationGracePeriodSeconds", 2)
            if spec.get("nodeName") == "$node":
                spec["nodeName"] = node
            else:
                spec.setdefault("nodeSelector", {SHAPE: self.shape})
            if self.scheduler:
                spec["schedulerName"] = self.scheduler
            for container in [*spec.get("initContainers", []), *spec["containers"]]:
                container.setdefault("image", IMAGE)
                if container["image"] == IMAGE:
                    container.setdefault("command", _WAITS)


@cache
def situations() -> tuple[Situation, ...]:
    """All of them, in the file's order; those of schedulers once more, with Volcano."""
    document = yaml.safe_load(FILE.read_text())
    found = [
        Situation(group, **{("with_" if key == "with" else key): value for key, value in each.items()})
        for group in GROUPS
        for each in document[group]
    ]
    placed = [each for each in found if each.group == "schedulers"]
    return (*found, *(replace(each, name=f"Volcano: {each.name}", scheduler="volcano") for each in placed))

"""The pods that should fit, those of a workload's file as its controller would create them, and whether they do."""

from __future__ import annotations

import copy
import re
import sys
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import yaml

from kumulus.extras.capture.dumps import Refused, documents
from kumulus.extras.lab.file.recording import IMAGE
from kumulus.model.errors import SpecError
from kumulus.model.identity import RUN_LABEL
from kumulus.model.manifests import expected_pods, manifest_problems

DRY_LABEL = "kumulus.io/fit"
"""On dry pods: which try of their run they are of."""
_TEMPLATES = ("Deployment", "ReplicaSet", "StatefulSet", "ReplicationController", "Job")
_KINDS = ("Pod", *_TEMPLATES)
CONSTRAINTS = ("nodeSelector", "nodeAffinity", "podAffinity", "podAntiAffinity", "topologySpreadConstraints")
"""The constraints that can be removed from a pod so that it may fit."""
_NODES_LOOKED_AT = re.compile(r"0/(\d+) nodes")
# The part of the scheduler's message about preemption, which dry pods never do.
_PREEMPTION = re.compile(r",? ?(?:no new claims to deallocate, )?preemption: .*$", re.DOTALL)


@dataclass(frozen=True)
class Probe:
    """Identical pods."""

    name: str
    namespace: str
    labels: Mapping[str, str]
    spec: Mapping[str, Any]
    count: int
    annotations: Mapping[str, str] = field(default_factory=dict)

    def constraints(self) -> list[str]:
        """Which of `CONSTRAINTS` they have."""
        affinity = self.spec.get("affinity") or {}
        return [each for each in CONSTRAINTS if self.spec.get(each) or affinity.get(each)]

    def without(self, constraint: str) -> Probe:
        """The same pods without one of their constraints."""
        spec = copy.deepcopy(dict(self.spec))
        spec.pop(constraint, None)
        if isinstance(spec.get("affinity"), dict):
            spec["affinity"].pop(constraint, None)
        return replace(self, spec=spec)

    def manifest(self, run: str, attempt: int, index: int, priority_class: str | None) -> dict[str, Any]:
        """One of the pods, marked as a dry one.

        Args:
            run: the run's id.
            attempt: which of its tries the pod is of.
            index: which pod.
            priority_class: replaces its own; None for none.
        """
        spec = copy.deepcopy(dict(self.spec))
        for containers in ("containers", "initContainers"):
            for container in spec.get(containers) or ():
                # Nothing in the container should run or be mounted.
                for key in ("command", "args", "env", "envFrom", "volumeMounts", "volumeDevices"):
                    container.pop(key, None)
                container.setdefault("image", IMAGE)
        spec["volumes"] = [each for each in spec.get("volumes") or () if "persistentVolumeClaim" in each]
        for key in ("priority", "preemptionPolicy", "priorityClassName", "serviceAccountName", "serviceAccount"):
            spec.pop(key, None)
        named = {"priorityClassName": priority_class} if priority_class else {}
        return {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {
                "name": f"{run}-{attempt}-{index}",
                "namespace": self.namespace,
                "labels": {**self.labels, RUN_LABEL: run, DRY_LABEL: str(attempt)},
                "annotations": dict(self.annotations),
            },
            "spec": {**spec, **named, "automountServiceAccountToken": False, "enableServiceLinks": False},
        }


def read(file: Path, count: int | None = None) -> Probe:
    """The pods of the first workload in a file.

    Args:
        file: YAML with a Pod, Deployment, ReplicaSet, StatefulSet or Job.
        count: how many pods; the workload's own number unless given.
    """
    try:
        with file.open("rb") as opened:
            found = [each for each in documents(opened, file.name) if isinstance(each, dict)]
    except yaml.YAMLError as error:
        raise Refused(f"{file} is no YAML: {str(error).splitlines()[0]}") from None
    workload = next((each for each in found if each.get("kind") in _KINDS), None)
    if workload is None:
        kinds = ", ".join(sorted({str(each.get("kind")) for each in found})) or "nothing"
        raise Refused(f"{file} has {kinds}; write a {', '.join(_KINDS[:-1])} or {_KINDS[-1]}")
    return _probe(file, workload, count)


def _probe(file: Path, workload: Mapping[str, Any], count: int | None) -> Probe:
    if problems := manifest_problems((), workload):
        raise Refused(str(SpecError(problems, str(file))))
    metadata, spec = workload.get("metadata") or {}, workload.get("spec") or {}
    template = workload if workload["kind"] == "Pod" else spec.get("template")
    if not isinstance(template, Mapping) or not isinstance((template.get("spec") or {}).get("containers"), list):
        raise Refused(f"{file}: the {workload['kind']} has no pod template with containers")
    about = template.get("metadata") or {}
    return Probe(
        name=str(metadata.get("name") or "workload"),
        namespace=str(metadata.get("namespace") or about.get("namespace") or "default"),
        labels={str(key): str(value) for key, value in (about.get("labels") or {}).items()},
        spec=template["spec"],
        count=expected_pods(workload) if count is None else count,
        annotations={str(key): str(value) for key, value in (about.get("annotations") or {}).items()},
    )


@dataclass
class Verdict:
    """What happened to dry pods.

    Attributes:
        wanted: how many pods were wanted.
        on: how many went to each node.
        reason: the message of the scheduler, or of the quota, about the first pod that did not fit.
        refused: how many the API server rejected.
    """

    wanted: int
    on: Counter[str] = field(default_factory=Counter)
    reason: str = ""
    refused: int = 0

    @property
    def fitted(self) -> int:
        """How many pods have a node."""
        return self.on.total()

    @property
    def all_fit(self) -> bool:
        """Whether all pods have a node."""
        return self.fitted == self.wanted


def unschedulable(pod: Mapping[str, Any]) -> str | None:
    """The scheduler's message about a pod without a node; None if there is none yet."""
    for condition in (pod.get("status") or {}).get("conditions") or ():
        if condition.get("type") == "PodScheduled" and condition.get("status") == "False":
            message = str(condition.get("message") or condition.get("reason") or "")
            return without_preemption(message)
    return None


def without_preemption(message: str) -> str:
    """The scheduler's message about a pod, without the part about preemption."""
    return _PREEMPTION.sub("", message)


def looked_at(message: str) -> int:
    """How many nodes a message of the scheduler is about; any other message is taken to be about all nodes."""
    found = _NODES_LOOKED_AT.match(message)
    return int(found[1]) if found else sys.maxsize

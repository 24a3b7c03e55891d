"""The pods that should fit, those of a workload's file as its controller would create them, and whether they do."""

from __future__ import annotations

import copy
import re
import sys
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import yaml

from kumulus.extras.capture.dumps import FileRefused, documents
from kumulus.extras.lab.file.recording import IMAGE
from kumulus.extras.schedulers.manifests import expected_pods, manifest_problems
from kumulus.extras.watch.live.admission import NodeTaint, Toleration
from kumulus.model.errors import SpecError
from kumulus.model.identity import RUN_LABEL

DRY_LABEL = "kumulus.io/fit"
"""On dry pods: which try of their run they are of."""
_TEMPLATES = ("Deployment", "ReplicaSet", "StatefulSet", "ReplicationController", "Job")
_KINDS = ("Pod", *_TEMPLATES)
GROUPS = "scheduling.k8s.io/v1beta1"
"""The API version of Kubernetes' own PodGroups."""
CONSTRAINTS = ("nodeSelector", "nodeAffinity", "podAffinity", "podAntiAffinity", "topologySpreadConstraints")
"""The constraints that can be removed from a pod so that it may fit; a group's `schedulingConstraints` is another."""
_OF_GROUP = "schedulingConstraints"
_HOSTNAME = "kubernetes.io/hostname"
_KEPT = ("schedulingPolicy", _OF_GROUP)
# kube-scheduler's texts. Checked against Kubernetes 1.35 to 1.37.
_NODES_LOOKED_AT = re.compile(r"0/(\d+) nodes")
# The part of the scheduler's message about preemption, which dry pods never do.
_PREEMPTION = re.compile(r",? ?(?:no new claims to deallocate, )?preemption: .*$", re.DOTALL)


_REPLACED = (
    "priority",
    "preemptionPolicy",
    "priorityClassName",
    "serviceAccountName",
    "serviceAccount",
    "schedulingGroup",
)


@dataclass(frozen=True)
class Probe:
    """Identical pods; `group` is the spec of the PodGroup that they are of, empty if they are of none."""

    name: str
    namespace: str
    labels: Mapping[str, str]
    spec: Mapping[str, Any]
    count: int
    annotations: Mapping[str, str] = field(default_factory=dict)
    group: Mapping[str, Any] = field(default_factory=dict)

    def constraints(self) -> list[str]:
        """Which of `CONSTRAINTS` they have."""
        affinity = self.spec.get("affinity") or {}
        found = [each for each in CONSTRAINTS if self.spec.get(each) or affinity.get(each)]
        return found + [_OF_GROUP] * (_OF_GROUP in self.group)

    def alone_on(self, node: str) -> Probe:
        """The same pods without their group, on one node only."""
        selector = {**(self.spec.get("nodeSelector") or {}), _HOSTNAME: node}
        return replace(self, spec={**self.spec, "nodeSelector": selector}, group={})

    def without(self, constraint: str) -> Probe:
        """The same pods without one of their constraints."""
        spec = copy.deepcopy(dict(self.spec))
        spec.pop(constraint, None)
        if isinstance(spec.get("affinity"), dict):
            spec["affinity"].pop(constraint, None)
        group = {key: value for key, value in self.group.items() if key != constraint}
        return replace(self, spec=spec, group=group)

    def untolerated(self, node: Mapping[str, Any]) -> tuple[NodeTaint, ...]:
        """The taints of a node that keep them off it."""
        passes = [Toleration(*(str(each.get(key) or "") for key in Toleration._fields)) for each in self._tolerations()]
        taints = [NodeTaint(*(str(each.get(key) or "") for key in NodeTaint._fields)) for each in _taints(node)]
        return tuple(sorted({each for each in taints if not any(one.passes(each) for one in passes)}))

    def tolerating(self, taints: Iterable[NodeTaint]) -> Probe:
        """The same pods with a toleration for each of some taints."""
        added = [{**each._asdict(), "operator": "Equal"} for each in taints]
        return replace(self, spec={**self.spec, "tolerations": [*self._tolerations(), *added]})

    def _tolerations(self) -> list[Mapping[str, Any]]:
        return list(self.spec.get("tolerations") or ())

    def manifest(self, run: str, attempt: int, index: int, priority_class: str | None) -> dict[str, Any]:
        """One of the pods, marked as a dry one; ``priority_class`` replaces its own, None for none."""
        spec = copy.deepcopy(dict(self.spec))
        for containers in ("containers", "initContainers"):
            for container in spec.get(containers) or ():
                # Nothing in the container should run or be mounted.
                for key in ("command", "args", "env", "envFrom", "volumeMounts", "volumeDevices"):
                    container.pop(key, None)
                container.setdefault("image", IMAGE)
        spec["volumes"] = [each for each in spec.get("volumes") or () if "persistentVolumeClaim" in each]
        for key in _REPLACED:
            spec.pop(key, None)
        named: dict[str, Any] = {"priorityClassName": priority_class} if priority_class else {}
        if self.group:
            named["schedulingGroup"] = {"podGroupName": f"{run}-{attempt}"}
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


def _taints(node: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    return [each for each in node["spec"].get("taints") or () if each.get("effect") in ("NoSchedule", "NoExecute")]


def taint_text(taint: NodeTaint) -> str:
    """A taint as `kubectl describe` shows it."""
    return f"{taint.key}{'=' * bool(taint.value)}{taint.value}:{taint.effect}"


def read(file: Path, count: int | None = None) -> Probe:
    """The pods of the first workload in a file.

    Args:
        file: YAML with a Pod, Deployment, ReplicaSet, StatefulSet or Job, and the PodGroup that its pods name.
        count: how many pods; the workload's own number unless given.
    """
    try:
        with file.open("rb") as opened:
            found = [each for each in documents(opened, file.name) if isinstance(each, dict)]
    except yaml.YAMLError as error:
        raise FileRefused(f"{file} is no YAML: {str(error).splitlines()[0]}") from None
    workload = next((each for each in found if each.get("kind") in _KINDS), None)
    if workload is None:
        kinds = ", ".join(sorted({str(each.get("kind", "no kind")) for each in found})) or "nothing"
        raise FileRefused(f"{file} has {kinds}; write a {', '.join(_KINDS[:-1])} or {_KINDS[-1]}")
    groups = {str((each.get("metadata") or {}).get("name")): each for each in found if each.get("kind") == "PodGroup"}
    return _probe(file, workload, groups, count)


def _probe(
    file: Path, workload: Mapping[str, Any], groups: Mapping[str, Mapping[str, Any]], count: int | None
) -> Probe:
    if problems := manifest_problems((), workload):
        raise FileRefused(str(SpecError(problems, str(file))))
    metadata, spec = workload.get("metadata") or {}, workload.get("spec") or {}
    template = workload if workload["kind"] == "Pod" else spec.get("template")
    if not isinstance(template, Mapping) or not isinstance((template.get("spec") or {}).get("containers"), list):
        raise FileRefused(f"{file}: the {workload['kind']} has no pod template with containers")
    about = template.get("metadata") or {}
    own = expected_pods(workload)
    return Probe(
        name=str(metadata.get("name") or "workload"),
        namespace=str(metadata.get("namespace") or about.get("namespace") or "default"),
        labels={str(key): str(value) for key, value in (about.get("labels") or {}).items()},
        spec=template["spec"],
        count=own if count is None else count,
        annotations={str(key): str(value) for key, value in (about.get("annotations") or {}).items()},
        group=_group(file, spec, template["spec"], groups, own, own if count is None else count),
    )


def _group(
    file: Path,
    workload: Mapping[str, Any],
    pod: Mapping[str, Any],
    groups: Mapping[str, Mapping[str, Any]],
    own: int,
    count: int,
) -> dict[str, Any]:
    """The spec of the group of some pods, as their Job has it or the PodGroup that they name; empty without one."""
    name = (pod.get("schedulingGroup") or {}).get("podGroupName")
    if name and name not in groups:
        raise FileRefused(f"{file}: the pods name PodGroup {str(name)[:60]!r}, which the file lacks; write it there")
    found = groups[name].get("spec") if name else workload.get("scheduling")
    group = copy.deepcopy({key: found[key] for key in _KEPT if key in found}) if isinstance(found, Mapping) else {}
    if not group:
        return {}
    policy = group.setdefault("schedulingPolicy", {"basic": {}})
    gang = policy.get("gang") if isinstance(policy, dict) else None
    if isinstance(gang, dict):
        # Of another number of pods, a gang of all is one of all again.
        least = gang.get("minCount", own)
        gang["minCount"] = count if least == own else min(least, count)
    return group


@dataclass
class ProbeVerdict:
    """What happened to dry pods."""

    wanted: int
    on: Counter[str] = field(default_factory=Counter)
    """How many went to each node."""
    reason: str = ""
    """The message of the scheduler, or of the quota, about the first pod that did not fit."""
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

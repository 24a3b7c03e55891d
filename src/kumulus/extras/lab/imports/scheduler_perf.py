"""Kubernetes' scheduler_perf: `performance-config.yaml` with its templates.

Pods that are not measured come first, as Deployments, and the measured ones when these have had their time. Source:
k8s.io/kubernetes test/integration/scheduler_perf, of Kubernetes 1.37.
"""

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from kumulus.extras.lab.errors import LabError
from kumulus.extras.lab.file.manifest import Object, objects_of
from kumulus.extras.lab.imports.found import NODES, Imported, chosen, document, named, template
from kumulus.extras.lab.traces.writing import yaml_text

_INDEX = "KUMULUS_INDEX"
_BEFORE = 20
"""Pods a second that a busy control plane places of those that come first."""
_NOTHING = ("createNamespaces", "barrier", "startCollectingMetrics", "stopCollectingMetrics")
"""What needs nothing: all pods are in the namespace of the run, and a run measures from its beginning."""
_ONE_NAMESPACE = "namespaces of affinity: all pods are in one, so that it is with all of them"
_UNREAD = ("steadyState", "steadyStateParam", "persistentVolumeTemplatePath", "persistentVolumeClaimTemplatePath")


def read(file: Path, case: str = "", workload: str = "") -> list[Imported]:
    """The cases of a file, each with each of its workloads.

    Args:
        file: the `performance-config.yaml`; paths in it are relative to it.
        case: only the case of that name; empty for all.
        workload: only the workload of that name, likewise.

    Raises:
        LabError: there is no such case or workload, or the file is of another kind.
    """
    cases = document(file)
    if not isinstance(cases, list) or not all(isinstance(each, dict) and "workloadTemplate" in each for each in cases):
        raise LabError(f"{file} is no list of cases with workloadTemplate\n  Write a performance-config.yaml")
    chosen([each["name"] for each in cases], case, "case")
    wanted = [each for each in cases if case in ("", each["name"])]
    chosen([work["name"] for each in wanted for work in each["workloads"]], workload, "workload")
    return [
        _Reading(file, each, work).made()
        for each in wanted
        for work in each["workloads"]
        if workload in ("", work["name"])
    ]


class _Reading:
    """Reads one case with one workload."""

    def __init__(self, file: Path, case: Mapping[str, Any], workload: Mapping[str, Any]) -> None:
        self._file, self._case, self._workload = file, case, workload
        source = f"scheduler_perf, {file.parent.name}/{file.name}: {case['name']}/{workload['name']}"
        self._found = Imported(named(case["name"], workload["name"]), source)
        self._before = 0

    def made(self) -> Imported:
        found, collecting, whole = self._found, False, True
        for op in self._case["workloadTemplate"]:
            collecting = op["opcode"] == "startCollectingMetrics" or (
                collecting and op["opcode"] != "stopCollectingMetrics"
            )
            measured = op["opcode"] == "createNodes" or collecting or op.get("collectMetrics")
            try:
                self._op(op, collecting)
            except LabError as error:
                found.missing.append(f"{op['opcode']}: {error}")
                whole = whole and not measured
        if not whole:
            # Without its nodes, or what is measured, it would be another benchmark.
            found.workloads.clear()
        gates = {**self._case.get("featureGates", {}), **self._workload.get("featureGates", {})}
        if gates:
            found.kwok["featureGates"] = gates
        if config := self._case.get("schedulerConfigPath"):
            found.missing.append(f"schedulerConfigPath {config}: write it as the experiment's scheduler.config")
        if self._before:
            found.missing.append(
                f"{self._before} pods come before: they are given {self._patience}, and not waited for"
            )
        self._threshold()
        return found

    @property
    def _patience(self) -> str:
        return f"{max(10, math.ceil(self._before / _BEFORE))}s"

    def _op(self, op: Mapping[str, Any], collecting: bool) -> None:
        code = op["opcode"]
        if code == "createNodes":
            self._nodes(op)
        elif code == "createPods":
            self._pods(op, self._count(op), collecting)
        elif code == "createPodSets":
            inner = op["createPodsOp"]
            self._pods(inner, self._count(op) * self._count(inner), collecting)
        elif code not in _NOTHING:
            raise LabError("no field of an experiment does this")

    def _count(self, op: Mapping[str, Any]) -> int:
        counts = [op.get("count", 1)]
        for key in ("countParam", "countMultiplierParam"):
            if key in op:
                name = op[key].removeprefix("$")
                if name not in (params := self._workload.get("params", {})):
                    raise LabError(f"nobody gives the parameter {name}")
                counts.append(params[name])
        return math.prod(counts)

    def _nodes(self, op: Mapping[str, Any]) -> None:
        if not (replicas := self._count(op)):
            return
        made = dict(NODES)
        if path := op.get("nodeTemplatePath"):
            made = _group(document(self._file, template(self._file.parent / path, {"Index": "0"})))
        strategy = op.get("labelNodePrepareStrategy") or {}
        for unread in ("nodeAllocatableStrategy", "uniqueNodeLabelStrategy"):
            if unread in op:
                self._found.missing.append(f"createNodes: {unread}")
        values = strategy.get("labelValues") or [None]
        for number, value in enumerate(values):
            share = replicas // len(values) + (number < replicas % len(values))
            labels = {} if value is None else {strategy["labelKey"]: value}
            of_template = made["nodeTemplate"]
            labels = {**of_template.get("metadata", {}).get("labels", {}), **labels}
            metadata = {"metadata": {"labels": labels}} if labels else {}
            if share:
                self._found.nodes(share, {**made, "nodeTemplate": {**of_template, **metadata}})

    def _pods(self, op: Mapping[str, Any], count: int, collecting: bool) -> None:
        if not count:
            return
        if unread := [key for key in _UNREAD if op.get(key)]:
            raise LabError(f"{', '.join(unread)} of {count} pods")
        path = op.get("podTemplatePath") or self._case.get("defaultPodTemplatePath")
        if path is None:
            raise LabError("it has no template")
        (pod,) = objects_of(template(self._file.parent / path, {"Index": _INDEX}), path)
        self._priority(pod)
        if _in_one_namespace(pod["spec"]) and _ONE_NAMESPACE not in self._found.missing:
            self._found.missing.append(_ONE_NAMESPACE)
        found, measured = self._found, bool(op.get("collectMetrics") or collecting)
        if not measured and not op.get("skipWaitToCompletion"):
            self._before += count
            number = sum(each["kind"] == "Deployment" for each in found.setup) + 1
            found.setup.append(_deployment(pod, f"before-{number}", count))
            return
        name = f"{'measured' if measured else 'unmeasured'}-{len(found.workloads) + 1}"
        text = yaml_text(pod)
        found.manifests[name] = text
        workload: dict[str, Any] = {"name": name, "jobs": count}
        if _INDEX in text:
            workload["replace"] = {_INDEX: "{index}"}
        if self._before:
            workload["arrival"] = {"after": self._patience}
        found.workloads.append(workload)

    def _priority(self, pod: Object) -> None:
        # scheduler_perf runs without the admission plugin that refuses a number without a class.
        value = pod["spec"].pop("priority", None)
        if value is None:
            return
        name = pod["spec"]["priorityClassName"] = f"imported-{value}".replace("--", "-minus-")
        made = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": name}}
        if all(each["metadata"]["name"] != name for each in self._found.setup):
            self._found.setup.insert(0, {**made, "value": value})

    def _threshold(self) -> None:
        limit = self._workload.get("threshold")
        selector = (
            self._workload.get("thresholdMetricSelector") or self._case.get("defaultThresholdMetricSelector") or {}
        )
        if not limit:
            return
        if isinstance(limit, dict) or selector.get("name", "SchedulingThroughput") != "SchedulingThroughput":
            self._found.missing.append(f"threshold {limit} of {selector.get('name', 'several topics')}")
            return
        self._found.expect.append({"measure": "scheduling.rate", "atLeast": limit})


def _in_one_namespace(part: Any) -> bool:
    """Take the namespaces out of the terms of a pod's affinity; returns whether there were any."""
    if isinstance(part, list):
        return sum(map(_in_one_namespace, part)) > 0
    if not isinstance(part, dict):
        return False
    own = [part.pop(key, None) for key in ("namespaces", "namespaceSelector") if "topologyKey" in part]
    return sum([own not in ([], [None, None]), *map(_in_one_namespace, part.values())]) > 0


def _group(node: Object) -> dict[str, Any]:
    """The node group of a node's template."""
    labels = node["metadata"].get("labels") or {}
    status = node.get("status") or {}
    made: dict[str, Any] = {"nodeTemplate": {"capacity": status.get("capacity") or {}}}
    if labels:
        made["nodeTemplate"]["metadata"] = {"labels": labels}
    if allocatable := status.get("allocatable"):
        made["nodeTemplate"]["allocatable"] = allocatable
    made["nodeTemplate"]["taints"] = (node.get("spec") or {}).get("taints") or []
    return made


def _deployment(pod: Object, name: str, replicas: int) -> Object:
    labels = {**(pod["metadata"].get("labels") or {}), "imported": name}
    template = {"metadata": {**pod["metadata"], "labels": labels}, "spec": pod["spec"]}
    for key in ("generateName", "name", "namespace"):
        template["metadata"].pop(key, None)
    spec = {"replicas": replicas, "selector": {"matchLabels": {"imported": name}}, "template": template}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name}, "spec": spec}

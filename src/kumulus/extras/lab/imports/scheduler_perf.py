"""Kubernetes' scheduler_perf: `performance-config.yaml` with its templates.

Pods that are waited for before the measured ones come first, and these when all of them have a node. Source:
k8s.io/kubernetes test/integration/scheduler_perf, of Kubernetes 1.37.
"""

import math
import re
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from kumulus.extras.lab.errors import LabError
from kumulus.extras.lab.file.manifest import Object, objects_of
from kumulus.extras.lab.imports.found import NODES, ImportedBenchmark, chosen, document, named, text_of
from kumulus.extras.lab.imports.nodes import group_of, labelled, resource_slices
from kumulus.extras.lab.imports.templates import INDEX, Index, filled
from kumulus.extras.lab.traces.writing import yaml_text

_NOTHING = ("createNamespaces", "barrier", "startCollectingMetrics", "stopCollectingMetrics")
"""What needs nothing: all pods are in the namespace of the run, and a run measures from its beginning."""
_ONE_NAMESPACE = "namespaces of affinity: all pods are in one, so that it is with all of them"
_ESSENTIAL = ("createNodes", "createPodGroups", "createAny", "allocResourceClaims")
"""Without these it would be another benchmark, as without the measured pods."""
_GROUP = "group"
_MEMBER = re.compile(r"(?<=podGroupName: )\S+")
_MOST, _KINDS = 1000, 50
"""Objects of a kind that come before; kinds of pods of one template."""
_UNREAD = ("steadyState", "steadyStateParam", "persistentVolumeTemplatePath", "persistentVolumeClaimTemplatePath")


def read(file: Path, case: str = "", workload: str = "") -> list[ImportedBenchmark]:
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
    def __init__(self, file: Path, case: Mapping[str, Any], workload: Mapping[str, Any]) -> None:
        self._file, self._case, self._workload = file, case, workload
        source = f"scheduler_perf, {file.parent.name}/{file.name}: {case['name']}/{workload['name']}"
        self._found = ImportedBenchmark(named(case["name"], workload["name"]), source)
        self._nodes_made = self._claims = 0
        self._before = False
        self._groups: list[tuple[str, Object]] = []
        self._whole = True

    def made(self) -> ImportedBenchmark:
        found, collecting = self._found, False
        for op in self._case["workloadTemplate"]:
            collecting = op["opcode"] == "startCollectingMetrics" or (
                collecting and op["opcode"] != "stopCollectingMetrics"
            )
            measured = op["opcode"] in _ESSENTIAL or collecting or op.get("collectMetrics")
            try:
                self._op(op, collecting)
            except LabError as error:
                found.missing.append(f"{op['opcode']}: {error}")
                self._whole = self._whole and not measured
        if not self._whole:
            found.workloads.clear()
        gates = {**self._case.get("featureGates", {}), **self._workload.get("featureGates", {})}
        if gates:
            found.kwok["featureGates"] = gates
        if config := self._case.get("schedulerConfigPath"):
            found.missing.append(f"schedulerConfigPath {config}: write it as the experiment's scheduler.config")
        self._threshold()
        return found

    def _op(self, op: Mapping[str, Any], collecting: bool) -> None:
        code = op["opcode"]
        if code == "createNodes":
            self._nodes(op)
        elif code == "createPods":
            self._pods(op, self._count(op), collecting)
        elif code == "createPodSets":
            inner = op["createPodsOp"]
            self._pods(inner, self._count(op) * self._count(inner), collecting)
        elif code in ("createPodGroups", "createAny"):
            self._objects(op, self._count(op))
        elif code == "allocResourceClaims" and not self._claims:
            return
        elif code not in _NOTHING:
            raise LabError("no field of an experiment does this")

    def _count(self, op: Mapping[str, Any]) -> int:
        named = (f"${op[key].removeprefix('$')}" for key in ("countParam", "countMultiplierParam") if key in op)
        return math.prod([op.get("count", 1), *map(self._parameter, named)])

    def _nodes(self, op: Mapping[str, Any]) -> None:
        if not (replicas := self._count(op)):
            return
        made = [(replicas, dict(NODES))]
        if path := op.get("nodeTemplatePath"):
            texts = self._texts(path, op, replicas, self._nodes_made)
            made = [(number, group_of(document(self._file, text))) for text, number in texts.items()]
        self._nodes_made += replicas
        strategy = op.get("labelNodePrepareStrategy") or {}
        for unread in ("nodeAllocatableStrategy", "uniqueNodeLabelStrategy"):
            if unread in op:
                self._found.missing.append(f"createNodes: {unread}")
        values = strategy.get("labelValues") or [None]
        for number, value in enumerate(values):
            more = {} if value is None else {strategy["labelKey"]: value}
            for alike, group in made:
                if share := alike // len(values) + (number < alike % len(values)):
                    self._found.nodes(share, labelled(group, more))

    def _texts(self, path: str, op: Mapping[str, Any], count: int, first: int = 0) -> Counter[str]:
        """What a template becomes for so many objects, each text with how many have it; their numbers stay open."""
        file = self._file.parent / path
        text, values = text_of(file), {**self._values(op), "Count": count}
        return Counter(filled(text, {**values, "Index": Index(first + number)}, file) for number in range(count))

    def _values(self, op: Mapping[str, Any]) -> dict[str, Any]:
        return {key: self._parameter(value) for key, value in (op.get("templateParams") or {}).items()}

    def _parameter(self, value: Any) -> Any:
        if not isinstance(value, str) or not value.startswith("$"):
            return value
        name, default, otherwise = value[1:].partition("|")
        params = self._workload.get("params", {})
        if name not in params and not default:
            raise LabError(f"nobody gives the parameter {name}")
        return params[name] if name in params else document(self._file, otherwise)

    def _objects(self, op: Mapping[str, Any], count: int) -> None:
        """Objects that are no pods: groups come with their pods, devices with their nodes, others before."""
        if not count:
            return
        texts = self._texts(path := op["templatePath"], op, count)
        (made,) = objects_of(next(iter(texts)), path)
        if made["kind"] == "PodGroup":
            if len(texts) > 1:
                raise LabError("the groups differ")
            self._priority(made)
            self._groups.append((op.get("namespace", ""), made))
            self._found.kwok["workloads"] = "native"
        elif made["kind"] == "ResourceSlice":
            self._found.missing += resource_slices(self._found.groups, made, count)
        else:
            if count > _MOST:
                raise LabError(f"{count} objects of the kind {made['kind']}")
            self._claims += count * (made["kind"] == "ResourceClaim")
            for number in range(count):
                values = {**self._values(op), "Count": count, "Index": number}
                file = self._file.parent / path
                (made,) = objects_of(filled(text_of(file), values, file), path)
                made["metadata"].pop("namespace", None)
                self._found.setup.append(made)

    def _pods(self, op: Mapping[str, Any], count: int, collecting: bool) -> None:
        if not count:
            return
        if unread := [key for key in _UNREAD if self._parameter(op.get(key))]:
            raise LabError(f"{', '.join(unread)} of {count} pods")
        path = op.get("podTemplatePath") or self._case.get("defaultPodTemplatePath")
        if path is None:
            raise LabError("it has no template")
        kinds = dict[str, Counter[str]]()
        for text, number in self._texts(path, op, count).items():
            group = _MEMBER.search(text)
            kinds.setdefault(_MEMBER.sub(_GROUP, text), Counter())[group[0] if group else ""] += number
        if len(kinds) > _KINDS:
            raise LabError(f"pods of {len(kinds)} kinds")
        for text, groups in kinds.items():
            (pod,) = objects_of(text, path)
            self._priority(pod)
            self._kind(op, pod, groups, collecting)

    def _kind(self, op: Mapping[str, Any], pod: Object, groups: Counter[str], collecting: bool) -> None:
        """Pods that are alike.

        Args:
            groups: the groups that they are in, each with how many; those in none are in one without a name.
        """
        count = groups.total()
        if _in_one_namespace(pod["spec"]) and _ONE_NAMESPACE not in self._found.missing:
            self._found.missing.append(_ONE_NAMESPACE)
        found, measured = self._found, bool(op.get("collectMetrics") or collecting)
        before = not measured and not op.get("skipWaitToCompletion")
        name = f"{'measured' if measured else 'before' if before else 'unmeasured'}-{len(found.workloads) + 1}"
        workload: dict[str, Any] = {"name": name, "jobs": count, **({} if measured else {"measured": False})}
        found.manifests[name] = text = yaml_text(pod)
        if "" not in groups:
            workload["jobs"], found.manifests[name] = len(groups), self._gang(op.get("namespace", ""), text, groups)
        elif INDEX in text:
            workload["replace"] = {INDEX: "{index}"}
        if self._before and not before:
            workload["arrival"] = {"once": "scheduled"}
        self._before |= before
        found.workloads.append(workload)

    def _gang(self, namespace: str, pod: str, groups: Counter[str]) -> str:
        """One group with its pods: each job is one."""
        if len(sizes := set(groups.values())) > 1:
            raise LabError(f"groups of {min(sizes)} to {max(sizes)} pods")
        name = next(iter(groups))
        own = {each["metadata"]["name"]: each for of, each in self._groups if of == namespace}
        if unknown := [each for each in groups if not {each, re.sub(r"\d+$", INDEX, each)} & own.keys()]:
            raise LabError(f"no group is named {unknown[0]}")
        group = own.get(name) or own[re.sub(r"\d+$", INDEX, name)]
        texts = [yaml_text({**group, "metadata": {"name": _GROUP}})]
        for number in range(sizes.pop()):
            member = document(self._file, pod.replace(INDEX, str(number)))
            if prefix := member["metadata"].pop("generateName", ""):
                member["metadata"]["name"] = f"{prefix}{number}"
            texts.append(yaml_text(member))
        return "---\n".join(texts)

    def _priority(self, made: Object) -> None:
        # scheduler_perf runs without the admission plugin that refuses a number without a class.
        value = made["spec"].pop("priority", None)
        if value is None:
            return
        name = made["spec"]["priorityClassName"] = f"imported-{value}".replace("--", "-minus-")
        of_it = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": name}}
        if all(each["metadata"]["name"] != name for each in self._found.setup):
            self._found.setup.insert(0, {**of_it, "value": value})

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

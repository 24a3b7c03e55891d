"""Kueue's performance tests: `generator.yaml`, and `rangespec.yaml` next to it.

Kueue's own have no pods; here they are scheduled and run. Source: sigs.k8s.io/kueue test/performance/scheduler.
"""

import math
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from kumulus.extras.lab.errors import LabError
from kumulus.extras.lab.imports.found import ImportedBenchmark, document, named
from kumulus.model.quantity import NANO, parse

_API = "kueue.x-k8s.io/v1beta2"
_CPUS = 64
_TAS = "kueue.x-k8s.io/podset-"
_LEVELS = {"block": "racksPerBlock", "rack": "nodesPerRack"}


def read(file: Path) -> list[ImportedBenchmark]:
    """The test of a generator, with the thresholds next to it.

    Raises:
        LabError: it is of another kind.
    """
    generator = document(file)
    if not isinstance(generator, Mapping) or not generator.get("cohorts"):
        raise LabError(f"{file} has no cohorts\n  Write a generator.yaml of Kueue's performance tests")
    name = file.resolve().parent.name
    found = ImportedBenchmark(named("kueue", name), f"Kueue, test/performance/scheduler/configs/{name}")
    found.more = {"scheduler": {"name": "kueue"}, "until": "completed"}
    topology = generator.get("topology") or {}
    flavor: dict[str, Any] = {"topologyName": topology["name"]} if topology else {}
    found.setup.append(_object("ResourceFlavor", "imported", flavor))
    if topology:
        levels = [{"nodeLabel": level["nodeLabel"]} for level in topology["levels"]]
        found.setup.insert(0, _object("Topology", topology["name"], {"levels": levels}))
    total = sum(_queue(found, cohort, spec, name) for cohort, spec, name in _queues(generator))
    _nodes(found, topology, total)
    _thresholds(found, file.with_name("rangespec.yaml"))
    return [found]


def _queues(generator: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any], str]]:
    for cohort in generator["cohorts"]:
        for number in range(cohort.get("count", 1)):
            of = named(cohort["className"], str(number))
            for queues in cohort["queuesSets"]:
                for each in range(queues.get("count", 1)):
                    yield of, queues, named(of, queues["className"], str(each))


def _queue(found: ImportedBenchmark, cohort: str, spec: Mapping[str, Any], name: str) -> float:
    """Add a queue with its workloads; returns its nominal quota in CPUs."""
    quota = {"name": "cpu", "nominalQuota": str(spec["nominalQuota"])}
    if "borrowingLimit" in spec:
        quota["borrowingLimit"] = str(spec["borrowingLimit"])
    preemption = {key: spec[key] for key in ("reclaimWithinCohort", "withinClusterQueue") if key in spec}
    groups = [{"coveredResources": ["cpu"], "flavors": [{"name": "imported", "resources": [quota]}]}]
    queue = {"cohortName": cohort, "namespaceSelector": {}, "resourceGroups": groups, "preemption": preemption}
    found.setup += [_object("ClusterQueue", name, queue), _object("LocalQueue", name, {"clusterQueue": name})]
    for number, batch in enumerate(spec["workloadsSets"]):
        for each in batch["workloads"]:
            workload = {
                "name": named(name, each["className"], str(number)),
                "jobs": batch["count"],
                "workers": each.get("podCount", 1),
                "requests": {"cpu": str(each["request"])},
                "queue": name,
                "priority": each.get("priority", 0),
                "duration": f"{each['runtimeMs']}ms",
            }
            if interval := batch.get("creationIntervalMs"):
                workload["arrival"] = {"rate": 1000 / interval}
            if constraint := each.get("tasConstraint"):
                if constraint in ("required", "preferred"):
                    workload["annotations"] = {f"{_TAS}{constraint}-topology": each["tasLevel"]}
                elif (lack := f"tasConstraint {constraint} of {each['className']}") not in found.missing:
                    found.missing.append(lack)
            found.workloads.append(workload)
    return parse(quota["nominalQuota"]).nanos / NANO


def _nodes(found: ImportedBenchmark, topology: Mapping[str, Any], total: float) -> None:
    if not topology:
        capacity = {"cpu": str(_CPUS), "memory": "256Gi", "pods": "110"}
        found.nodes(max(1, math.ceil(total / _CPUS)), {"nodeTemplate": {"capacity": capacity}})
        found.missing.append(
            f"Kueue's own test has no nodes: here there are as many of {_CPUS} CPUs as the quotas need"
        )
        return
    *outer, node = topology["levels"]
    capacity = {"pods": "110", **node.get("capacity", {})}
    section: dict[str, Any] = {"preset": "kueue", "nodesPerRack": node["count"]}
    for level, inner in zip(outer, [*outer[1:], None], strict=True):
        if level["name"] not in _LEVELS:
            found.missing.append(f"topology level {level['name']}")
        elif inner is not None:
            section[_LEVELS[level["name"]]] = inner["count"]
    replicas = math.prod(level["count"] for level in topology["levels"])
    found.nodes(replicas, {"topology": section, "nodeTemplate": {"capacity": capacity}})


def _thresholds(found: ImportedBenchmark, file: Path) -> None:
    if not file.is_file():
        found.missing.append("thresholds: there is no rangespec.yaml next to it")
        return
    ranges = document(file) or {}
    command = dict(ranges.get("cmd") or {})
    if wall := command.pop("maxWallMs", None):
        found.expect.append({"measure": "makespan", "atMost": f"{wall}ms"})
    found.missing += [f"threshold cmd.{key}" for key in command]
    limits = ranges.get("wlClassesMaxAvgTimeToAdmissionMs") or {}
    if limits:
        # Implied by the limits of all classes, and weaker: no measure is of one workload alone.
        found.expect.append({"measure": "jobTimeToSchedule.mean", "atMost": f"{max(limits.values())}ms"})
        if len(limits) > 1:
            found.missing.append(
                f"thresholds of each class's time to admission: {limits}, in ms; all together have the largest"
            )
    if usage := ranges.get("clusterQueueClassesMinUsage"):
        found.missing.append(f"thresholds of the queues' usage: {usage}")
    others = set(ranges) - {"cmd", "wlClassesMaxAvgTimeToAdmissionMs", "clusterQueueClassesMinUsage"}
    found.missing += [f"thresholds {key}" for key in sorted(others)]


def _object(kind: str, name: str, spec: Mapping[str, Any]) -> dict[str, Any]:
    return {"apiVersion": _API, "kind": kind, "metadata": {"name": name}, "spec": dict(spec)}

"""ClusterLoader2: a test's phases of objects, without Go's templates beyond parameters with their defaults.

Source: k8s.io/perf-tests clusterloader2, docs/GETTING_STARTED.md and api/types.go.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from kumulus.extras.lab.errors import LabError
from kumulus.extras.lab.file.manifest import objects_of
from kumulus.extras.lab.imports.found import NODES, ImportedBenchmark, document, named, text_of
from kumulus.extras.lab.imports.templates import INDEX, filled
from kumulus.extras.schedulers.manifests import COUNTED

_PARAMETER = re.compile(r"\{\{-?\s*(\$\w+)\s*:=\s*DefaultParam\s+\.\w+\s+(.*?)\s*-?\}\}")
_NODES = 100
_RATES = (("qpsLoad", "qps"), ("globalQPSLoad", "qps"), ("randomizedLoad", "averageQps"))
_THRESHOLDS = {
    "PodStartupLatency": ("timeToRun.p99", "atMost"),
    "SchedulingThroughput": ("scheduling.ratePeak", "atLeast"),
}


def read(file: Path) -> list[ImportedBenchmark]:
    """The test of a file.

    Raises:
        LabError: it is of another kind, or has templates that are not read.
    """
    text = text_of(file)
    for name, value in _PARAMETER.findall(text):
        text = text.replace(f"{{{{{name}}}}}", value.strip('"'))
    text = _PARAMETER.sub("", text)
    if (at := text.find("{{")) >= 0:
        line = text.count("\n", 0, at) + 1
        what = text[at:].partition("}}")[0]
        raise LabError(f"{file}, line {line}: {what}}}}} of Go's templates is not read\n  Write its value in a copy")
    test = document(file, text)
    if not isinstance(test, Mapping) or not isinstance(test.get("steps"), list):
        raise LabError(f"{file} has no steps\n  Write a test of ClusterLoader2")
    found = ImportedBenchmark(named("cl2", test.get("name", file.stem)), f"ClusterLoader2, {file.name}")
    found.nodes(_NODES, NODES)
    found.missing.append(f"its cluster: here it has {_NODES} nodes")
    rates = {each["name"]: rate for each in test.get("tuningSets") or () for rate in (_rate(each),)}
    steps = [step for step in test["steps"] if step.get("phases")]
    if len(steps) > 1:
        found.missing.append("one step after the other: the phases of all begin together")
    seen: set[str] = set()
    for phase in (phase for step in steps for phase in step["phases"]):
        for bundle in phase.get("objectBundle") or ():
            if bundle["basename"] in seen:
                found.missing.append(f"a later phase that changes or deletes {bundle['basename']}")
                continue
            seen.add(bundle["basename"])
            try:
                _bundle(found, file, phase, bundle, rates)
            except LabError as error:
                found.missing.append(f"{bundle['basename']}: {error}")
    for each in _measurements(test):
        measure, bound = _THRESHOLDS.get(each.get("Method", ""), ("", ""))
        limit = (each.get("Params") or {}).get("threshold")
        if measure and limit is not None:
            found.expect.append({"measure": measure, bound: limit})
        elif not measure and f"measurement {each.get('Method')}" not in found.missing:
            found.missing.append(f"measurement {each.get('Method')}")
    return [found]


def _bundle(
    found: ImportedBenchmark,
    file: Path,
    phase: Mapping[str, Any],
    bundle: Mapping[str, Any],
    rates: Mapping[str, float | None],
) -> None:
    among = phase.get("namespaceRange") or {"min": 1, "max": 1}
    jobs = (among["max"] - among["min"] + 1) * phase["replicasPerNamespace"]
    if jobs < 1:
        raise LabError("a phase without replicas")
    values = {key: str(value) for key, value in (bundle.get("templateFillMap") or {}).items()}
    path = file.parent / bundle["objectTemplatePath"]
    text = filled(text_of(path), {"Name": f"{bundle['basename']}-{INDEX}", "Index": INDEX, **values}, path)
    if other := [each["kind"] for each in objects_of(text, str(path)) if each["kind"] not in COUNTED]:
        raise LabError(f"{', '.join(other)} has no pods")
    name = named(bundle["basename"])
    workload: dict[str, Any] = {"name": name, "jobs": jobs}
    if INDEX in text:
        workload["replace"] = {INDEX: "{index}"}
    if rate := rates.get(phase.get("tuningSet", "")):
        workload["arrival"] = {"rate": rate}
    elif phase.get("tuningSet"):
        found.missing.append(f"tuning set {phase['tuningSet']}")
    found.manifests[name] = text
    found.workloads.append(workload)


def _rate(tuning: Mapping[str, Any]) -> float | None:
    return next((tuning[load][key] for load, key in _RATES if load in tuning), None)


def _measurements(test: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    for step in test["steps"]:
        for each in step.get("measurements") or ():
            instances: Sequence[Mapping[str, Any]] = each.get("Instances") or ({},)
            yield from ({**each, **instance} for instance in instances)

"""What a user's manifest says of pods: their templates, how many its controller makes of them, and what is wrong there.

Only what is read here or by those who read templates is checked; the API server checks the rest.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from kumulus.model.checks import problem, whole_problems
from kumulus.model.errors import Problem, Where, shown

Object = dict[str, Any]
_REPLICATED = ("Deployment", "ReplicaSet", "StatefulSet", "ReplicationController")
COUNTED = ("Pod", "Job", "JobSet", *_REPLICATED)
"""Kinds of which it is known how many pods their objects have."""
_MOST = 2**31 - 1
_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
# Forms: a mapping with the forms of some of its values, or a list of values of one form; None is any value.
_POD_TERM = {"labelSelector": {"matchLabels": {}, "matchExpressions": [{}]}, "matchLabelKeys": [None]}
_POD_RULES = {_REQUIRED: [_POD_TERM], _PREFERRED: [{}]}
_NODE_RULES = {_REQUIRED: {"nodeSelectorTerms": [{"matchExpressions": [{"values": [None]}], "matchFields": [{}]}]}}
_RESOURCES: dict[str, Any] = {"requests": {}, "limits": {}}
_CONTAINERS = [{"resources": _RESOURCES}]
_METADATA: dict[str, Any] = {"labels": {}, "annotations": {}}
_TEMPLATE = {
    "metadata": _METADATA,
    "spec": {
        "containers": _CONTAINERS,
        "initContainers": _CONTAINERS,
        "resources": _RESOURCES,
        "overhead": {},
        "nodeSelector": {},
        "affinity": {"nodeAffinity": _NODE_RULES, "podAffinity": _POD_RULES, "podAntiAffinity": _POD_RULES},
        "topologySpreadConstraints": [{}],
        "tolerations": [{}],
        "volumes": [{}],
    },
}
_JOB: dict[str, Any] = {"template": {"spec": {}}}


def pod_templates(node: Any) -> Iterator[Object]:
    """Every pod template within an object, however deep; a Pod is its own."""
    for _, template in _placed_templates((), node):
        yield template


def expected_pods(each: Mapping[str, Any]) -> int:
    """How many pods an object's controller makes; 0 where that is not known."""
    kind, spec = each.get("kind"), each.get("spec") or {}
    if kind == "Pod":
        return 1
    if kind == "Job":
        return _job_pods(spec)
    if kind in _REPLICATED:
        return _number(spec, "replicas")
    if kind == "JobSet":
        return sum(_part_pods(part) for part in spec.get("replicatedJobs") or [])
    return 0


def counted_templates(each: Mapping[str, Any]) -> list[tuple[Object, int]]:
    """The pod templates of an object of one of the :data:`COUNTED` kinds, and how many pods are made of each."""
    if each.get("kind") == "JobSet":
        parts = (each.get("spec") or {}).get("replicatedJobs") or []
        return [(template, _part_pods(part)) for part in parts for template in pod_templates(part)]
    return [(template, expected_pods(each)) for template in pod_templates(each)]


def _part_pods(part: Mapping[str, Any]) -> int:
    return _number(part, "replicas") * _job_pods((part.get("template") or {}).get("spec") or {})


def _job_pods(spec: Mapping[str, Any]) -> int:
    """How many pods a Job with this spec has at the same time."""
    parallelism = _number(spec, "parallelism")
    return min(parallelism, _number(spec, "completions", parallelism))


def later_pods(each: Mapping[str, Any]) -> int:
    """How many pods an object's controller makes after the first ones, as these complete; 0 where that is not known."""
    kind, spec = each.get("kind"), each.get("spec") or {}
    if kind == "Job":
        at_once = _job_pods(spec)
        return _number(spec, "completions", at_once) - at_once if at_once else 0
    if kind == "JobSet":
        return sum(
            _number(part, "replicas") * later_pods({"kind": "Job", **(part.get("template") or {})})
            for part in spec.get("replicatedJobs") or []
        )
    return 0


def manifest_problems(where: Where, raw: Mapping[str, Any]) -> list[Problem]:
    """Problems of an object with what is read of it: its metadata, its numbers of pods, and its pod templates."""
    has_pods = raw.get("kind") in (*COUNTED, "DaemonSet")
    if found := _form_problems(where, raw, {"metadata": _METADATA, **({"spec": {}} if has_pods else {})}):
        return found
    spec, here = raw.get("spec") or {}, (*where, "spec")
    if raw.get("kind") == "JobSet":
        found = _form_problems((*here, "replicatedJobs"), spec.get("replicatedJobs"), [_JOB])
        for index, part in enumerate([] if found else spec.get("replicatedJobs") or []):
            place = (*here, "replicatedJobs", index)
            found += _number_problems(place, part, "replicas")
            job = (part.get("template") or {}).get("spec") or {}
            found += _number_problems((*place, "template", "spec"), job, "parallelism", "completions")
    elif raw.get("kind") == "Job":
        found += _number_problems(here, spec, "parallelism", "completions")
    elif raw.get("kind") in _REPLICATED:
        found += _number_problems(here, spec, "replicas")
    for place, template in _placed_templates(where, raw):
        found += _form_problems(place, template, _TEMPLATE)
    return found


def _placed_templates(where: Where, node: Any) -> Iterator[tuple[Where, Object]]:
    if isinstance(node, Mapping):
        spec = node.get("spec")
        if isinstance(spec, Mapping) and isinstance(spec.get("containers"), list):
            assert isinstance(node, dict)
            yield where, node
            return
        for key, each in node.items():
            yield from _placed_templates((*where, str(key)), each)
    elif isinstance(node, list):
        for index, each in enumerate(node):
            yield from _placed_templates((*where, index), each)


def _number(spec: Mapping[str, Any], key: str, default: int = 1) -> int:
    value = spec.get(key)
    return default if value is None else int(value)


def _number_problems(where: Where, spec: Mapping[str, Any], *keys: str) -> list[Problem]:
    return [
        each for key in keys if spec.get(key) is not None for each in whole_problems((*where, key), spec[key], 0, _MOST)
    ]


def _form_problems(where: Where, raw: object, form: Any) -> list[Problem]:
    """Problems of a value that may be missing, as a key without a value is."""
    if form is None or raw is None:
        return []
    if isinstance(form, list):
        if not isinstance(raw, list):
            return [problem(where, f"is {shown(raw)}", "write a list")]
        return [
            each
            for index, item in enumerate(raw)
            for each in (
                [problem((*where, index), "is nothing", "leave it out")]
                if item is None
                else _form_problems((*where, index), item, form[0])
            )
        ]
    if not isinstance(raw, Mapping):
        return [problem(where, f"is {shown(raw)}", "write a mapping of keys and values")]
    return [each for key, inner in form.items() for each in _form_problems((*where, key), raw.get(key), inner)]

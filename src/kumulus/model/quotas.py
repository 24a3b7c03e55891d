"""What a ResourceQuota can limit: its resource names, and the amounts.

Sources: k8s.io/kubernetes pkg/apis/core/helper (standardQuotaResources, IsStandardQuotaResourceName), pkg/quota/v1
(count/<resource>.<group>, <class>.storageclass.storage.k8s.io/…, <class>.deviceclass.resource.k8s.io/devices), and
https://kubernetes.io/docs/concepts/policy/resource-quotas/. The API server silently accepts names that a quota does not
know, and such an entry limits nothing: here it is a problem.
"""

import re
from collections.abc import Mapping
from typing import Any

from kumulus.model.checks import of_mapping, problem, quantity_problems
from kumulus.model.errors import Problem, Where, shown
from kumulus.model.names import label_key_mistake, suggest
from kumulus.model.quantity import parse

OBJECTS = (
    "pods",
    "configmaps",
    "persistentvolumeclaims",
    "replicationcontrollers",
    "resourcequotas",
    "secrets",
    "services",
    "services.loadbalancers",
    "services.nodeports",
)
_COMPUTE = ("cpu", "memory", "ephemeral-storage")
STANDARD = (
    *_COMPUTE,
    *(f"requests.{name}" for name in (*_COMPUTE, "storage")),
    *(f"limits.{name}" for name in _COMPUTE),
    *OBJECTS,
)
HUGE_PAGES = re.compile(r"(requests\.)?hugepages-[0-9]+[KMGT]i")
COUNT = re.compile(r"count/[a-z]+(\.[a-z0-9.-]+)?")
OF_CLASS = re.compile(
    r"[a-z0-9.-]+\.(storageclass\.storage\.k8s\.io/(requests\.storage|persistentvolumeclaims)"
    r"|deviceclass\.resource\.k8s\.io/devices)"
)
_COUNTED_OTHERWISE = {
    "cronjobs": "count/cronjobs.batch",
    "daemonsets": "count/daemonsets.apps",
    "deployments": "count/deployments.apps",
    "ingresses": "count/ingresses.networking.k8s.io",
    "jobs": "count/jobs.batch",
    "replicasets": "count/replicasets.apps",
    "resourceclaims": "count/resourceclaims.resource.k8s.io",
    "statefulsets": "count/statefulsets.apps",
}
_GPUS = "requests.nvidia.com/gpu"


def over(hard: Mapping[str, str | int | float], used: Mapping[str, str]) -> list[str]:
    """What is in use beyond a quota: ``more than 2 pods (3)``, sorted."""
    return [
        f"more than {limit} {name} ({used[name]})"
        for name, limit in sorted(hard.items())
        if name in used and parse(used[name]).nanos > parse(limit).nanos
    ]


@of_mapping
def quota_problems(where: Where, raw: Mapping[str, Any]) -> list[Problem]:
    """Problems of a mapping from quota names to their limits."""
    wrong = []
    for name, amount in raw.items():
        here = (*where, name)
        if remedy := _remedy(name):
            wrong.append(problem(here, f"{shown(name)} is nothing that a ResourceQuota limits", remedy))
        counted = is_counted(name)
        wrong += quantity_problems(here, amount, whole=counted, example='"16"' if counted else _example(name))
    return wrong


def is_counted(name: str) -> bool:
    """Whether a quota name limits whole pieces: objects, devices or extended resources."""
    extended = name.startswith("requests.") and "/" in name
    # Of a class: its devices, and its persistentvolumeclaims.
    of_class = name.endswith(("/devices", "claims"))
    return extended or of_class or name in OBJECTS or name.startswith("count/")


def _remedy(name: str) -> str:
    """What to write instead of a name; empty for one that a quota knows."""
    if name in STANDARD or any(form.fullmatch(name) for form in (HUGE_PAGES, COUNT, OF_CLASS)):
        return ""
    if name.lower() in ("gpu", "gpus"):
        return f"write {_GPUS}"
    if name.lower() in _COUNTED_OTHERWISE:
        return f"write {_COUNTED_OTHERWISE[name.lower()]}"
    extended = name.removeprefix("limits.").removeprefix("requests.")
    if "/" in extended and not label_key_mistake(extended):
        if name == f"requests.{extended}":
            return ""
        if not extended.startswith("count/"):
            return f"write requests.{extended}: quotas of extended resources are quotas of requests"
    near = suggest(name, STANDARD)
    return f"write {near}" if near else f"write a name such as pods, requests.cpu, {_GPUS} or count/jobs.batch"


def _example(name: str) -> str:
    return '"96"' if name.endswith("cpu") else "1360Gi"

"""A running pod of some owner that something deletes: the same situations on emulated nodes and on a kubelet's."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from kumulus.model.lifecycles import EMULATED_CONDITION
from tests.support.api import Api, Object
from tests.support.pods import JOBS, PODS

NODES = "/api/v1/nodes"
SETS = {
    "Job": JOBS,
    "Deployment": "/apis/apps/v1/namespaces/default/deployments",
    "StatefulSet": "/apis/apps/v1/namespaces/default/statefulsets",
}
OWNERS = ("nobody", "Job", "Job without finalizers", "Deployment", "StatefulSet")
CLASSES = "/apis/scheduling.k8s.io/v1/priorityclasses"
PRIORITIES = {"high": 1000, "low": -10}
GPU = "nvidia.com/gpu"

RECORDED = Path(__file__).parents[1] / "data" / "kubelet" / "ends-of-pods.json"
"""What a kubelet wrote, as `python -m tests.support.record_ends` recorded it."""
_DIFFERENT = (
    *("lastTransitionTime", "startedAt", "finishedAt", "startTime", "hostIP", "hostIPs", "podIP", "podIPs"),
    *("containerID", "image", "imageID", "observedGeneration", "resources", "allocatedResources"),
    "volumeMounts",
)
"""Fields of a status that another pod has others of."""
NOT_EMULATED = {
    # No program of Kubernetes but the kubelet itself reads these.
    "containerStatuses[].containerID",
    "containerStatuses[].state.terminated.containerID",
    # What the containers sum up to; where a pod has resources of its own, they are there.
    "allocatedResources",
    "resources",
}
"""Fields that a kubelet writes, and KWOK's stages do not."""
_WHOLE = NOT_EMULATED | {f"containerStatuses[].{each}" for each in ("allocatedResources", "resources", "volumeMounts")}
_KEPT = "example.com/kubelets-word"


@dataclass(frozen=True)
class Place:
    """Where pods run."""

    api: Api
    """The cluster."""
    label: str
    """The value of the label `end` of the node with eight GPUs that they run on."""
    container: Object = field(default_factory=lambda: {"image": "none"})
    """Fields of their only container, such as an image that there is."""
    spec: Object = field(default_factory=dict)
    """Further fields of their specs."""

    def pod(self, gpus: int = 1) -> Object:
        """A pod's spec."""
        return {
            **self.spec,
            "nodeSelector": {"end": self.label},
            "terminationGracePeriodSeconds": 1,
            "containers": [{"name": "main", **self.container, "resources": {"limits": {GPU: str(gpus)}}}],
        }

    def running(self, owner: str) -> Object:
        """A running pod of one of :data:`OWNERS`, which has all of the node's GPUs."""
        template: Object = {"metadata": {"labels": {"app": "w", "end": self.label}}, "spec": self.pod(gpus=8)}
        kind = owner.partition(" ")[0]
        if kind == "nobody":
            self.api.create(PODS, {"metadata": {"name": "w", **template["metadata"]}, "spec": template["spec"]})
        elif kind == "Job":
            template["metadata"]["annotations"] = {"pod-complete.stage.kwok.x-k8s.io/delay": "1h"}
            template["spec"] |= {"restartPolicy": "Never"}
            self.api.create(JOBS, {"metadata": {"name": "w"}, "spec": {"template": template}})
        else:
            spec = {"replicas": 1, "selector": {"matchLabels": {"app": "w"}}, "template": template}
            self.api.create(SETS[kind], {"metadata": {"name": "w"}, "spec": {**spec, "serviceName": "w"}})
        found = self.api.until(PODS, lambda pods: any(map(is_ready, pods.values())))
        pod = next(iter(found.values()))
        if owner.endswith("without finalizers"):
            pod = self.api.merge(f"{PODS}/{pod['metadata']['name']}", {"metadata": {"finalizers": None}})
        return pod

    def completed(self) -> Object:
        """A pod of a Job, after its container has ended by itself."""
        template: Object = {"metadata": {"labels": {"app": "w"}}, "spec": {**self.pod(), "restartPolicy": "Never"}}
        self.api.create(JOBS, {"metadata": {"name": "w"}, "spec": {"template": template}})
        return next(iter(self.api.until(PODS, lambda pods: any(map(is_over, pods.values()))).values()))

    def remove_all(self) -> None:
        """Remove every workload of the namespace."""
        for path in (*SETS.values(), PODS):
            self.api.delete(f"{path}?propagationPolicy=Background&gracePeriodSeconds=0")
        self.api.until(PODS, lambda found: not found)


Delete = Callable[[Place, Object], None]


def _delete(place: Place, pod: Object) -> None:
    place.api.delete(f"{PODS}/{pod['metadata']['name']}")


def _force(place: Place, pod: Object) -> None:
    path = f"{PODS}/{pod['metadata']['name']}"
    if theirs := pod["metadata"].get("finalizers"):
        # A Job's controller takes its own away at once: with another, its kubelet is sure to write something.
        place.api.merge(path, {"metadata": {"finalizers": [*theirs, _KEPT]}})
    place.api.delete(f"{path}?gracePeriodSeconds=0")


def _evict(place: Place, pod: Object) -> None:
    # As `kubectl drain` does.
    name = pod["metadata"]["name"]
    body = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name}}
    place.api.create(f"{PODS}/{name}/eviction", body)


def _taint(place: Place, pod: Object) -> None:
    taint = {"key": "example.com/broken", "effect": "NoExecute"}
    place.api.merge(f"{NODES}/{pod['spec']['nodeName']}", {"spec": {"taints": [taint]}})


def _preempt(place: Place, pod: Object) -> None:
    spec = {**place.pod(gpus=8), "priorityClassName": "high"}
    place.api.create(PODS, {"metadata": {"name": "winner", "labels": {"app": "winner"}}, "spec": spec})


WAYS: dict[str, Delete] = {
    "deletion": _delete,
    "force": _force,
    "eviction": _evict,
    "taint": _taint,
    "preemption": _preempt,
}


def is_removed_at_once(way: str, pod: Object) -> bool:
    """Whether the API server removes the pod without its kubelet, which never gets to write anything."""
    return way == "force" and "finalizers" not in pod["metadata"]


def life_after(api: Api, pod: Object, version: str) -> list[Object]:
    """A pod as every watch saw it from a resourceVersion until it was gone."""
    uid, seen = pod["metadata"]["uid"], list[Object]()
    for event in api.events(PODS, version, 60, fieldSelector=f"metadata.name={pod['metadata']['name']}"):
        if event["object"]["metadata"]["uid"] == uid:
            seen.append(event["object"])
            if event["type"] == "DELETED":
                return seen
            if is_over(seen[-1]) and _KEPT in seen[-1]["metadata"].get("finalizers", []):
                api.merge(f"{PODS}/{pod['metadata']['name']}", {"metadata": {"finalizers": None}})
    raise AssertionError(f"the pod is still there: {seen}")


def essence(pod: Object) -> Object:
    """A pod's status without what a kubelet does not say, and what differs from pod to pod."""

    def bare(value: Any, at: str = "") -> Any:
        if isinstance(value, dict):
            left = {
                key: bare(each, f"{at}.{key}".lstrip("."))
                for key, each in value.items()
                if key not in _DIFFERENT and f"{at}.{key}".lstrip(".") not in NOT_EMULATED
            }
            return {key: each for key, each in left.items() if each not in ({}, [], "", None)}
        return [bare(each, f"{at}[]") for each in value] if isinstance(value, list) else value

    found: Object = bare(pod["status"])
    listed = [each for each in found["conditions"] if each["type"] not in ("DisruptionTarget", EMULATED_CONDITION)]
    return {**found, "conditions": sorted(listed, key=lambda each: str(each["type"]))}


def fields(value: Any, at: str = "") -> set[str]:
    """The paths of a status' fields, resources as a whole."""
    if at in _WHOLE or not isinstance(value, dict | list):
        return {at}
    inner = [(f"{at}.{key}".lstrip("."), each) for key, each in value.items()] if isinstance(value, dict) else []
    inner += [(f"{at}[]", each) for each in value] if isinstance(value, list) else []
    return {path for name, each in inner for path in fields(each, name)}


def is_over(pod: Object) -> bool:
    """Whether a pod has ended."""
    return pod["status"]["phase"] in ("Succeeded", "Failed")


def is_ready(pod: Object) -> bool:
    """Whether a pod's condition Ready is true."""
    return {each["type"]: each["status"] for each in pod["status"].get("conditions", [])}.get("Ready") == "True"


@dataclass(frozen=True)
class Recording:
    """What a kubelet wrote."""

    statuses: list[Object]
    """Those that differ, each as :func:`essence` has it."""
    of: dict[str, int]
    """Which of them a situation had, such as ``running Job`` or ``eviction of nobody``."""
    fields: dict[str, list[str]]
    """The paths of the fields of a running and a completed pod's status."""
    by: dict[str, str]
    """Versions of the kubelet and of its container runtime."""

    @classmethod
    def read(cls) -> Recording:
        """The one that is kept."""
        return cls(**json.loads(RECORDED.read_text()))

    def write(self) -> None:
        """Keep it."""
        RECORDED.parent.mkdir(exist_ok=True)
        RECORDED.write_text(json.dumps(asdict(self), indent=1, sort_keys=True) + "\n")

    def note(self, situation: str, pod: Object) -> None:
        """Add a pod's status."""
        if (status := essence(pod)) not in self.statuses:
            self.statuses.append(status)
        self.of[situation] = self.statuses.index(status)

    def status(self, situation: str) -> Object:
        """The status in a situation."""
        return self.statuses[self.of[situation]]

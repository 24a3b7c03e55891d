"""Random pods from a seed, to ask schedulers about: of every size, with and without constraints on nodes."""

import asyncio
import random
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from kumulus.extras.capture.probe import Probe, without_preemption
from kumulus.kube import ApiError, Client
from kumulus.kube.bulk import for_each

CLASS = "probes-never-preempt"
_CLASSES = "/apis/scheduling.k8s.io/v1/priorityclasses"
_NOW = {"gracePeriodSeconds": 0}
_PATIENCE_S, _LOOK_EVERY_S = 120.0, 0.05
_CPUS = ("100m", "2", "7", "30", "61", "63800m", "70")
_COUNTS = (1, 1, 2, 5, 12)


@dataclass(frozen=True)
class Fleet:
    """What pods can request in a cluster."""

    namespaces: tuple[str, ...]
    """Those that exist."""
    selectors: tuple[Mapping[str, str], ...]
    """Sets of labels, each of which some nodes have."""
    tolerations: tuple[Mapping[str, str], ...]
    """Of the existing taints."""
    neighbours: tuple[Mapping[str, str], ...]
    """Labels that pods have."""
    resource: str
    """An extended resource that some nodes have."""


def draw(seed: int, fleet: Fleet) -> Probe:
    """The pods of a seed, always the same."""
    chosen = random.Random(seed)
    labels = {"app": f"probe-{seed}"}
    requests = {"cpu": chosen.choice(_CPUS), "memory": chosen.choice(("64Mi", "4Gi", "200Gi"))}
    if chosen.random() < 0.15:
        requests[fleet.resource] = chosen.choice(("1", "8"))
    resources = {"requests": requests, "limits": {key: requests[key] for key in requests if "/" in key}}
    spec: dict[str, Any] = {"containers": [{"name": "main", "resources": resources}]}
    if chosen.random() < 0.5:
        spec["nodeSelector"] = dict(chosen.choice(fleet.selectors))
    if tolerated := [dict(each) for each in fleet.tolerations if chosen.random() < 0.4]:
        spec["tolerations"] = tolerated
    affinity: dict[str, Any] = {}
    if chosen.random() < 0.2:
        affinity["podAntiAffinity"] = _required("kubernetes.io/hostname", labels)
    if chosen.random() < 0.2:
        affinity["podAffinity"] = _required("topology.kubernetes.io/zone", chosen.choice(fleet.neighbours))
    if affinity:
        spec["affinity"] = affinity
    if chosen.random() < 0.2:
        skew = {"maxSkew": 1, "topologyKey": "topology.kubernetes.io/zone", "whenUnsatisfiable": "DoNotSchedule"}
        spec["topologySpreadConstraints"] = [{**skew, "labelSelector": {"matchLabels": labels}}]
    return Probe(labels["app"], chosen.choice(fleet.namespaces), labels, spec, chosen.choice(_COUNTS))


def _required(key: str, labels: Mapping[str, str]) -> dict[str, Any]:
    term = {"topologyKey": key, "labelSelector": {"matchLabels": dict(labels)}}
    return {"requiredDuringSchedulingIgnoredDuringExecution": [term]}


async def never_preempting(client: Client) -> None:
    """Create the PriorityClass of pods that never preempt; an existing one is left."""
    # High priority, so that these pods come first in the queue: pending pods are tried again when a pod is removed.
    body = {"metadata": {"name": CLASS}, "value": 1_000_000_000, "preemptionPolicy": "Never"}
    try:
        await client.write("POST", _CLASSES, body)
    except ApiError as error:
        if error.status != 409:
            raise
    spec = {"containers": [{"name": "main", "image": "none"}], "priorityClassName": CLASS}
    pod = {"metadata": {"generateName": "x-"}, "spec": spec}
    ends = time.monotonic() + _PATIENCE_S
    while True:
        # The admission plugin knows the class a moment later, through its own watch.
        try:
            await client.request("POST", "/api/v1/namespaces/default/pods", params={"dryRun": "All"}, body=pod)
            return
        except ApiError as error:
            if error.status != 403 or time.monotonic() > ends:
                raise
        await asyncio.sleep(_LOOK_EVERY_S)


def manifest(probe: Probe, index: int, scheduler: str = "") -> dict[str, Any]:
    """One of the pods as a user would make it, except that it preempts no other pod."""
    containers = [{**each, "image": "none"} for each in probe.spec["containers"]]
    named = {"schedulerName": scheduler} if scheduler else {}
    metadata = {"name": f"{probe.name}-{index}", "namespace": probe.namespace, "labels": dict(probe.labels)}
    return {"metadata": metadata, "spec": {**probe.spec, "containers": containers, "priorityClassName": CLASS, **named}}


async def what_happens(client: Client, probe: Probe, scheduler: str = "") -> tuple[int, str]:
    """Create the pods, wait for the scheduler's verdict on each, and remove them.

    Returns:
        How many got a node, and the scheduler's message about the first that did not.

    Raises:
        TimeoutError: the scheduler gave no verdict.
        RuntimeError: the API server refused one.
    """
    path = f"/api/v1/namespaces/{probe.namespace}/pods"
    made = [manifest(probe, index, scheduler) for index in range(probe.count)]
    done = await for_each(made, lambda each: client.write("POST", path, each), workers=8, most_failures=1)
    if done.failed:
        raise RuntimeError(f"{done.failed[0]}")
    try:
        return await _said(client, path, probe)
    finally:
        names = [each["metadata"]["name"] for each in made]
        await for_each(names, lambda name: client.delete(f"{path}/{name}", _NOW), workers=8)


async def _said(client: Client, path: str, probe: Probe) -> tuple[int, str]:
    ends = time.monotonic() + _PATIENCE_S
    selector = ",".join(f"{key}={value}" for key, value in probe.labels.items())
    while True:
        found = (await client.get(path, {"labelSelector": selector}))["items"]
        bound = sum(bool(each["spec"].get("nodeName")) for each in found)
        reasons = [said for each in found if not each["spec"].get("nodeName") and (said := _reason(each))]
        if bound + len(reasons) == probe.count:
            return bound, reasons[0] if reasons else ""
        if time.monotonic() > ends:
            raise TimeoutError(f"of {probe} the scheduler has said nothing")
        await asyncio.sleep(_LOOK_EVERY_S)


def _reason(pod: Mapping[str, Any]) -> str:
    for each in pod["status"].get("conditions") or ():
        if each["type"] == "PodScheduled" and each["status"] == "False":
            return without_preemption(str(each.get("message") or each.get("reason")))
    return ""

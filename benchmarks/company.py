"""A realistic company cluster of any size, made to be captured: groups of nodes, queues, and bound pods.

Single pods are defined in :mod:`tests.support.captured`; this module makes a whole cluster of them.
"""

import asyncio
from collections.abc import Iterator
from itertools import chain, islice
from pathlib import Path
from typing import Any

from kumulus.extras.capture.putting import define
from kumulus.kube import ApiError, Client, load_kubeconfig
from kumulus.kube.bulk import for_each
from kumulus.nodes.faults.new_pods import wait_until_all_are_managed
from tests.support import captured
from tests.support.captured import Made

ZONES = ("eu-acme-1", "eu-acme-2", "eu-acme-3")
_GROUPS = ("web", "search", "gpu", "batch")
_RACK = 20
_QUEUES, _COHORTS = 20, 3
_KUEUE = "kueue.x-k8s.io/v1beta2"
_WAITING = ("huge-", "gated-")


def cluster(nodes: int) -> dict[str, Any]:
    """The section of a stack file: four groups in three zones, racks, taints, GPUs, some nodes cordoned or not ready.

    Args:
        nodes: how many, at least 12.
    """
    groups, places = [], len(_GROUPS) * len(ZONES)
    for number, name in enumerate(_GROUPS):
        placement = []
        for place, zone in enumerate(ZONES):
            index = number * len(ZONES) + place
            count = nodes // places + (index < nodes % places)
            placement.append({"availabilityZone": zone, "replicas": count, "nodes": list(_nodes(name, zone, count))})
        groups.append({"name": name, "placement": placement, "nodeTemplate": _template(name)})
    ill = {"name": "ill", "kubelet": "notReady", "target": {"names": [f"batch-{ZONES[0]}-1"]}}
    return {"nodeGroups": groups, "faults": [ill]}


def _nodes(group: str, zone: str, count: int) -> Iterator[dict[str, Any]]:
    for index in range(count):
        yield {
            "name": f"{group}-{zone}-{index}",
            "labels": {
                "acme.example/rack": f"{zone}-{group}-r{index // _RACK}",
                "acme.example/serial": f"{group}-{zone}-{index:05}",
            },
            **({"unschedulable": True} if index and index % 97 == 0 else {}),
        }


def _template(group: str) -> dict[str, Any]:
    capacity = {"cpu": "64", "memory": "256Gi", "ephemeral-storage": "1Ti", "pods": "110"}
    labels = {"acme.example/pool": group, "acme.example/floor": "3"}
    template: dict[str, Any] = {"metadata": {"labels": labels}, "capacity": capacity, "taints": []}
    if group == "gpu":
        template["capacity"] = {**capacity, "nvidia.com/gpu": "8"}
        template["taints"] = [{"key": "nvidia.com/gpu", "value": "present", "effect": "NoSchedule"}]
    if group == "search":
        template["taints"] = [{"key": "acme.example/reserved", "value": "search", "effect": "NoSchedule"}]
        template["allocatable"] = {"cpu": "63500m", "memory": "250Gi"}
    return template


def queues() -> Iterator[Made]:
    """A company's Kueue queues: flavors, and queues in cohorts that borrow, one for each team."""
    root = f"/apis/{_KUEUE}"

    def made(plural: str, kind: str, name: str, namespace: str = "", **fields: Any) -> Made:
        inside = f"/namespaces/{namespace}" if namespace else ""
        metadata = {"name": name, **({"namespace": namespace} if namespace else {})}
        return f"{root}{inside}/{plural}", {"apiVersion": _KUEUE, "kind": kind, "metadata": metadata, **fields}

    for group in _GROUPS:
        labels = {"acme.example/pool": group}
        yield made("resourceflavors", "ResourceFlavor", f"acme-{group}", spec={"nodeLabels": labels})
    for index in range(_COHORTS):
        yield made("cohorts", "Cohort", f"acme-{index}", spec={})
    yield made("workloadpriorityclasses", "WorkloadPriorityClass", "acme-urgent", value=100, description="of ACME")
    for index in range(_QUEUES):
        quota = [
            {"name": "cpu", "nominalQuota": f"{100 + index}", "borrowingLimit": "500", "lendingLimit": "50"},
            {"name": "memory", "nominalQuota": "1Ti"},
        ]
        spec = {
            "cohortName": f"acme-{index % _COHORTS}",
            "namespaceSelector": {"matchLabels": {"team": f"team-{captured.NAMESPACES[index % 4]}"}},
            "queueingStrategy": "BestEffortFIFO",
            "preemption": {"reclaimWithinCohort": "Any", "withinClusterQueue": "LowerPriority"},
            "resourceGroups": [
                {
                    "coveredResources": ["cpu", "memory"],
                    "flavors": [{"name": f"acme-{_GROUPS[index % 4]}", "resources": quota}],
                }
            ],
        }
        yield made("clusterqueues", "ClusterQueue", f"team-{index}", spec=spec)
        for namespace in captured.NAMESPACES[:3]:
            named = {"clusterQueue": f"team-{index}"}
            yield made("localqueues", "LocalQueue", f"team-{index}", namespace, spec=named)


def pods(count: int, nodes: int) -> Iterator[dict[str, Any]]:
    """Pods, each bound to a node that it may be on; pods that no node has room for, and gated ones, stay pending.

    They are bound on creation, not by the scheduler: the benchmark measures a capture, not a scheduler.
    """
    per = nodes // (len(_GROUPS) * len(ZONES))
    turn = dict.fromkeys(captured.NAMESPACES, 0)
    # The group whose nodes a namespace's pods are on.
    groups = dict(zip(captured.NAMESPACES, _GROUPS, strict=True))
    for pod in captured.pods(count, ZONES[0]):
        metadata = pod["metadata"]
        namespace, number = metadata["namespace"], turn[metadata["namespace"]]
        turn[namespace] += 1
        if not metadata["name"].startswith(_WAITING):
            zone = ZONES[0] if "volumes" in pod["spec"] else ZONES[number % len(ZONES)]
            pod["spec"]["nodeName"] = f"{groups[namespace]}-{zone}-{number // len(ZONES) % per}"
        if namespace == "ml":
            pod["spec"]["tolerations"] = [{"key": "nvidia.com/gpu", "operator": "Exists"}]
        yield pod


async def fill(kubeconfig: Path, count: int, nodes: int) -> None:
    """Make everything but the nodes.

    Args:
        kubeconfig: of the cluster, whose nodes exist already.
    """
    async with Client(load_kubeconfig(kubeconfig)) as client:
        await wait_until_all_are_managed(client, asyncio.Event())
        await define(client, [body for _, body in queues()])
        volumes = captured.with_volumes(count, ZONES[0])
        for path, body in chain(captured.objects(), queues()):
            await client.write("POST", path, body)
        for namespace in captured.NAMESPACES:
            await _account(client, namespace)
        for listed in (volumes, ((_place(pod), pod) for pod in pods(count, nodes))):
            while part := list(islice(listed, 2000)):
                done = await for_each(
                    part, lambda made: client.write("POST", *made), workers=client.connections, most_failures=1
                )
                if done.failed:
                    raise RuntimeError(f"{done.failed[0]}")


def _place(pod: dict[str, Any]) -> str:
    return f"/api/v1/namespaces/{pod['metadata']['namespace']}/pods"


async def _account(client: Client, namespace: str) -> None:
    """Wait until the API server accepts pods in a namespace."""
    path = f"/api/v1/namespaces/{namespace}/serviceaccounts/default"
    for attempt in range(1, 100):
        try:
            await client.get(path)
            return
        except ApiError as error:
            if error.status != 404 or attempt == 99:
                raise
            await asyncio.sleep(0.1)

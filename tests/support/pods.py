"""Helpers of tests to create and check pods and nodes."""

from collections.abc import Mapping
from typing import Any

Object = dict[str, Any]
PODS = "/api/v1/namespaces/default/pods"
JOBS = "/apis/batch/v1/namespaces/default/jobs"
ALL_PODS = "/api/v1/pods"
TOLERATE_ALL = [{"operator": "Exists"}]


def is_ready(node: Object) -> bool:
    """Whether a node's condition Ready is true."""
    return any(c["type"] == "Ready" and c["status"] == "True" for c in node["status"].get("conditions", []))


def is_running(pod: Object) -> bool:
    """Whether a pod runs."""
    return bool(pod["status"].get("phase") == "Running")


def are_judged(wanted: int, pods: Mapping[str, Object]) -> bool:
    """Whether exactly so many pods run or were refused by the scheduler."""
    judged = [each for each in pods.values() if each["status"]["phase"] == "Running" or "conditions" in each["status"]]
    return len(judged) == wanted


def pod(name: str, node: str | None = None) -> Object:
    """A pod that tolerates everything.

    Args:
        node: the node it is bound to; the scheduler chooses one when None.
    """
    spec: Object = {"containers": [{"name": "main", "image": "none"}], "tolerations": TOLERATE_ALL}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": _on(spec, node)}


def job(name: str, node: str, pods: int) -> Object:
    """A job whose pods run for an hour on one node.

    Args:
        node: the node its pods are for.
    """
    template = {
        "metadata": {"annotations": {"pod-complete.stage.kwok.x-k8s.io/delay": "1h"}},
        "spec": {
            "restartPolicy": "Never",
            "nodeSelector": {"kubernetes.io/hostname": node},
            "tolerations": TOLERATE_ALL,
            "containers": [{"name": "main", "image": "none"}],
        },
    }
    spec = {"completions": pods, "parallelism": pods, "template": template}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name}, "spec": spec}


def _on(spec: Object, node: str | None) -> Object:
    return {**spec, "nodeName": node} if node else spec

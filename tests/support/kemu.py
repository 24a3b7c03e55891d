"""Cluster files and workloads as KEMU's own are, made of the stacks here: the same forms, names and mistakes."""

from typing import Any

import yaml

from tests.support.project import ROOT


def cluster_file(stack: str) -> str:
    """The text of a ClusterConfig with the node groups of a stack in stacks/, and with an add-on."""
    config = yaml.safe_load((ROOT / "stacks" / f"Pulumi.{stack}.yaml").read_text())["config"]
    groups = config["kumulus:cluster"]["nodeGroups"]
    for group in groups:
        # As in KEMU's examples: the storage has no name of Kubernetes', and there are no pods.
        capacity = group["nodeTemplate"]["capacity"]
        capacity["ephemeralStorage"] = capacity.pop("ephemeral-storage")
        del capacity["pods"]
    addon = {
        "name": "queue",
        "repoURL": "https://charts.example.com",
        "chart": "queue",
        "valuesObject": "replicas: 2\n",
    }
    kind = "kind: Cluster\napiVersion: kind.x-k8s.io/v1alpha4\n"
    spec = {"kindConfig": kind, "clusterAddons": [addon], "nodeGroups": groups}
    return yaml.safe_dump({"apiVersion": "kemu.datastrophic.io/v1alpha1", "kind": "ClusterConfig", "spec": spec})


def job(gpu: str, workers: int) -> dict[str, Any]:
    """A Job whose workers take a node each, by the label of its GPUs."""
    chosen = [{"key": "datastrophic.io/gpu-type", "operator": "In", "values": [gpu]}]
    required = {"nodeSelectorTerms": [{"matchExpressions": chosen}]}
    amounts = {"cpu": 24, "memory": "1100Gi", "nvidia.com/gpu": 8}
    pod = {
        "restartPolicy": "Never",
        "affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}},
        "tolerations": [{"effect": "NoSchedule", "key": "kwok.x-k8s.io/node", "value": "fake"}],
        "containers": [{"name": "c", "image": "none", "resources": {"requests": amounts, "limits": amounts}}],
    }
    # KWOK's own stages complete a pod with this annotation after that time.
    template = {"metadata": {"annotations": {"pod-complete.stage.kwok.x-k8s.io/delay": "10m"}}, "spec": pod}
    spec = {"completions": workers, "parallelism": workers, "template": template}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"generateName": f"{gpu}-"}, "spec": spec}

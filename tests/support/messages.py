"""Nodes and pods as the API server sends them in protobuf, with defaults for all that a test does not set."""

from typing import Any

from kumulus.kube.messages import message_classes


def quantities(**amounts: str) -> dict[str, Any]:
    """A map of quantities; ``gpu`` stands for nvidia.com/gpu."""
    return {{"gpu": "nvidia.com/gpu"}.get(name, name): {"string": written} for name, written in amounts.items()}


def node_message(name: str = "n", ready: str = "True", **more: Any) -> Any:
    """A node of 8 GPUs; ``labels``, ``annotations``, ``allocatable``, ``taints``, ``conditions``, ``unschedulable``."""
    capacity = more.get("capacity", quantities(cpu="96", memory="1360Gi", pods="110", gpu="8"))
    conditions = [{"type": "Ready", "status": ready}, *more.get("conditions", [])]
    return message_classes()["Node"](
        metadata={"name": name, "labels": more.get("labels", {}), "annotations": more.get("annotations", {})},
        spec={"unschedulable": more.get("unschedulable", False), "taints": more.get("taints", [])},
        status={
            "capacity": capacity,
            "allocatable": more.get("allocatable", capacity),
            "conditions": conditions if ready else [],
        },
    )


def pod_message(name: str = "p", **more: Any) -> Any:
    """A pod of one GPU; ``node``, ``phase``, ``containers``, ``conditions`` and further fields of its spec."""
    asked = {"resources": {"requests": quantities(cpu="1", memory="1Gi", gpu="1")}}
    spec = {"containers": more.pop("containers", [asked]), "nodeName": more.pop("node", "")}
    status = {"phase": more.pop("phase", "Pending"), "conditions": more.pop("conditions", [])}
    metadata = {"name": name, "namespace": "default", **more.pop("metadata", {})}
    return message_classes()["Pod"](metadata=metadata, spec={**spec, **more}, status=status)

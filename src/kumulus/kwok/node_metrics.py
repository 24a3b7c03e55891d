"""The usage metrics of an emulated node's kubelet: KWOK's ``Metric``, and which of its series are worth keeping.

The amounts come from ``ClusterResourceUsage`` objects (usage.py): ``cpu``, ``memory``, :data:`GPUS` (how many a
container has), and how much of these is busy and filled. The provider plugin imports this file.

All series of a node are in one ``Metric`` at one path: KWOK v0.8.0 keeps one registry for each node, whatever the path,
and removes the series that the path of the latest request does not have (pkg/kwok/metrics/metrics.go). If an object's
path or series change, KWOK serves the new ones only after a restart (RemoveRoute, server/metrics.go).
"""

from typing import Any, Literal

from kumulus.kwok.stages import API_VERSION
from kumulus.model.fault_effects import XID_ANNOTATION

Kind = Literal["pods", "gpus"]
GPUS, GPU_BUSY, GPU_FILLED = "gpus", "gpu-busy", "gpu-filled"
PATH = "/metrics/resource"
UNREAD: tuple[dict[str, Any], ...] = (
    # A node without GPUs still has one series of each.
    {"source_labels": ["__name__", "gpu"], "regex": "DCGM_.*;", "action": "drop"},
    {"source_labels": ["__name__"], "regex": "promhttp_.*", "action": "drop"},
)
"""Prometheus' rules for the series of a node that it drops."""


def path_of(node: str) -> str:
    """The path at which kwok-controller serves a node's series."""
    return f"/metrics/nodes/{node}{PATH}"


_MOST_GPUS = 8
# What a node's own daemons use, in cores and bytes: metrics-server treats a node without usage as unknown.
_OWN_CPU, _OWN_MEMORY = "0.05", "536870912.0"


def _of_node(where: str, key: str, found: str, otherwise: str) -> str:
    """A CEL expression of an entry in one of a node's maps, such as ``metadata.labels``, or of a default.

    ``found`` is an expression in which ``%s`` stands for the entry.
    """
    entry = f'node.{where}["{key}"]'
    return f'("{key}" in node.{where} ? {found.replace("%s", entry)} : {otherwise})'


_MEMORY_MIB = _of_node("metadata.labels", "nvidia.com/gpu.memory", "double(%s)", "81920.0")
_PRODUCT = _of_node("metadata.labels", "nvidia.com/gpu.product", "%s", '""')
_XID = _of_node("metadata.annotations", XID_ANNOTATION, "double(%s)", "0.0")


def metric(kind: str) -> dict[str, Any]:
    """The ``Metric`` with the series of a kubelet's resource endpoint; for ``gpus``, also those of dcgm-exporter."""
    series = _resource_series()
    if kind == "gpus":
        series += [each for gpu in range(_MOST_GPUS) for each in _gpu_series(gpu)]
    return {
        "apiVersion": API_VERSION,
        "kind": "Metric",
        "metadata": {"name": "kumulus-usage"},
        "spec": {"path": path_of("{nodeName}"), "metrics": series},
    }


def _series(name: str, about: str, dimension: str, value: str, kind: str = "gauge", **labels: str) -> dict[str, Any]:
    named = [{"name": key, "value": label} for key, label in labels.items()]
    return {"name": name, "help": about, "kind": kind, "dimension": dimension, "labels": named, "value": value}


def _resource_series() -> list[dict[str, Any]]:
    """As in k8s.io/kubernetes pkg/kubelet/metrics/collectors/resource_metrics.go."""
    pod = {"namespace": "pod.metadata.namespace", "pod": "pod.metadata.name"}
    container = {"container": "container.name", **pod}
    cpu, memory = "Cumulative cpu time consumed in core-seconds", "Current working set in bytes"
    error = "1 if there was an error while getting container metrics, 0 otherwise"
    started = "Start time of the container since unix epoch in seconds"
    began = "UnixSecond(pod.metadata.creationTimestamp)"
    cpu_of_container = 'pod.CumulativeUsage("cpu", container.name)'
    memory_of_container = 'pod.Usage("memory", container.name)'
    cpu_of_node = f'node.CumulativeUsage("cpu") + {_OWN_CPU} * SinceSecond(node)'
    return [
        _series("scrape_error", error, "node", "0"),
        _series("container_start_time_seconds", started, "container", began, **container),
        _series("container_cpu_usage_seconds_total", cpu, "container", cpu_of_container, "counter", **container),
        _series("container_memory_working_set_bytes", memory, "container", memory_of_container, **container),
        _series("pod_cpu_usage_seconds_total", cpu, "pod", 'pod.CumulativeUsage("cpu")', "counter", **pod),
        _series("pod_memory_working_set_bytes", memory, "pod", 'pod.Usage("memory")', **pod),
        _series("node_cpu_usage_seconds_total", cpu, "node", cpu_of_node, "counter"),
        _series("node_memory_working_set_bytes", memory, "node", f'node.Usage("memory") + {_OWN_MEMORY}'),
    ]


def _has_more_than(count: int) -> str:
    """A CEL expression that tells whether a node has more than so many GPUs."""
    gpus = 'node.status.capacity["nvidia.com/gpu"]'
    fewer = ", ".join(f'Quantity("{number}")' for number in range(count + 1))
    return f'("nvidia.com/gpu" in node.status.capacity && !({gpus} in [{fewer}]))'


def _gpu_series(gpu: int) -> list[dict[str, Any]]:
    """dcgm-exporter's default counters, for one GPU of a node.

    A node with fewer GPUs than the maximum writes some of its series more than once, to the same effect; one without
    any has a series with empty labels, since KWOK cannot omit a series.
    """
    # CEL cannot convert a quantity to a number, but can compare two for equality.
    there, some = _has_more_than(gpu), _has_more_than(0)
    text = f'({there} ? "{gpu}" : {some} ? "0" : "")'
    used = f'({there} ? {gpu}.0 : 0.0) < node.Usage("{GPUS}")'
    busy = f'({used} ? node.Usage("{GPU_BUSY}") / node.Usage("{GPUS}") : 0.0)'
    filled = f'({used} ? node.Usage("{GPU_FILLED}") / node.Usage("{GPUS}") : 0.0)'
    labels = {
        "gpu": text,
        "UUID": f'({some} ? "GPU-" + string(node.metadata.uid) + "-" + {text} : "")',
        "device": f'({some} ? "nvidia" + {text} : "")',
        "modelName": _PRODUCT,
        "Hostname": "node.metadata.name",
    }
    values = {
        "DCGM_FI_DEV_GPU_UTIL": ("GPU utilization (in %).", f"100.0 * {busy}"),
        "DCGM_FI_DEV_FB_USED": ("Framebuffer memory used (in MiB).", f"{_MEMORY_MIB} * {filled}"),
        "DCGM_FI_DEV_FB_FREE": ("Framebuffer memory free (in MiB).", f"{_MEMORY_MIB} * (1.0 - {filled})"),
        "DCGM_FI_DEV_GPU_TEMP": ("GPU temperature (in C).", f"32.0 + 43.0 * {busy}"),
        "DCGM_FI_DEV_POWER_USAGE": ("Power draw (in W).", f"60.0 + 340.0 * {busy}"),
        "DCGM_FI_DEV_XID_ERRORS": ("Value of the last XID error encountered.", _XID),
    }
    return [_series(name, about, "node", value, **labels) for name, (about, value) in values.items()]

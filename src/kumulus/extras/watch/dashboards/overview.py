"""The fleet at a glance: what there is, what of it is allocated and used, and how its workloads fare."""

from __future__ import annotations

from kumulus.extras.watch.dashboards.model import Dashboard, Panel, Row, Variable, last, over_time

CHOICES = (
    Variable("zone", "Zone", "kumulus:nodes:count"),
    Variable("node_group", "Node group", "kumulus:nodes:count"),
    Variable("product", "GPU", "kumulus:nodes:count"),
)
CHOSEN = 'zone=~"$zone",node_group=~"$node_group",product=~"$product"'
_GPU = "nvidia_com_gpu"
_OF_NODE = f"* on (node) group_left (zone, node_group, product) kumulus:node:info{{{CHOSEN}}}"


def _of(metric: str, resource: str, by: str = "") -> str:
    total = f'sum by ({by}) ({metric}{{resource="{resource}",{CHOSEN}}})' if by else ""
    return total or f'sum({metric}{{resource="{resource}",{CHOSEN}}})'


def _share(resource: str, by: str = "") -> str:
    return f"{_of('kumulus:requests:sum', resource, by)} / ({_of('kumulus:allocatable:sum', resource, by)} > 0)"


def _allocation(title: str, resource: str, unit: str = "short") -> Panel:
    return over_time(
        title,
        (_of("kumulus:requests:sum", resource), "requested"),
        (_of("kumulus:allocatable:sum", resource), "allocatable"),
        unit=unit,
        height=6,
        about="What pods that are bound to a node request, of what the nodes offer.",
    )


def _jobs(title: str, metric: str) -> Panel:
    return last(title, f"count({metric} > 0) or vector(0)", width=4, height=6)


_GLANCE = Row(
    "Fleet",
    (
        last("Nodes", f"sum(kumulus:nodes:count{{{CHOSEN}}})", width=4, height=5),
        last("GPUs", f"{_of('kumulus:capacity:sum', _GPU)} or vector(0)", width=4, height=5),
        last("GPUs allocated", _share(_GPU), "gauge", unit="percentunit", width=4, height=5, upper=1),
        last("CPU allocated", _share("cpu"), "gauge", unit="percentunit", width=4, height=5, upper=1),
        last("Memory allocated", _share("memory"), "gauge", unit="percentunit", width=4, height=5, upper=1),
        last("Faulted nodes", f"sum(kumulus:nodes_faulted:count{{{CHOSEN}}})", width=4, height=5),
    ),
)

_CAPACITY = Row(
    "Capacity",
    (
        over_time(
            "Nodes",
            (f"sum by (node_group, zone) (kumulus:nodes:count{{{CHOSEN}}})", "{{node_group}} - {{zone}}"),
            width=12,
            stacked=True,
        ),
        over_time(
            "GPUs",
            (f"{_of('kumulus:capacity:sum', _GPU, 'product, zone')} > 0", "{{product}} - {{zone}}"),
            width=12,
            stacked=True,
        ),
        last(
            "Nodes by group",
            f"sum by (node_group) (kumulus:nodes:count{{{CHOSEN}}})",
            "piechart",
            legend="{{node_group}}",
            width=6,
        ),
        last(
            "Nodes by zone", f"sum by (zone) (kumulus:nodes:count{{{CHOSEN}}})", "piechart", legend="{{zone}}", width=6
        ),
        last(
            "GPUs by product",
            f"{_of('kumulus:capacity:sum', _GPU, 'product')} > 0",
            "piechart",
            legend="{{product}}",
            width=6,
        ),
        last(
            "GPUs by zone", f"{_of('kumulus:capacity:sum', _GPU, 'zone')} > 0", "piechart", legend="{{zone}}", width=6
        ),
    ),
)

_ALLOCATION = Row(
    "Allocation",
    (
        _allocation("GPUs requested", _GPU),
        _allocation("CPU requested", "cpu"),
        _allocation("Memory requested", "memory", "bytes"),
        last("GPUs by product", _share(_GPU, "product"), "bargauge", legend="{{product}}", unit="percentunit", upper=1),
        last("GPUs by zone", _share(_GPU, "zone"), "bargauge", legend="{{zone}}", unit="percentunit", upper=1),
        last(
            "Pods per node group",
            _share("pods", "node_group"),
            "bargauge",
            legend="{{node_group}}",
            unit="percentunit",
            upper=1,
        ),
    ),
)

_USE = Row(
    "Use, of stacks with podUsage",
    (
        over_time(
            "GPU utilization", ("avg by (modelName) (DCGM_FI_DEV_GPU_UTIL)", "{{modelName}}"), unit="percent", upper=100
        ),
        over_time(
            "GPU memory",
            (
                "sum by (modelName) (DCGM_FI_DEV_FB_USED)"
                " / sum by (modelName) (DCGM_FI_DEV_FB_USED + DCGM_FI_DEV_FB_FREE)",
                "{{modelName}}",
            ),
            unit="percentunit",
            upper=1,
        ),
        over_time("GPU power", ("sum by (modelName) (DCGM_FI_DEV_POWER_USAGE)", "{{modelName}}"), unit="watt"),
        over_time(
            "CPU used",
            (f"sum by (node_group) (rate(node_cpu_usage_seconds_total[5m]) {_OF_NODE})", "{{node_group}}"),
            width=12,
        ),
        over_time(
            "Memory used",
            (f"sum by (node_group) (node_memory_working_set_bytes {_OF_NODE})", "{{node_group}}"),
            unit="bytes",
            width=12,
        ),
    ),
)

_WORKLOADS = Row(
    "Workloads",
    (
        _jobs("Active jobs", "kube_job_status_active"),
        _jobs("Succeeded jobs", "kube_job_status_succeeded"),
        _jobs("Failed jobs", "kube_job_status_failed"),
        last("Unschedulable pods", "kumulus:pods_unschedulable:count", width=4, height=6),
        last("GPUs waited for", "kumulus:gpus_pending:sum", width=4, height=6),
        last("Pods bound per second", "kumulus:bindings:rate1m", unit="ops", width=4, height=6),
        over_time("Pods by phase", ("kumulus:pods:count > 0", "{{phase}}"), width=12, stacked=True),
        over_time(
            "Running pods by zone",
            (
                'sum by (zone) (kube_pod_status_phase{phase="Running"} * on (namespace, pod) group_left (node)'
                f' kube_pod_info{{node!=""}} {_OF_NODE})',
                "{{zone}}",
            ),
            width=12,
            stacked=True,
        ),
    ),
)

OVERVIEW = Dashboard(
    "kumulus-overview",
    "Kumulus / Cluster overview",
    "Nodes and GPUs by group, product and zone, what of them is allocated and used, and how the workloads fare.",
    (_GLANCE, _CAPACITY, _ALLOCATION, _USE, _WORKLOADS),
    CHOICES,
)

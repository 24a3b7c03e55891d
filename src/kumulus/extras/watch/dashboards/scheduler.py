"""The scheduler: how fast it binds, what waits, and what takes it how long."""

from __future__ import annotations

from kumulus.extras.watch.dashboards.model import Dashboard, Panel, Row, last, over_time

_BINDINGS = 'rate(apiserver_request_total{resource="pods",subresource="binding",verb="POST"}[1m])'


def latency(
    title: str, histogram: str, *, by: str = "", shares: tuple[float, ...] = (0.5, 0.99), **more: object
) -> Panel:
    """Quantiles of a histogram's last minute, over time.

    Args:
        title: the panel's.
        histogram: name and selector of the metric without `_bucket`.
        by: labels to tell series apart by, comma-separated.
        shares: the quantiles.
        more: further arguments of the panel.
    """
    name, brace, selector = histogram.partition("{")
    groups = f"le, {by}" if by else "le"
    legend = "".join(f" {{{{{label.strip()}}}}}" for label in by.split(",") if label)
    queries = (
        (
            f"histogram_quantile({share}, sum by ({groups}) (rate({name}_bucket{brace}{selector}[1m])))",
            f"p{share * 100:g}{legend}",
        )
        for share in shares
    )
    return over_time(title, *queries, unit="s", **more)


SCHEDULER = Dashboard(
    "kumulus-scheduler",
    "Kumulus / Scheduler",
    "Binding rate, queues and latencies of the scheduler.",
    (
        Row(
            "Throughput",
            (
                over_time(
                    "Pods bound per second",
                    (f"sum({_BINDINGS})", "bindings"),
                    unit="ops",
                    about="Requests to bind a pod to a node, of whichever scheduler.",
                ),
                over_time(
                    "Scheduling attempts per second",
                    ("sum by (result) (rate(scheduler_schedule_attempts_total[1m]))", "{{result}}"),
                    unit="ops",
                    about="`unschedulable`: no node fits now. `error` should not be.",
                ),
                over_time(
                    "Pods that enter the queues per second",
                    ("sum by (event) (rate(scheduler_queue_incoming_pods_total[1m]))", "{{event}}"),
                    unit="ops",
                ),
            ),
        ),
        Row(
            "Queues",
            (
                over_time(
                    "Pending pods by queue",
                    ("sum by (queue) (scheduler_pending_pods)", "{{queue}}"),
                    about="`active` will be tried next, `backoff` in a while, `unschedulable` when something changes.",
                    stacked=True,
                ),
                over_time("What the scheduler's cache has", ("scheduler_cache_size", "{{type}}")),
                last(
                    "Unschedulable by plugin",
                    "sum by (plugin) (scheduler_unschedulable_pods)",
                    "bargauge",
                    legend="{{plugin}}",
                    about="The plugins that no node passed, of pods that wait now.",
                ),
            ),
        ),
        Row(
            "Latency",
            (
                latency("A scheduling attempt", "scheduler_scheduling_attempt_duration_seconds", by="result"),
                latency(
                    "From creation to binding",
                    "scheduler_pod_scheduling_sli_duration_seconds",
                    about="Of pods that could be scheduled, without the time in which they could not.",
                ),
                latency(
                    "Extension points",
                    "scheduler_framework_extension_point_duration_seconds",
                    by="extension_point",
                    shares=(0.99,),
                ),
                over_time(
                    "CPU",
                    ('rate(process_cpu_seconds_total{job="kube-scheduler"}[1m])', "cores"),
                    width=12,
                ),
                over_time(
                    "Memory",
                    ('process_resident_memory_bytes{job="kube-scheduler"}', "resident"),
                    unit="bytes",
                    width=12,
                ),
            ),
        ),
    ),
)

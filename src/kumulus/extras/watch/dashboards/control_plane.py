"""The control plane: whether it is up, how much it is asked, how long it takes, and what it costs."""

from __future__ import annotations

from kumulus.extras.watch.dashboards.model import Dashboard, Row, last, over_time
from kumulus.extras.watch.dashboards.scheduler import latency

_OURS = 'job=~"apiserver|kube-.*|kwok-controller|metrics-server|prometheus"'

CONTROL_PLANE = Dashboard(
    "kumulus-control-plane",
    "Kumulus / Control plane",
    "API server, etcd, controllers and what they cost the machine.",
    (
        Row(
            "Components",
            (
                last("Up", f"min by (job) (up{{{_OURS}}})", legend="{{job}}", width=24, height=4),
                over_time("CPU", (f"rate(process_cpu_seconds_total{{{_OURS}}}[1m])", "{{job}}"), stacked=True),
                over_time(
                    "Memory",
                    (f"process_resident_memory_bytes{{{_OURS}}}", "{{job}}"),
                    unit="bytes",
                    stacked=True,
                ),
                over_time("Goroutines", (f"go_goroutines{{{_OURS}}}", "{{job}}")),
            ),
        ),
        Row(
            "API server",
            (
                over_time(
                    "Requests per second", ("sum by (verb) (rate(apiserver_request_total[1m]))", "{{verb}}"), unit="ops"
                ),
                over_time(
                    "Answers per second",
                    ("sum by (code) (rate(apiserver_request_total[1m]))", "{{code}}"),
                    unit="ops",
                    about="409 and 404 are daily business; 429 and 5xx are not.",
                ),
                latency(
                    "Latency",
                    'apiserver_request_duration_seconds{verb!~"WATCH|CONNECT"}',
                    by="verb",
                    shares=(0.99,),
                ),
                over_time(
                    "Requests under way",
                    ("sum by (request_kind) (apiserver_current_inflight_requests)", "{{request_kind}}"),
                ),
                over_time(
                    "Watches",
                    ('topk(10, sum by (resource) (apiserver_longrunning_requests{verb="WATCH"}))', "{{resource}}"),
                ),
                over_time(
                    "Objects",
                    (
                        "topk(10, max by (resource) (apiserver_resource_objects > 0)"
                        " or on () max by (resource) (apiserver_storage_objects > 0))",
                        "{{resource}}",
                    ),
                ),
            ),
        ),
        Row(
            "etcd",
            (
                over_time(
                    "Database",
                    ("etcd_mvcc_db_total_size_in_bytes", "on disk"),
                    ("etcd_mvcc_db_total_size_in_use_in_bytes", "in use"),
                    ("etcd_server_quota_backend_bytes", "quota"),
                    unit="bytes",
                ),
                latency("Log sync", "etcd_disk_wal_fsync_duration_seconds"),
                latency("Commit", "etcd_disk_backend_commit_duration_seconds"),
                over_time(
                    "Proposals per second",
                    ("rate(etcd_server_proposals_committed_total[1m])", "committed"),
                    unit="ops",
                ),
                over_time("Watchers", ("etcd_debugging_mvcc_watcher_total", "watchers")),
                over_time("Keys", ("etcd_debugging_mvcc_keys_total", "keys")),
            ),
        ),
        Row(
            "Controllers and metrics",
            (
                over_time(
                    "Work queues of the controller manager",
                    ('topk(8, workqueue_depth{job="kube-controller-manager"})', "{{name}}"),
                ),
                over_time("Series in Prometheus", ("prometheus_tsdb_head_series", "series")),
                over_time("Scrapes", ("max by (job) (scrape_duration_seconds)", "{{job}}"), unit="s"),
            ),
        ),
    ),
)

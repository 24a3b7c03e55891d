"""What is wrong: with which nodes, which GPUs and which pods."""

from __future__ import annotations

from kumulus.extras.watch.dashboards.model import Dashboard, Row, last, over_time
from kumulus.extras.watch.dashboards.overview import CHOICES, CHOSEN

# Kubernetes' own taints of nodes that are as they should be.
_HARMLESS = 'key!~"kwok.x-k8s.io/node|node-role.kubernetes.io/.*"'

FAULTS = Dashboard(
    "kumulus-faults",
    "Kumulus / Faults",
    "Faulted nodes by group, zone and condition; GPUs with errors; pods that fail, wait or restart.",
    (
        Row(
            "Nodes",
            (
                last("Faulted", f"sum(kumulus:nodes_faulted:count{{{CHOSEN}}})", width=4, height=6),
                last(
                    "Not ready",
                    'count(kube_node_status_condition{condition="Ready",status="true"} == 0) or vector(0)',
                    width=4,
                    height=6,
                ),
                last(
                    "Share of each zone",
                    f"sum by (zone) (kumulus:nodes_faulted:count{{{CHOSEN}}})"
                    f" / sum by (zone) (kumulus:nodes:count{{{CHOSEN}}})",
                    "bargauge",
                    legend="{{zone}}",
                    unit="percentunit",
                    height=6,
                    upper=1,
                ),
                last(
                    "By declared fault",
                    'count by (annotation_kumulus_io_faults) (kube_node_annotations{annotation_kumulus_io_faults!=""})',
                    "bargauge",
                    legend="{{annotation_kumulus_io_faults}}",
                    height=6,
                    about="Faults of the stack file and of `kumulus fault inject`; of several on a node, all names.",
                ),
                over_time(
                    "Faulted nodes by group",
                    (
                        f"sum by (node_group, zone) (kumulus:nodes_faulted:count{{{CHOSEN}}})",
                        "{{node_group}} - {{zone}}",
                    ),
                    stacked=True,
                ),
                over_time(
                    "By condition",
                    (
                        'count by (condition) (kube_node_status_condition{condition!="Ready",status="true"} == 1)',
                        "{{condition}}",
                    ),
                    ('count(kube_node_status_condition{condition="Ready",status="true"} == 0)', "not Ready"),
                ),
                over_time(
                    "Taints",
                    (f"count by (key, effect) (kube_node_spec_taint{{{_HARMLESS}}})", "{{key}}:{{effect}}"),
                ),
            ),
        ),
        Row(
            "GPUs",
            (
                over_time(
                    "GPUs",
                    (f'sum(kumulus:capacity:sum{{resource="nvidia_com_gpu",{CHOSEN}}})', "there"),
                    (f'sum(kumulus:requests:sum{{resource="nvidia_com_gpu",{CHOSEN}}})', "requested"),
                    width=12,
                    about="A fault that takes a GPU takes it from its node's capacity.",
                ),
                over_time(
                    "GPUs by last XID error",
                    ('count_values("xid", DCGM_FI_DEV_XID_ERRORS)', "XID {{xid}}"),
                    width=12,
                    about="0 is none. Of stacks with observability or podUsage on the kwok runtime.",
                ),
            ),
        ),
        Row(
            "Pods",
            (
                over_time(
                    "Containers that wait",
                    ("sum by (reason) (kube_pod_container_status_waiting_reason)", "{{reason}}"),
                ),
                over_time(
                    "Containers that ended",
                    ("sum by (reason) (kube_pod_container_status_terminated_reason)", "{{reason}}"),
                ),
                over_time(
                    "Restarts per second",
                    ("sum by (namespace) (rate(kube_pod_container_status_restarts_total[5m]))", "{{namespace}}"),
                    unit="ops",
                ),
                over_time("Failed pods", ('kumulus:pods:count{phase="Failed"}', "failed")),
                over_time(
                    "Pods that are to go and do not",
                    ("count(time() - kube_pod_deletion_timestamp > 60) or vector(0)", "for a minute"),
                ),
                last(
                    "Alerts",
                    "count by (alertname, alertstate) (ALERTS)",
                    "bargauge",
                    legend="{{alertname}} {{alertstate}}",
                ),
            ),
        ),
    ),
    CHOICES,
)

"""A program of one's own: a control plane, five GPU nodes in two zones, and one of them with a broken GPU."""

import pulumi

from kumulus import Fault, KwokCluster, KwokNodeGroup

cluster = KwokCluster("own")
capacity = {"cpu": 96, "memory": "1360Gi", "pods": 110, "nvidia.com/gpu": 8}
KwokNodeGroup("a100", cluster=cluster, zones={"use1": 3, "use2": 2}, capacity=capacity)
Fault("xid79", cluster=cluster, kind="gpu-fell-off-bus", target={"zone": "use2", "count": 1})
pulumi.export("kubeconfig", cluster.kubeconfig)

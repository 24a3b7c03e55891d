"""A program of one's own: a control plane and five GPU nodes in two zones."""

import pulumi

from components import KwokCluster, KwokNodeGroup

cluster = KwokCluster("own")
capacity = {"cpu": 96, "memory": "1360Gi", "pods": 110, "nvidia.com/gpu": 8}
KwokNodeGroup("a100", cluster=cluster, zones={"use1": 3, "use2": 2}, capacity=capacity)
pulumi.export("kubeconfig", cluster.kubeconfig)

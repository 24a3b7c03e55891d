"""A control plane and eleven nodes, as the programs in other languages next to this one have them."""

import pulumi

import kumulus

cluster = kumulus.KwokCluster("fleet")
training = kumulus.KwokNodeGroup(
    "training",
    cluster=cluster,
    zones={"use1": 4, "use2": 4},
    instance_type="a3-highgpu-8g",
    labels={"team": "research"},
    topology={"nodesPerRack": 2},
)
general = kumulus.KwokNodeGroup(
    "general",
    cluster=cluster,
    zones={"use1": 3},
    capacity={"cpu": "16", "memory": "64Gi", "pods": "110"},
    taints=[],
)
pulumi.export("kubeconfig", cluster.kubeconfig)
pulumi.export("gpuNodes", training.nodes)

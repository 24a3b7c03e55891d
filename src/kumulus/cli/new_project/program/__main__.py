"""Declares a control plane, thirty nodes in three zones, and whatever you add: an ordinary Pulumi program."""

import pulumi

from kumulus import KwokCluster, KwokNodeGroup

ZONES = ("us-central1-a", "us-central1-b", "us-central1-c")

# Called like its stack: the one that `kumulus watch`, `fault` and `experiment` mean if you add another cluster.
cluster = KwokCluster(pulumi.get_stack())
KwokNodeGroup("a100", cluster=cluster, instance_type="a2-ultragpu-8g", zones=dict.fromkeys(ZONES, 5))
KwokNodeGroup("h100", cluster=cluster, instance_type="a3-highgpu-8g", zones=dict.fromkeys(ZONES, 5))
pulumi.export("kubeconfig", cluster.kubeconfig)

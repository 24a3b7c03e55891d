"""KubeScheduler: what kube-scheduler itself chooses, by the scores of its configuration, among nodes that have room.

The policy only accounts for GPUs and parts of them, which kube-scheduler does not: a node is not offered if none of its
GPUs has enough left. A share is taken from the node's tightest GPU.
"""

SCHEDULER_CHOOSES = True

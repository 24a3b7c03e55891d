"""KubeScheduler: what kube-scheduler itself chooses, by the scores of its configuration, among nodes that have room.

It only keeps the account of GPUs and of parts of them, which kube-scheduler does not: a node without a GPU that has
enough left is not offered. Of a node's GPUs a share gets the tightest.
"""

SCHEDULER_CHOOSES = True

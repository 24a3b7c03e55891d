"""Random: any node on which the pod fits, and any of its GPUs with enough free."""

import numpy as np

from kumulus.extras.lab.policies import Nodes, Pod, Study


def choose(pod: Pod, nodes: Nodes, study: Study) -> int:
    """Any node, all equally likely."""
    return study.random.randrange(len(nodes))


def gpu(pod: Pod, node: Nodes, study: Study) -> int:
    """Any GPU that has enough free."""
    return int(study.random.choice(np.flatnonzero(node.gpu_free[0] >= pod.gpu_milli)))

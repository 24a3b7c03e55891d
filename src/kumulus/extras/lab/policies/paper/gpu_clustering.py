"""GpuClustering: pods of one size together, after Gandiva (OSDI 2018).

The best node has only GPU pods of the pod's size; next is one that also has others, then an empty one, then one with
only others. Among equals, it is the one with the least GPU left. For pods without GPUs all nodes are equal.
"""

import numpy as np

from kumulus.extras.lab.policies import Nodes, Pod, Study

REMEMBER = True
_MOST_GPU = 8_000  # milli-GPU of the largest machine


def score(pod: Pod, nodes: Nodes, study: Study) -> np.ndarray:
    """From 0 to 100: a quarter for each of the four cases, and within it how full the node's GPUs are."""
    if not pod.gpus:
        return np.zeros(len(nodes))
    size = 0 if pod.shares_gpu else pod.gpus
    sizes = (nodes.running > 0).sum(axis=1)
    same = nodes.running[:, size] > 0
    case = np.where(same & (sizes == 1), 75, np.where(same, 50, np.where(sizes == 0, 25, 0)))
    points: np.ndarray = case + 25 * (_MOST_GPU - nodes.gpu_free.sum(axis=1)) // _MOST_GPU
    return points

"""DotProd: the node whose free CPU and GPU align least with the pod's request, after Tetris (SIGCOMM 2014).

As in the paper's simulator, the GPUs of a node are one amount. Both vectors are taken relative to the largest machine;
the smaller their product, the fuller the node and the higher its score, a whole number from 0 to 100.
"""

import numpy as np

from kumulus.extras.lab.policies import Nodes, Pod, Study

REMEMBER = True
_MOST_CPU = 128_000  # milli-CPU of the largest machine
_MOST_GPU = 8_000  # milli-GPU of the largest machine


def score(pod: Pod, nodes: Nodes, study: Study) -> np.ndarray:
    """From 0 to 100, the highest where the product is smallest."""
    cpu = nodes.cpu_free / _MOST_CPU * (pod.cpu / _MOST_CPU)
    gpu = nodes.gpu_free.sum(axis=1) / _MOST_GPU * (pod.total_gpu_milli / _MOST_GPU)
    points: np.ndarray = np.trunc(100 * (1 - (cpu + gpu) / 2))
    return points

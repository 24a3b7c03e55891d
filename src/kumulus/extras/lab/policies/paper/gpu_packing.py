"""GpuPacking: GPUs in use first, then free GPUs of nodes in use, and empty nodes last, after PAI (NSDI 2022).

A share goes where the GPU it gets has least free. For pods without GPUs all nodes are equal.
"""

import numpy as np

from kumulus.extras.lab.policies import Nodes, Pod, Study

REMEMBER = True
_WHOLE = 1000


def score(pod: Pod, nodes: Nodes, study: Study) -> np.ndarray:
    """From 50 to 100 on GPUs in use, from 33 to 50 on free GPUs of a node in use, below 33 on an empty node."""
    if not pod.gpus:
        return np.zeros(len(nodes))
    free = (nodes.gpu_free == _WHOLE).sum(axis=1)
    empty = np.maximum(33 - free, free)
    tightest = np.where(nodes.gpu_free >= pod.gpu_milli, nodes.gpu_free, 2 * _WHOLE).min(axis=1)
    unused = np.maximum(50 - pod.gpus, 33)
    shared = np.maximum(100 - (tightest * 100 // _WHOLE) // 10, 50)
    in_use = np.where(tightest < _WHOLE, shared, unused)
    points: np.ndarray = np.where(free == nodes.gpus, empty, in_use)
    return points

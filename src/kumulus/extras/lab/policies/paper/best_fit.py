"""BestFit: the node with the least left; half of the score is for its CPU and half for its GPUs.

What is left is taken relative to the largest machine; scores are whole numbers from 0 to 100.
"""

import numpy as np

from kumulus.extras.lab.policies import Nodes, Pod, Study

REMEMBER = True
_MOST_CPU = 128_000  # milli-CPU of the largest machine
_MOST_GPU = 8_000  # milli-GPU of the largest machine


def score(pod: Pod, nodes: Nodes, study: Study) -> np.ndarray:
    """From 0 to 100, the highest where least is left."""
    cpu = (nodes.cpu_free - pod.cpu) / _MOST_CPU
    gpu = (nodes.gpu_free.sum(axis=1) - pod.total_gpu_milli) / _MOST_GPU
    points: np.ndarray = np.trunc((1 - (cpu * 0.5 + gpu * 0.5)) * 100)
    return points

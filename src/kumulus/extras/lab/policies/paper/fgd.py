"""FGD: fragmentation gradient descent, the paper's own: the node and the GPU whose fragmentation grows least."""

import numpy as np

from kumulus.extras.lab.policies import Nodes, Pod, Study

REMEMBER = True


def score(pod: Pod, nodes: Nodes, study: Study) -> np.ndarray:
    """A whole number from 0 to 100; 50 where the fragmentation stays as it is."""
    before = study.fragmentation(nodes)
    if not pod.shares_gpu:
        return _points(before - study.fragmentation(nodes.with_pod(pod)))
    each, node, gpu = nodes.for_each_gpu(pod)
    best = np.full(len(nodes), -1.0)
    np.maximum.at(best, node, _points(before[node] - study.fragmentation(each.with_pod(pod, gpu))))
    return best


def gpu(pod: Pod, node: Nodes, study: Study) -> int:
    """The GPU of a node whose use increases the fragmentation least; the first of equals."""
    each, _, gpu = node.for_each_gpu(pod)
    before = study.fragmentation(node)[0]
    return int(gpu[_points(before - study.fragmentation(each.with_pod(pod, gpu))).argmax()])


def _points(gain: np.ndarray) -> np.ndarray:
    return np.trunc(100 / (1 + np.exp(-gain / 1000)))

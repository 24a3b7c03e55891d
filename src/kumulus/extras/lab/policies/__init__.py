"""Policies in Python: a file of a few functions that says where pods go, offline and together with a real scheduler.

A policy file has one of two functions, and may have two more (docs/traces.md)::

    def score(pod: Pod, nodes: Nodes, study: Study) -> np.ndarray      # a number for each node, the highest wins
    def choose(pod: Pod, nodes: Nodes, study: Study) -> int            # or: which of the nodes, counted from 0
    def allowed(pod: Pod, nodes: Nodes, study: Study) -> np.ndarray    # which nodes are allowed, of those that fit
    def gpu(pod: Pod, node: Nodes, study: Study) -> int                # which GPU of one node a share is taken from

`REMEMBER = True` in it says that a score depends only on the pod's CPU, GPUs and models and on the node itself. Then
nodes are scored again only after they have changed, which makes a study take only seconds.
"""

from kumulus.extras.lab.policies.fragmentation import Study
from kumulus.extras.lab.policies.nodes import Nodes, Pod

__all__ = ["Nodes", "Pod", "Study"]

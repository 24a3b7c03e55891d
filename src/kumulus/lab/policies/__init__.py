"""Policies in Python: a file of a few functions that says where pods go, offline and beside a real scheduler.

A policy file has one of two functions, and may have two more (docs/traces.md)::

    def score(pod: Pod, nodes: Nodes, study: Study) -> np.ndarray      # a number for each node, the highest wins
    def choose(pod: Pod, nodes: Nodes, study: Study) -> int            # or: which of the nodes, counted from 0
    def allowed(pod: Pod, nodes: Nodes, study: Study) -> np.ndarray    # which nodes may be, beside what fits
    def gpu(pod: Pod, node: Nodes, study: Study) -> int                # which GPU of one node a share of a GPU gets

`REMEMBER = True` in it says that a score depends on nothing but the pod's CPU, GPUs and models and on the node itself:
then a score is asked for again only after its node has changed, which is what makes a study take seconds.
"""

from kumulus.lab.policies.nodes import Nodes
from kumulus.lab.policies.pod import Pod
from kumulus.lab.policies.study import Study

__all__ = ["Nodes", "Pod", "Study"]

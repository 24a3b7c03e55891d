"""The federation of a stack, for commands that work on its hub."""

from __future__ import annotations

from pathlib import Path

from kumulus.cli import stack_file, which
from kumulus.extras.lab.federation.members import Federation, Worker


def of_hub(found: which.Which, kubeconfig: Path) -> Federation | None:
    """The federation whose hub a cluster is; None if it is not a hub.

    Args:
        found: the cluster.
        kubeconfig: the cluster's.

    Raises:
        UserError: the stack's file has mistakes.
    """
    # Only a cluster in a stack of several can be a hub.
    if not found.cluster:
        return None
    stack = stack_file.described(found.stack)
    if stack is None or stack.federation is None or stack.federation.hub != found.cluster:
        return None
    there = {each.cluster: each for each in which.every(found.stack)}
    asked = stack.federation.asked
    workers = tuple(Worker(name, there[name].kubeconfig) for name in stack.federation.workers)
    name = stack.clusters[found.cluster].cluster_name
    return Federation(found.cluster, kubeconfig, name, workers, asked.queue, asked.kueueNamespace)

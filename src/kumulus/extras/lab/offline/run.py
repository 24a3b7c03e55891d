"""One offline run: every pod of a stream is offered to a policy once, and the cluster's state recorded."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass

from kumulus.extras.lab.offline.fleet import Machine, empty, in_order
from kumulus.extras.lab.offline.measuring import Curves, Measuring
from kumulus.extras.lab.offline.placing import Placer, Ties
from kumulus.extras.lab.plan.stream import drawn
from kumulus.extras.lab.policies import Pod, Study
from kumulus.extras.lab.policies.fragmentation import Fragmentation, typical_kinds
from kumulus.extras.lab.policies.load import Policy, PolicyFailed
from kumulus.extras.lab.policies.pod import WHOLE_GPU


@dataclass(frozen=True)
class Outcome:
    """The outcome of a run.

    Args:
        seed: the run's.
        pods: how many arrived.
        placed: how many got a node.
        failed: how many the policy failed on.
        failure: the message for the first of them; empty where there are none.
        curves: measures by whole per cents of demand arrived.
    """

    seed: int
    pods: int
    placed: int
    failed: int
    failure: str
    curves: Curves


def run(
    machines: Sequence[Machine],
    pods: Sequence[Pod],
    policy: Policy,
    *,
    seed: int,
    ties: Ties = "name",
    inflate: float | None = None,
    shuffle: bool = True,
    skip_failures: bool = False,
) -> Outcome:
    """Place a trace whose pods stay.

    Args:
        machines: the cluster.
        pods: the trace's, in the order of their arrival.
        policy: which one.
        seed: of the order of pods and nodes, and of what the policy draws.
        ties: which of equally good nodes is taken.
        inflate: the demand to arrive, as a share of all GPUs; None for every pod once.
        shuffle: whether the seed decides the order of pods.
        skip_failures: whether a pod that the policy fails on counts as not placed, instead of ending the run.
    """
    source = random.Random(seed)
    total = WHOLE_GPU * sum(machine.gpus for machine in machines)
    stream = drawn(pods, total, inflate, source) if shuffle or inflate is not None else list(pods)
    # The published simulator numbers nodes from 0 for each seed, and breaks ties by the smallest of these names.
    shuffled = in_order(machines)
    source.shuffle(shuffled)
    nodes = empty(shuffled)
    study = Study(Fragmentation.of(typical_kinds(pods), nodes.models), source)
    placer, measuring = Placer(policy, nodes, study, ties), Measuring(nodes, study.fragmentation)
    failures: list[str] = []
    for pod in stream:
        where = None
        try:
            where = placer.place(pod)
        except PolicyFailed as error:
            if not skip_failures:
                raise
            failures.append(str(error) if not failures else "")
        measuring.arrive(pod, where)
        if where is not None:
            placer.changed(where.node)
    failure = failures[0] if failures else ""
    return Outcome(seed, measuring.pods, measuring.placed, len(failures), failure, measuring.curves())

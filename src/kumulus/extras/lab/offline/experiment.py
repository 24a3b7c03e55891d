"""Run an experiment file without a cluster: its stack's machines, its trace, its policy, a run for each seed."""

import os
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial

from kumulus.extras.lab.errors import LabError
from kumulus.extras.lab.file.load import LoadedExperiment
from kumulus.extras.lab.file.trace import TraceJob
from kumulus.extras.lab.file.workload import Workload
from kumulus.extras.lab.offline.measuring import OfflineOutcome
from kumulus.extras.lab.offline.measuring import run as run_once
from kumulus.extras.lab.offline.placing import EmptyNode, Ties
from kumulus.extras.lab.plan.stream import pod_recorded
from kumulus.extras.lab.policies import Pod
from kumulus.extras.lab.policies.load import policy
from kumulus.model.gfd import GPU_RESOURCE
from kumulus.model.pools import Pool
from kumulus.model.quantity import NANO, parse


@dataclass(frozen=True)
class OfflineStudy:
    """What an offline run needs, read once for all seeds."""

    loaded: LoadedExperiment
    machines: Sequence[EmptyNode]
    pods: Sequence[Pod]
    """Of its trace, in the order of their arrival."""
    ties: Ties


def study(loaded: LoadedExperiment, pools: Iterable[Pool], ties: Ties) -> OfflineStudy:
    """Prepare an experiment to be run without a cluster.

    Args:
        loaded: the experiment; its policy is loaded once to check it.
    """
    experiment = loaded.experiment
    if problems := list(_problems(loaded)):
        raise LabError("\n".join(problems))
    if policy(experiment.policy, loaded.directory, experiment.policyTimeout).leaves:
        raise LabError(
            f"policy {experiment.policy} leaves the choice to kube-scheduler, and without a cluster there is none\n"
            "  Leave out --offline, or write another policy, such as BestFit"
        )
    machines = [machine for pool in pools for machine in machines_of(pool, experiment.productLabel)]
    pods = pods_of(experiment.workloads[0], loaded)
    return OfflineStudy(loaded, machines, pods, ties)


def run(prepared: OfflineStudy, seeds: Sequence[int], jobs: int = 0) -> list[OfflineOutcome]:
    """Run each seed, several in parallel.

    Args:
        jobs: how many at once; 0 for one on each CPU.
    """
    # Each run uses one thread: a BLAS that takes every CPU for its small products only slows down the others.
    for variable in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"):
        os.environ.setdefault(variable, "1")
    once = partial(one_run, prepared)
    many = min(jobs or len(os.sched_getaffinity(0)), len(seeds))
    if many <= 1:
        return [once(seed) for seed in seeds]
    with ProcessPoolExecutor(many) as workers:
        return list(workers.map(once, seeds))


def one_run(prepared: OfflineStudy, seed: int) -> OfflineOutcome:
    """The run of one seed; see :func:`run`."""
    experiment = prepared.loaded.experiment
    trace = experiment.workloads[0].arrival.trace
    assert trace is not None
    return run_once(
        prepared.machines,
        prepared.pods,
        policy(experiment.policy, prepared.loaded.directory, experiment.policyTimeout),
        seed=seed,
        ties=prepared.ties,
        inflate=trace.inflate,
        shuffle=trace.shuffle is not None,
        skip_failures=experiment.onPolicyError == "skip",
    )


def machines_of(pool: Pool, product_label: str) -> list[EmptyNode]:
    """The machines of a node pool."""
    has = {name: parse(quantity).nanos for name, quantity in pool.allocatable.items()}
    cpu, memory = has.get("cpu", 0) * 1000 // NANO, has.get("memory", 0) // (NANO << 20)
    # GPUs that a node offers both ways are the same ones.
    gpus = max(has.get(GPU_RESOURCE, 0) // NANO, pool.devices.count if pool.devices else 0)
    model = pool.labels.get(product_label, pool.group)
    named = [pool.named(number) for number in range(pool.replicas)]
    models = [node.labels.get(product_label, model) if node else model for node in named]
    return [EmptyNode(name, cpu, memory, gpus, each) for name, each in zip(pool.node_names(), models, strict=True)]


def pods_of(workload: Workload, loaded: LoadedExperiment) -> list[Pod]:
    """The pods of a workload's trace, in the order of their arrival."""
    return [pod for job in loaded.traces[workload.name] for pod in _pods(job, workload)]


def _pods(job: TraceJob, workload: Workload) -> Iterable[Pod]:
    pod = pod_recorded(job)
    if pod is None:
        raise LabError(
            f"workload {workload.name}: the trace does not say what its jobs ask for\n"
            "  Write columns: {cpu: …, memory: …, gpus: …} in arrival.trace, or import it: kumulus trace import"
        )
    return [pod] * (job.size or workload.workers)


def _problems(loaded: LoadedExperiment) -> Iterator[str]:
    """What keeps an experiment from being run without a cluster, all of it at once."""
    experiment = loaded.experiment
    if not experiment.policy:
        yield "the file names no policy, which places the pods of a run without a cluster\n  Write policy: FGD"
    traces = [workload.arrival.trace for workload in experiment.workloads]
    if len(traces) != 1 or traces[0] is None:
        yield "a run without a cluster plays one workload, with arrival.trace, and no other"
    elif not traces[0].stay:
        yield "a run without a cluster is of pods that stay\n  Write stay: true in arrival.trace, or run it live"

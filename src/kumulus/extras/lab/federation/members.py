"""The members of a federation, and which experiments can run on one."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from kumulus.extras.journal import outages
from kumulus.extras.lab.errors import LabError
from kumulus.extras.lab.file.model import OWN, Experiment
from kumulus.extras.lab.file.timeline import OUTAGES
from kumulus.model.names import nearest

_TIMELINE = (*OUTAGES, "delete")


@dataclass(frozen=True)
class Worker:
    """A cluster that runs the hub's Jobs."""

    name: str
    """What the stack file calls it."""
    kubeconfig: Path
    """By which this machine reaches it."""


@dataclass(frozen=True)
class Federation:
    """Clusters that work as one by MultiKueue."""

    hub: str
    """What the stack file calls it."""
    hub_kubeconfig: Path
    """By which this machine reaches it."""
    hub_name: str
    """Its own name, after which its account on workers is named."""
    workers: tuple[Worker, ...]
    """In the order of the file."""
    queue: str
    """The LocalQueue, and the ClusterQueue behind it, on each of them."""
    namespace: str
    """Kueue's."""

    def worker(self, name: str) -> Worker:
        """The worker of that name.

        Raises:
            KeyError: there is none.
        """
        return {each.name: each for each in self.workers}[name]


def require_outside(experiment: Experiment, where: str) -> None:
    """Refuse an experiment that needs a federation but does not run on one.

    Args:
        where: what it runs on, such as a stack's name.

    Raises:
        LabError: its timeline names workers; the message has the place and the remedy.
    """
    for index, event in enumerate(experiment.timeline):
        if event.action in OUTAGES:
            raise LabError(
                f"timeline[{index}].{event.action}: {where} is no hub of a federation, and has no worker "
                f"{getattr(event, event.action)}; leave it out, or run it on the hub of a stack with "
                "kumulus:federation (docs/many-clusters.md)"
            )


def require_inside(experiment: Experiment, federation: Federation) -> None:
    """Refuse an experiment that cannot run on a federation.

    Raises:
        LabError: the message has every place, and what to write there instead.
    """
    if problems := [*_whole(experiment), *_workloads(experiment, federation), *_timeline(experiment, federation)]:
        several = "a federation cannot run this:\n  " if len(problems) > 1 else ""
        raise LabError(several + "\n  ".join(problems))


def _whole(experiment: Experiment) -> Iterator[str]:
    if experiment.scheduler.name != OWN:
        yield (
            "scheduler: in a federation Kueue queues the Jobs and each worker's own scheduler places their pods; "
            "leave it out"
        )
    for key, given in (
        ("policy", experiment.policy),
        ("autoscaler", experiment.autoscaler),
        ("from", experiment.from_),
        ("why", experiment.why),
    ):
        if given:
            yield f"{key}: is of one cluster, and a federation has several; leave it out, or name one by --cluster"


def _workloads(experiment: Experiment, federation: Federation) -> Iterator[str]:
    for index, each in enumerate(experiment.workloads):
        where = f"workloads[{index}]"
        if each.replay is not None:
            yield f"{where}.replay: a recorded day is played on one cluster; leave it out, or name one by --cluster"
        elif not each.manifest and each.kind != "Job":
            yield f"{where}.kind: a federation dispatches Jobs, and no {each.kind}; write kind: Job"
        if each.resourceClaims:
            yield f"{where}.resourceClaims: are allocated in one cluster; leave it out, or name one by --cluster"
        if each.arrival.trace is not None and each.arrival.trace.userQueues:
            yield f"{where}.arrival.trace.userQueues: a federation has one queue, {federation.queue}; leave it out"
        if each.queue not in ("", federation.queue):
            yield f"{where}.queue: the federation's queue is {federation.queue}; write that, or leave it out"


def _timeline(experiment: Experiment, federation: Federation) -> Iterator[str]:
    names = [each.name for each in federation.workers]
    for index, event in enumerate(experiment.timeline):
        where = f"timeline[{index}].{event.action}"
        if event.action not in _TIMELINE:
            yield f"{where}: is of one cluster; in a federation write {', '.join(_TIMELINE[:-1])} or {_TIMELINE[-1]}"
            continue
        if event.action not in OUTAGES:
            continue
        name = str(getattr(event, event.action))
        if name not in names:
            near = nearest(name, names)
            there = f"did you mean {' or '.join(near)}?" if near else f"there are {', '.join(names)}"
            what = f"{name} is the hub" if name == federation.hub else f"{name} is no worker of the federation"
            yield f"{where}: {what}; {there}"
        elif event.kill and not outages.can_be_killed(federation.worker(name).kubeconfig):
            yield (
                f"{where}: the control plane of {name} is not of the runtime kwok, and cannot be killed from here; "
                f"write partition: {name}"
            )
        elif event.partition and not outages.can_be_killed(federation.hub_kubeconfig):
            yield (
                f"{where}: the hub's Kueue is not on this machine, and cannot be led through a proxy on it; "
                f"write kill: {name}, or have a hub of the runtime kwok"
            )

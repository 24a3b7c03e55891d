"""How a run is made, what its repetitions share, and the outcome of each."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from kumulus.extras.journal.book import Journal
from kumulus.extras.lab.cluster.components import Components
from kumulus.extras.lab.federation.dispatching import Dispatching
from kumulus.extras.lab.federation.members import Federation
from kumulus.extras.lab.federation.session import Session
from kumulus.extras.lab.file.model import Experiment
from kumulus.extras.lab.measure.placement import Placement
from kumulus.extras.lab.measure.records import Records
from kumulus.extras.lab.measure.sampler import Sampler
from kumulus.extras.lab.measure.verdicts import Verdict
from kumulus.extras.lab.report.model import PolicyUsed, Report
from kumulus.extras.lab.run.arriving import Arriving
from kumulus.extras.lab.run.commands import Commands
from kumulus.extras.lab.run.replaying import ReplayResult
from kumulus.extras.lab.run.switch import SchedulerSwitch
from kumulus.extras.lab.run.timeline import Happened
from kumulus.extras.watch.live.node import NOWHERE, Places
from kumulus.model.identity import NOBODY, Owner
from kumulus.nodes.catalog import prices
from kumulus.nodes.catalog.prices import Prices, catalog

if TYPE_CHECKING:
    from kumulus.kube import Client


@dataclass
class Outcome:
    """The outcome of a repetition.

    Attributes:
        records: what became of pods and jobs.
        sampler: what was sampled.
        ended: why it ended, in words.
        partial: whether it was cut short.
        created_in: seconds until everything had been created.
        lasted: seconds until it ended.
        happened: the timeline's events, as they happened.
        placement: what was where, and when.
        interruptions: how often a watch was interrupted.
        stall: the longest time, in seconds, for which the client stood still.
        nodes: how many nodes the cluster had at the start.
        gpus: their GPUs by product and zone.
        replay_results: the result of each recording's replay, by its workload.
        policy: what the policy did, and how far the demand that arrived filled the cluster; None where that means
            nothing.
        dispatching: what became of each Job on its way to a worker; None outside of federations.
        commands: whether the timeline's commands came to a good end.
        away: the workers of a federation that were killed or cut off from the hub at the end.
    """

    records: Records
    sampler: Sampler
    placement: Placement
    ended: str = ""
    partial: bool = False
    created_in: float = 0.0
    lasted: float = 0.0
    happened: list[Happened] = field(default_factory=list)
    interruptions: int = 0
    stall: float = 0.0
    nodes: int = 0
    gpus: dict[str, float] = field(default_factory=dict)
    replay_results: dict[str, ReplayResult] = field(default_factory=dict)
    policy: PolicyUsed | None = None
    dispatching: Dispatching | None = None
    commands: list[Verdict] = field(default_factory=list)
    away: frozenset[str] = frozenset()


@dataclass
class Bench:
    """What the repetitions of a run share.

    Attributes:
        client: of the cluster.
        journal: the run's.
        experiment: what is run.
        components: the cluster's processes.
        switch: the scheduler.
        stop: set to end the run early.
        commands: starts and ends the timeline's commands.
        on_sample: called after each sample, with the outcome so far.
        owner: the stack.
        places: which labels say where nodes stand.
        prices: what machines cost.
        arriving: accounts for the pods as they arrive; None if their order says nothing.
        session: the workers, where the cluster is the hub of a federation; None where it is measured alone.
    """

    client: Client
    journal: Journal
    experiment: Experiment
    components: Components
    switch: SchedulerSwitch
    stop: asyncio.Event
    commands: Commands
    on_sample: Callable[[Outcome], None] = lambda _: None
    owner: Owner = NOBODY
    places: Places = NOWHERE
    prices: prices.Prices = field(default_factory=prices.catalog)
    arriving: Arriving | None = None
    session: Session | None = None


@dataclass
class Options:
    """How a run is made.

    Attributes:
        kubeconfig: of the cluster.
        stack: the name of the cluster's stack in the report.
        results: the directory of all runs.
        commit: the project's commit.
        stop: set to end the run early.
        on_sample: called after each sample.
        on_report: takes the report when it is complete, before the cluster is cleaned up.
        say: takes a line for the user.
        prices: what machines cost.
        snapshots: the directory of the stack's snapshots; None where it has none.
        federation: the one whose hub the cluster is; None for a single cluster.
    """

    kubeconfig: Path
    stack: str
    results: Path
    commit: str
    stop: asyncio.Event
    on_sample: Callable[[Outcome], None]
    on_report: Callable[[Report, Path], None]
    say: Callable[[str], None]
    prices: Prices = field(default_factory=catalog)
    snapshots: Path | None = None
    federation: Federation | None = None

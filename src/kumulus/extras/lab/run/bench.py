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
from kumulus.extras.lab.federation.members import RunningFederation, Session
from kumulus.extras.lab.file.model import ExperimentSpec
from kumulus.extras.lab.measure.placement import PlacementRecorder
from kumulus.extras.lab.measure.records import ExperimentRecords
from kumulus.extras.lab.measure.sampler import Sampler
from kumulus.extras.lab.measure.verdicts import ExpectationVerdict
from kumulus.extras.lab.report.model import PolicyUsed, Report
from kumulus.extras.lab.run.arriving import Arriving
from kumulus.extras.lab.run.commands import Commands
from kumulus.extras.lab.run.replaying import ReplayResult
from kumulus.extras.lab.run.switch import SchedulerSwitch
from kumulus.extras.lab.run.timeline import Happened
from kumulus.extras.watch.live.node import PlaceLabels
from kumulus.model.identity import Owner
from kumulus.nodes.catalog.prices import Prices, catalog

if TYPE_CHECKING:
    from kumulus.kube import Client


@dataclass
class RepetitionOutcome:
    """The outcome of a repetition."""

    records: ExperimentRecords
    sampler: Sampler
    placement: PlacementRecorder
    """What was where, and when."""
    ended: str = ""
    partial: bool = False
    created_in: float = 0.0
    """Seconds until everything had been created."""
    lasted: float = 0.0
    """Seconds until it ended."""
    happened: list[Happened] = field(default_factory=list)
    interruptions: int = 0
    stall: float = 0.0
    """The longest time, in seconds, for which the client stood still."""
    nodes: int = 0
    """How many nodes the cluster had at the start."""
    gpus: dict[str, float] = field(default_factory=dict)
    """Their GPUs by product and zone."""
    replay_results: dict[str, ReplayResult] = field(default_factory=dict)
    """The result of each recording's replay, by its workload."""
    policy: PolicyUsed | None = None
    """What the policy did, and how far the demand that arrived filled the cluster; None where that means nothing."""
    dispatching: Dispatching | None = None
    """What became of each Job on its way to a worker; None outside of federations."""
    commands: list[ExpectationVerdict] = field(default_factory=list)
    """Whether the timeline's commands came to a good end."""
    away: frozenset[str] = frozenset()
    """The workers of a federation that were killed or cut off from the hub at the end."""


@dataclass
class RunOptions:
    """How a run is made."""

    kubeconfig: Path
    stack: str
    results: Path
    on_report: Callable[[Report, Path], None] = lambda _report, _directory: None
    """Takes the report when it is complete, before the cluster is cleaned up."""
    on_sample: Callable[[RepetitionOutcome], None] = lambda _: None
    """Called after each sample, with the outcome so far."""
    say: Callable[[str], None] = lambda _: None
    """Takes a line for the user."""
    stop: asyncio.Event = field(default_factory=asyncio.Event)
    """Set to end the run early."""
    commit: str = ""
    prices: Prices = field(default_factory=catalog)
    """What machines cost."""
    snapshots: Path | None = None
    """The directory of the stack's snapshots; None where it has none."""
    federation: RunningFederation | None = None
    """The one whose hub the cluster is; None for a single cluster."""
    label: str = ""


@dataclass
class Bench:
    """What the repetitions of a run share."""

    client: Client
    options: RunOptions
    journal: Journal
    experiment: ExperimentSpec
    components: Components
    switch: SchedulerSwitch
    commands: Commands
    owner: Owner
    places: PlaceLabels
    """Which labels say where nodes stand."""
    arriving: Arriving | None
    """Accounts for the pods as they arrive; None if their order says nothing."""
    session: Session | None
    """The workers, where the cluster is the hub of a federation; None where it is measured alone."""

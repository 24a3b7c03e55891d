"""How a run is made: on which cluster, where its results go, and what its progress is reported to."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from kumulus.extras.lab.federation.members import Federation
from kumulus.extras.lab.report.model import Report
from kumulus.extras.lab.run.bench import Outcome
from kumulus.nodes.catalog.prices import Prices, catalog


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

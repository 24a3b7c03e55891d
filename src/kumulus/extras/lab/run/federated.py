"""A repetition on a federation: the watches of all clusters, its Jobs' progress, and workers' outages."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Literal

import yaml

from kumulus.extras.federation.component import NAME as KUEUE
from kumulus.extras.lab.cluster.components import Components
from kumulus.extras.lab.errors import LabError
from kumulus.extras.lab.federation.dispatching import Dispatching
from kumulus.extras.lab.federation.listening import Listeners
from kumulus.extras.lab.federation.outages import Outages
from kumulus.extras.lab.measure.clock import Clock
from kumulus.extras.lab.measure.listening import occupy
from kumulus.extras.lab.plan.plan import RepetitionPlan
from kumulus.extras.lab.run.bench import Bench, RepetitionOutcome
from kumulus.extras.watch.history.document import Sort


class FederatedRepetition:
    """A repetition on the hub of a federation.

    Args:
        bench: what the repetitions share; with a session.
        name: the repetition's namespace.
        note: takes what happens besides the timeline's own events.
    """

    def __init__(
        self,
        bench: Bench,
        plan: RepetitionPlan,
        name: str,
        now: Clock,
        outcome: RepetitionOutcome,
        note: Callable[[str, Sort], None],
    ) -> None:
        assert bench.session is not None
        self._bench, self._plan, self._name, self._now, self._outcome = bench, plan, name, now, outcome
        self._session = bench.session
        self._begun = False
        of = self._session.federation
        self._tell = note
        self.dispatching = Dispatching(of.hub, [each.name for each in of.workers], plan.jobs, name)
        self.outages = Outages(bench.client, of, bench.journal, now, bench.components.look)
        self.listeners = Listeners(
            bench.client,
            self._session,
            outcome.records,
            now,
            outcome.placement,
            self.dispatching,
            self.outages.away,
            self._note,
        )
        outcome.dispatching = self.dispatching
        outcome.sampler.more = self._sampled

    async def enter(self) -> None:
        """Create the namespace on each worker, and account for the pods that are there already."""
        bench = self._bench
        title, stop = bench.experiment.name, bench.options.stop
        await self._session.enter(bench.client, self._name, title, bench.owner, self._plan.setup, self._now, stop)
        for each in self._session.members:
            await occupy(each.client, self._outcome.records, each.name)

    def begin(self) -> None:
        """Begin the measurement: earlier changes of the hub's connections to workers only prepared it."""
        self._begun = True
        self.dispatching.connected.update(dict.fromkeys(self.outages.led, True))

    async def leave(self) -> None:
        """Remove the namespace from each worker."""
        await self._session.leave(self._name)

    def waits(self) -> str:
        """What is still waited for when all pods have completed: that the hub sees its Jobs as over."""
        unfinished = self.dispatching.unfinished
        if self._bench.experiment.until != "completed" or not unfinished:
            return ""
        return f"{unfinished:,} Jobs are not over, as the hub knows"

    def end(self) -> None:
        """The measurement is over."""
        self._outcome.away = frozenset(self.outages.unreached())

    def _note(self, what: str, sort: Sort) -> None:
        if self._begun:
            self._tell(what, sort)

    def _sampled(self) -> Mapping[str, float]:
        records, connected = self._outcome.records, self.dispatching.connected
        gone = self.outages.unreached()
        if any(not connected.get(name, True) for name in self.dispatching.workers if name not in gone):
            # Kueue retries after ever longer delays, up to minutes, so it has to be waited for.
            records.changed = self._now()
        records.changed = max(records.changed, self.dispatching.changed)
        return self.dispatching.sampled()


class HubSwitch:
    """The hub's Kueue, which decides in a federation, as the switch of a run; it cannot be stopped."""

    def __init__(self, kubeconfig: Path, components: Components) -> None:
        self._components = components
        self._there = bool(components.pids(KUEUE))
        self.component = KUEUE
        self.settings: Mapping[str, str] = _limits(kubeconfig.parent / KUEUE / "config.yaml")

    async def set_scheduler(self, how: Literal["stop", "start", "restart"]) -> str:
        """Refuse it: a federation's timeline has no scheduler."""
        raise LabError(f"the timeline can {how} no scheduler of a federation; leave scheduler: out of it")

    async def restore(self) -> None:
        """Nothing was stopped."""

    def ended(self) -> str:
        """How the hub's Kueue ended, if it did so by itself; otherwise empty."""
        if not self._there or self._components.pids(KUEUE):
            return ""
        return "the hub's Kueue has ended by itself; `pulumi up --refresh` starts it again"


def _limits(file: Path) -> dict[str, str]:
    """The limits of Kueue's requests, if its configuration is on this machine."""
    try:
        connection = (yaml.safe_load(file.read_text()) or {}).get("clientConnection") or {}
    except (OSError, yaml.YAMLError, AttributeError):
        return {}
    return {f"client {key}": str(connection[key]) for key in ("qps", "burst") if key in connection}

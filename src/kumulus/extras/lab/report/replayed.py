"""A replay compared with its recording: the pods then and now."""

import math
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from kumulus.extras.lab.file.recording import PodThen
from kumulus.extras.lab.measure.over_time import idle_share
from kumulus.extras.lab.measure.states import PREEMPTED, PodRecord
from kumulus.extras.lab.measure.statistics import Between, Times, only_known, spread
from kumulus.extras.lab.measure.views import NodeView
from kumulus.extras.lab.plan.replayed import Replayed
from kumulus.extras.lab.report.model import Of, QueueComparison, ReplayComparison
from kumulus.extras.lab.run.bench import RepetitionOutcome
from kumulus.extras.watch.live.amounts import Amounts

# What pods cost, then and now: their share of a node's price for as long as they had it. Pure functions.
#
# A pod's share of its node is what it asks for: of the GPUs, or, without any, the larger of its CPU and memory shares.
# `cost.wasted` counts what nobody has by the same rule. Recorded nodes are priced as the clone's of the same name.
_HOUR = 3600.0


class Costs:
    """Adds up what pods cost, by queue.

    Args:
        nodes: by name, as the cluster has or had them.

    Attributes:
        unknown: how many pods were on nodes whose price is not known, by queue.
    """

    def __init__(self, nodes: Mapping[str, NodeView]) -> None:
        self._nodes = nodes
        self._spent: dict[str, float] = {}
        self.unknown: dict[str, int] = {}

    def add(self, queue: str, node: str, wants: Amounts, seconds: float) -> None:
        """Add what a pod cost on its node.

        Args:
            queue: of the pod; everything is added to "" too.
            node: its name; empty where it is not known.
            seconds: how long it had the node.
        """
        view = self._nodes.get(node)
        for each in {queue, ""}:
            if view is None or view.hourly is None:
                self.unknown[each] = self.unknown.get(each, 0) + 1
            else:
                spent = (1.0 - idle_share(view.has, wants)) * view.hourly * max(0.0, seconds) / _HOUR
                self._spent[each] = self._spent.get(each, 0.0) + spent

    def of(self, queue: str) -> float | None:
        """The cost in US dollars; None if that of any pod is not known."""
        return None if self.unknown.get(queue) else round(self._spent.get(queue, 0.0), 6)


_GIB = 1024**3


@dataclass
class _Sums:
    """What is counted for some pods: waits in seconds of the recording's time, amounts over time."""

    pods: int = 0
    scheduled: int = 0
    waits: Times = field(default_factory=Times)
    preempted: int = 0
    changes: list[tuple[float, ...]] = field(default_factory=list)

    def add(self, start: float | None, end: float | None, amounts: tuple[float, float, float]) -> None:
        """Add amounts that were occupied from `start` to `end`."""
        if start is not None:
            self.scheduled += 1
            self.changes.append((start, *amounts))
            if end is not None:
                self.changes.append((end, *(-each for each in amounts)))

    def of(self, cost: float | None) -> Of:
        """The sums for the report.

        Args:
            cost: in US dollars; None where it is not known.
        """
        waits = only_known(self.waits.spread())
        cpu, memory, gpus = self._peaks()
        return Of(
            pods=self.pods,
            scheduled=self.scheduled,
            preempted=self.preempted,
            waited={part: round(value, 3) for part, value in waits.items()},
            cpu_peak=round(cpu, 3),
            memory_peak_gib=round(memory, 3),
            gpus_peak=round(gpus, 3),
            cost=cost,
        )

    def _peaks(self) -> tuple[float, float, float]:
        now, most = [0.0, 0.0, 0.0], [0.0, 0.0, 0.0]
        # At the same moment, ends count before starts.
        for change in sorted(self.changes, key=lambda each: (each[0], each[1] + each[2] + each[3])):
            now = [have + more for have, more in zip(now, change[1:], strict=True)]
            most = [max(pair) for pair in zip(most, now, strict=True)]
        return most[0], most[1], most[2]


def compared(replay: Replayed, workload: str, outcome: RepetitionOutcome) -> ReplayComparison:
    """Compare a replay with its recording, by queue."""
    result, nodes = outcome.replay_results[workload], outcome.records.allocation.every
    then: dict[str, _Sums] = defaultdict(_Sums)
    now: dict[str, _Sums] = defaultdict(_Sums)
    # Both end with the part. After the last request of all, the recording goes on, as the run does.
    until = math.inf if replay.until >= replay.recording.lasted else replay.until
    costs = Costs(nodes), Costs(nodes)
    for pod in replay.recording.pods:
        if _is_replayed(pod, replay.since, until):
            _cost_then(costs[0], pod, replay)
            for queue in {pod.queue, ""}:
                _then(then[queue], pod, replay.since, until)
    for record in outcome.records.pods.values():
        if record.workload == workload:
            _cost_now(costs[1], replay.queues.get(record.job, ""), record, replay, outcome.lasted)
            for queue in {replay.queues.get(record.job, ""), ""}:
                _now(now[queue], record, replay.speed, (until - replay.since) / replay.speed)
    known = any(each.hourly is not None for each in nodes.values())

    def both(queue: str) -> QueueComparison:
        one, two = (each.of(queue) if known else None for each in costs)
        return QueueComparison(then=then[queue].of(one), now=now[queue].of(two))

    return ReplayComparison(
        speed=replay.speed,
        since=replay.since,
        until=replay.until,
        all=both(""),
        queues={queue: both(queue) for queue in sorted((then.keys() | now.keys()) - {""})},
        sent=result.sent,
        late={part: round(value, 4) for part, value in spread(result.late).items()},
        requests=result.digest,
        refused=result.refusals,
        refusals=result.refused,
        cannot=[*_cannot(replay, outcome, workload), *_cannot_cost(known, *costs)],
    )


def _is_replayed(pod: PodThen, since: float, until: float) -> bool:
    """Whether it is of the part that was replayed, whose beginning creates what was there then."""
    return pod.at <= until and (pod.at >= since or pod.ended is None or pod.ended > since)


def _cost_then(costs: Costs, pod: PodThen, replay: Replayed) -> None:
    """Only within the part that was replayed: earlier and later time costs nothing here."""
    if pod.bound is not None and pod.bound <= replay.until:
        wants = Amounts(cpu=round(pod.cpu), memory=round(pod.memory) << 20, gpus=round(pod.gpus))
        ends = replay.until if pod.ended is None else min(replay.until, pod.ended)
        costs.add(pod.queue, pod.node, wants, ends - max(pod.bound, replay.since))


def _cost_now(costs: Costs, queue: str, record: PodRecord, replay: Replayed, lasted: float) -> None:
    """Only within the part that was replayed, as for the recording: later time costs nothing here."""
    if record.bound is not None:
        ends = min(lasted, (replay.until - replay.since) / replay.speed)
        occupied = (min(ends, ends if record.ended is None else record.ended) - record.bound) * replay.speed
        costs.add(queue, record.node, record.wants, occupied)


def _cannot_cost(known: bool, then: Costs, now: Costs) -> Iterator[str]:
    if not known:
        yield "cost: no node has a price"
        return
    for when, costs in (("then", then), ("now", now)):
        if number := costs.unknown.get("", 0):
            yield f"cost {when}: pods on nodes that are not known here, or have no price ({number:,})"


def _then(sums: _Sums, pod: PodThen, since: float, until: float) -> None:
    sums.pods += 1
    bound = _within(pod.bound, until)
    # What was there before the part began had waited before, too, and what had a node when it was first seen.
    if bound is not None and bound > pod.at >= since:
        sums.waits.add(Between(bound - pod.at, bound - pod.at))
    sums.preempted += pod.preempted and (pod.ended is None or pod.ended <= until)
    sums.add(bound, pod.ended, (pod.cpu / 1000, pod.memory / 1024, pod.gpus))


def _now(sums: _Sums, record: PodRecord, speed: float, until: float) -> None:
    sums.pods += 1
    bound = _within(record.bound, until)
    if bound is not None and (waited := record.between("created", "bound")) is not None:
        sums.waits.add(Between(waited.least * speed, waited.most * speed))
    sums.preempted += record.disrupted == PREEMPTED and (record.ended is None or record.ended <= until)
    wants = record.wants
    sums.add(bound, record.ended, (wants.cpu / 1000, wants.memory / _GIB, wants.gpus))


def _within(at: float | None, until: float) -> float | None:
    return at if at is not None and at <= until else None


def _cannot(replay: Replayed, outcome: RepetitionOutcome, workload: str) -> Iterator[str]:
    result, recording = outcome.replay_results[workload], replay.recording
    if replay.speed != 1:
        yield (
            f"at speed {replay.speed:g} a wait for room is counted in the recording's time; the scheduler itself is no "
            "faster, so its own part of a wait counts as much longer"
        )
    if replay.since > 0:
        yield "what was there at the beginning of the part is created at once: its waits are not those of then"
    if recording.pods and not any(pod.bound is not None for pod in recording.pods):
        yield "when pods got a node then is not recorded: the log has no bindings"
    if had := sum(pod.bound == pod.at and replay.since <= pod.at <= replay.until for pod in recording.pods):
        yield f"how long pods waited then that had a node when they were first seen ({had:,})"
    for what, number in sorted(recording.left_out.items()):
        yield f"{what} ({number:,})"
    for kind, number in result.unserved.items():
        yield f"{kind}: this cluster does not know it ({number:,})"
    if replay.strange:
        yield f"cordons and drains of nodes that this cluster does not have ({replay.strange:,})"
    if result.nowhere:
        yield f"evictions for which the replay had no pod ({result.nowhere:,})"
    if result.refusals:
        yield f"requests that this cluster refused ({result.refusals:,}), such as {result.refused[0]}"

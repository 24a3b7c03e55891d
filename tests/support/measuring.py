"""``python -m tests.support.measuring ADDRESS PODS``: measure pods through their watch, as an experiment does.

It says `ready` when it listens, and after so many pods have ended, the measures as JSON.
"""

import asyncio
import json
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from kumulus.extras.lab.cluster.components import Components
from kumulus.extras.lab.measure.allocation import Allocation
from kumulus.extras.lab.measure.clock import Clock
from kumulus.extras.lab.measure.listening import Listener
from kumulus.extras.lab.measure.records import ExperimentRecords
from kumulus.extras.lab.measure.sampler import Sampler
from kumulus.extras.lab.measure.statistics import Measured
from kumulus.extras.lab.measure.summary import measures
from kumulus.kube import Client, Connection
from tests.support.playing import SPACE


class Measuring:
    """A client that measures pods."""

    def __init__(self, client: Client, clock: Clock) -> None:
        self.clock, self.records = clock, ExperimentRecords(Allocation())
        self.listener = Listener(client, self.records, clock)

    def measures(self) -> dict[str, Measured]:
        """What has been measured so far."""
        heard = {"client.stall": self.clock.stall, "client.interruptions": self.listener.interruptions}
        return measures_of(self.records, self.clock()) | heard


def measures_of(records: ExperimentRecords, lasted: float) -> dict[str, Measured]:
    """The measures of an account of pods, on a cluster whose processes are not on this machine."""
    return measures(records, Sampler(records, Components(Path("/nowhere")), None, lambda: lasted), 0.0, lasted)


@asynccontextmanager
async def measuring(where: Connection, clock: Clock, namespace: str = SPACE) -> AsyncIterator[Measuring]:
    """A client that listens, as a repetition does it."""
    async with Client(where, patience=10) as client:
        found, synced = Measuring(client, clock), asyncio.Event()
        tasks = [asyncio.create_task(found.listener.pods(namespace, synced))]
        try:
            async with asyncio.timeout(10):
                await synced.wait()
            clock.restart()
            found.listener.begin()
            found.records.begin()
            tasks.append(asyncio.create_task(clock.watch_itself()))
            yield found
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)


async def _main(address: str, pods: int) -> None:
    async with measuring(Connection(address, "test"), Clock()) as found:
        print("ready", flush=True)
        for _ in range(10_000):
            if found.records.counts["ended"] == pods:
                break
            await asyncio.sleep(0.01)
        print(json.dumps(found.measures()), flush=True)


if __name__ == "__main__":
    asyncio.run(_main(sys.argv[1], int(sys.argv[2])))

"""A scheduler that was started: check whether it still works, and end it."""

from __future__ import annotations

import asyncio
import signal
import subprocess
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

from kumulus.extras.schedulers import children, objects
from kumulus.extras.schedulers.errors import SchedulerError
from kumulus.extras.schedulers.extender import anybody
from kumulus.extras.schedulers.launch.plan import LaunchPlan, SchedulerProgram, Setting
from kumulus.host import inotify
from kumulus.kube import ApiError, Client, Connection, KubeconfigError, Unreachable, load_kubeconfig

_LOOK_EVERY = 0.1
_READ_WITHIN = 30.0
_ASK_EVERY = 0.05


@dataclass
class Running:
    """A scheduler that was started, whether it still runs or not."""

    name: str
    version: str
    """Of the program that schedules; empty when it is the user's own."""
    scheduler_names: tuple[str, ...]
    """The `spec.schedulerName` values of the pods that it places."""
    settings: Mapping[str, Setting]
    """What must be equal for a fair comparison with another run."""
    kubeconfig: Path
    directory: Path
    """Its own, for configuration and logs."""
    programs: tuple[SchedulerProgram, ...]
    """The programs that run, the one that schedules first."""
    run: str = ""
    """The experiment's run that started it; empty for none."""
    _started: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict, repr=False)
    _readers: list[subprocess.Popen[bytes]] = field(default_factory=list, repr=False)

    @property
    def pids(self) -> dict[str, int]:
        """The pids of its processes that still run, by program."""
        return {name: process.pid for name, process in self._started.items() if process.poll() is None}

    def failure(self) -> str | None:
        """Which process has ended, how, and its last output; None while all run."""
        alive = self.pids
        for program in self.programs:
            if program.name not in alive:
                return f"{program.name} has ended{_how(self._started.get(program.name))}{self._last_words(program)}"
        return None

    def launch(self) -> None:
        """Start its processes; :meth:`work` waits for them."""
        for program in self.programs:
            if not program.through:
                self._started[program.name] = children.start(self.directory, program)
                continue
            reader = children.reader(self.directory, program)
            self._readers.append(reader)
            assert reader.stdin is not None
            with reader.stdin as output:
                # Closed here afterwards: only the program keeps it open, so the reader's input ends with the program.
                self._started[program.name] = children.start(self.directory, program, output)

    async def work(self, client: Client, plan: LaunchPlan | None, timeout: float) -> None:
        """Wait until all of it works; fails as soon as a process ends. ``plan`` is None when it worked before."""
        deadline = time.monotonic() + timeout
        task = asyncio.ensure_future(self._working(client, plan))
        try:
            while not task.done():
                if (failure := self.failure()) is not None:
                    raise SchedulerError(self._with_remedy(failure))
                if time.monotonic() > deadline:
                    failure = f"{self.name} does not work after {timeout:.0f} s{self._last_words(self.programs[0])}"
                    raise SchedulerError(self._with_remedy(failure))
                await asyncio.wait([task], timeout=_LOOK_EVERY)
            await task
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    def _last_words(self, program: SchedulerProgram) -> str:
        tail = children.log_tail(self.directory, program.name)
        remedy = inotify.shortage(tail)
        return (f"; its last words:\n{tail}" if tail else "") + (f"\n  {remedy}" if remedy else "")

    def _with_remedy(self, failure: str) -> str:
        """With what to check, unless its last words have brought a remedy of their own."""
        if inotify.refused(failure):
            return failure
        ended = next((each for each in self.programs if each.name not in self.pids), self.programs[0])
        command = " ".join([str(ended.binary), *ended.arguments])
        return f"{failure}\n  Check its configuration, and what it is started with: {command}"

    async def _working(self, client: Client, plan: LaunchPlan | None) -> None:
        if plan is not None and plan.awaited is not None:
            await plan.awaited(client)
        await answering(self.programs)
        if plan is not None and plan.working is not None:
            await plan.working(client)

    async def end(self) -> None:
        """End its processes; its objects in the cluster stay, as when a scheduler is down."""
        await asyncio.to_thread(children.end, self.directory, list(self._started.values()))
        while self._readers:
            await asyncio.to_thread(_read_to_the_end, self._readers.pop())

    async def restart(self, timeout: float = 60.0) -> None:
        """End its processes if they still run, start them again and wait until they work."""
        await self.end()
        self.launch()
        async with connected(self.kubeconfig) as client:
            await self.work(client, None, timeout)

    async def stop(self, timeout: float = 60.0) -> None:
        """End its processes and delete its objects in the cluster; doing so again is no error.

        Args:
            timeout: seconds to wait for the objects to be gone.

        Raises:
            SchedulerError: the processes are gone, but some objects stay in the cluster.
        """
        await self.end()
        async with connected(self.kubeconfig) as client:
            await objects.remove(client, self.name, timeout, self.run)


def _read_to_the_end(reader: subprocess.Popen[bytes]) -> None:
    try:
        reader.wait(_READ_WITHIN)
    except subprocess.TimeoutExpired:
        reader.kill()
        reader.wait()


def _how(process: subprocess.Popen[bytes] | None) -> str:
    code = process.returncode if process is not None else None
    if code is None:
        return ""
    return f" by {signal.Signals(-code).name}" if code < 0 else f" with exit code {code}"


async def answering(programs: Sequence[SchedulerProgram]) -> None:
    """Wait until each program answers at its addresses with success."""
    addresses = [(program.name, program.ready, program.ready_says) for program in programs]
    addresses += [(program.name, each, "") for program in programs for each in program.ready_too]
    await asyncio.gather(*(_answers(*each) for each in addresses))


async def _answers(name: str, address: str, says: str) -> None:
    parts = urlsplit(address)
    connection = Connection(f"{parts.scheme}://{parts.netloc}", name, tls=anybody())
    async with Client(connection, request_timeout=5.0) as client:
        while True:
            try:
                if says in str(await client.get(parts.path, patience=0.0)):
                    return
            except (ApiError, Unreachable):
                pass
            await asyncio.sleep(_ASK_EVERY)


_PATIENCE_S = 10.0


@asynccontextmanager
async def connected(kubeconfig: Path) -> AsyncIterator[Client]:
    """A client, closed with the context."""
    try:
        async with Client(load_kubeconfig(kubeconfig), patience=_PATIENCE_S) as client:
            yield client
    except (ApiError, Unreachable, KubeconfigError) as error:
        raise SchedulerError(str(error)) from None

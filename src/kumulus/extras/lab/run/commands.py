"""The user's own commands of a timeline: an operator, a check. They end with the run, also if it is killed."""

import asyncio
import os
import signal
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from kumulus.extras.journal.book import Journal
from kumulus.extras.journal.undo import RUN_VARIABLE, end_commands
from kumulus.extras.lab.errors import LabError
from kumulus.extras.lab.file.timeline import TimelineProgram
from kumulus.extras.lab.measure.verdicts import ExpectationVerdict
from kumulus.host.files import last_lines

_PATIENCE = 5.0
_LAST_LINES = 3


@dataclass
class Started:
    """A command that was started."""

    program: TimelineProgram
    process: asyncio.subprocess.Process
    """Its shell, which leads a process group."""
    log: Path
    begun: float = field(default_factory=time.monotonic)
    """When it was started, on this machine's own clock."""
    took: float = 0.0
    ended_by_run: bool = False
    watch: asyncio.Task[None] | None = None
    """What waits for its end; kept, as a task that nobody has may be collected."""

    async def watched(self) -> None:
        """Note when it ends."""
        await self.process.wait()
        self.took = time.monotonic() - self.begun

    def verdict(self) -> ExpectationVerdict:
        """Whether it came to a good end: by itself with 0, or in the background until the end of the run."""
        what, code = f"exit code 0: {self.program.command}", self.process.returncode
        if self.ended_by_run:
            stayed = self.program.background
            return ExpectationVerdict(what, stayed, "ran until the end" if stayed else "had not ended when the run did")
        if self.program.background and code == 0:
            return ExpectationVerdict(what, True, f"ended after {self.took:.1f} s")
        tail = last_lines(self.log, 1).strip()
        return ExpectationVerdict(
            what, code == 0, f"{code}" if code == 0 or not tail else f"{code}; its last words: {tail}"
        )


@dataclass
class Commands:
    """Starts and ends the commands of a run."""

    journal: Journal
    """The run's; names the commands before the first is started."""
    base: Path
    logs: Path
    kubeconfig: Path
    _started: list[Started] = field(default_factory=list)

    async def start(self, program: TimelineProgram, namespace: str) -> str:
        """Start a command; returns what was done, in words."""
        self.journal.add(commands=[program.command])
        run = self.journal.changes.run
        variables = {"KUBECONFIG": str(self.kubeconfig.absolute()), "KUMULUS_NAMESPACE": namespace, RUN_VARIABLE: run}
        log = self.logs / f"{namespace}-{len(self._started) + 1}.log"
        try:
            self.logs.mkdir(mode=0o700, parents=True, exist_ok=True)
            with log.open("wb") as output:
                process = await asyncio.create_subprocess_exec(
                    *("/bin/sh", "-c", program.command),
                    cwd=self.base,
                    env={**os.environ, **variables},
                    stdin=asyncio.subprocess.DEVNULL,
                    stdout=output,
                    stderr=output,
                    # Ctrl-C reaches only this process, which then ends the command in good order.
                    start_new_session=True,
                )
        except OSError as error:
            raise LabError(f"the timeline's command {program.command} cannot be run: {error.strerror}") from None
        started = Started(program, process, log)
        self._started.append(started)
        started.watch = asyncio.create_task(started.watched())
        return f"started {program.command}"

    async def wait(self, note: Callable[[str], None]) -> None:
        """Wait until every command that is not in the background has ended.

        Args:
            note: takes each end, in words.
        """

        async def ended(each: Started) -> None:
            code = await each.process.wait()
            if not each.ended_by_run:
                note(f"{each.program.command} ended with exit code {code}")

        checks = {asyncio.create_task(ended(each)) for each in self._started if not each.program.background}
        try:
            if checks:
                await asyncio.wait(checks)
        finally:
            for each in checks:
                each.cancel()

    def failed(self) -> str:
        """How one in the background, which was to run until the end, has failed; empty while none has."""
        for each in self._started:
            if each.program.background and each.process.returncode:
                lines = " / ".join(line.strip() for line in last_lines(each.log, _LAST_LINES).splitlines())
                said = f"; its last lines: {lines}" if lines else ""
                return f"{each.program.command} ended with exit code {each.process.returncode}{said}"
        return ""

    async def end(self) -> list[ExpectationVerdict]:
        """End those that still run, by SIGTERM and after some seconds by SIGKILL; returns what came of each."""
        started, self._started = self._started, []
        for each in started:
            each.ended_by_run = each.process.returncode is None
            with suppress(ProcessLookupError):
                os.killpg(each.process.pid, signal.SIGTERM)
        waiting = [asyncio.create_task(each.process.wait()) for each in started]
        if waiting:
            await asyncio.wait(waiting, timeout=_PATIENCE)
            # Also what they have started, whatever its process group.
            await asyncio.to_thread(end_commands, self.journal.changes.run)
            await asyncio.wait(waiting)
            self.journal.drop(commands=self.journal.changes.commands)
        return [each.verdict() for each in started]

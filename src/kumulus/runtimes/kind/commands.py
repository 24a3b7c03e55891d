"""Run kind and container tools without a shell, so that none of their processes outlives the call."""

import asyncio
import os
import signal
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass

_LINES_KEPT = 60
# Seconds for the output of a killed command to end.
_ENDING = 5.0


@dataclass(frozen=True)
class Ended:
    """A command that has ended."""

    code: int
    """Its exit code."""
    stdout: str
    """What it printed."""
    stderr: str
    """The last lines of its standard error."""


class Stopped(Exception):
    """The user cancelled; the command was ended."""


class TookTooLong(Exception):
    """The command did not end in time; it was ended."""


async def run(
    *arguments: str,
    timeout: float,
    environment: Mapping[str, str] | None = None,
    on_line: Callable[[str], None] | None = None,
    stop: asyncio.Event | None = None,
) -> Ended:
    """Run a command and wait for its end.

    Args:
        arguments: the executable and its arguments.
        environment: all its variables; those of this process when None.
        on_line: called with every line of its standard error.
        stop: ends the command when it is set.

    Raises:
        FileNotFoundError: there is no such executable.
        Stopped: ``stop`` was set.
        TookTooLong: it did not end in time.
    """
    process = await asyncio.create_subprocess_exec(
        *arguments,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env=environment,
        umask=0o077,
        # Ctrl-C in the terminal is for Pulumi's engine, which passes it on; and the command's children end with it.
        start_new_session=True,
        limit=1 << 20,
    )
    reading = asyncio.create_task(_output(process, on_line))
    stopping = asyncio.create_task(stop.wait()) if stop else None
    try:
        waiting = {reading, stopping} if stopping else {reading}
        done, _ = await asyncio.wait(waiting, timeout=timeout, return_when=asyncio.FIRST_COMPLETED)
        if reading in done:
            return reading.result()
        raise Stopped if stopping in done else TookTooLong
    finally:
        if stopping:
            stopping.cancel()
        if not reading.done():
            _end(process)
            await asyncio.wait({reading}, timeout=_ENDING)
            reading.cancel()


async def _output(process: asyncio.subprocess.Process, on_line: Callable[[str], None] | None) -> Ended:
    assert process.stdout is not None
    assert process.stderr is not None
    printed = asyncio.create_task(process.stdout.read())
    lines: list[str] = []
    try:
        async for raw in process.stderr:
            line = raw.decode(errors="replace").rstrip()
            lines.append(line)
            del lines[:-_LINES_KEPT]
            if on_line:
                on_line(line)
        return Ended(await process.wait(), (await printed).decode(errors="replace"), "\n".join(lines))
    finally:
        printed.cancel()


def _end(process: asyncio.subprocess.Process) -> None:
    """Kill the command, if it still runs, and all that it has started."""
    if process.returncode is None:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)

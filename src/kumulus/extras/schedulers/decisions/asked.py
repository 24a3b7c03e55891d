"""An extender of kube-scheduler that refuses nothing, and notes how often each filter has been run.

    python -P -m kumulus.extras.schedulers.decisions.asked asked.json

kube-scheduler calls its extenders in each attempt, after its own filters and before scoring, and waits for the answer.
No filter runs during that time, so its metrics can be read. One line of JSON for each attempt goes to standard output
before the answer is sent. A byte on standard input requests the counts at once, after an attempt that failed
without a call of an extender. The process ends when its standard input does.

It is a separate process, since kube-scheduler waits for its answers and the process that reads the log is busy.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from kumulus.extras.schedulers.decisions.filters import PARALLELISM, counts
from kumulus.extras.schedulers.extender import READY, address, anybody, entry, serving

if TYPE_CHECKING:
    import aiohttp

NAME: Final = "asked.json"
"""The file, in the scheduler's directory, that says where to listen and what to read."""
TIMEOUT: Final = 5.0
"""Seconds that kube-scheduler waits for the answer."""
_READING = 2.0


@dataclass(frozen=True)
class ListenerSettings:
    """Where to listen, and what to read."""

    port: int
    secret: str
    """In the address; only the owner can read the file that contains it."""
    metrics: str
    """The address of kube-scheduler's metrics."""
    profiles: tuple[str, ...]
    """The names of its profiles, in the order of its configuration."""
    parallelism: int = PARALLELISM
    """On how many nodes it runs filters at once."""

    @property
    def ready(self) -> str:
        """The address that answers once the extender works."""
        return f"{address(self.port, self.secret)}/{READY}"

    def extender(self, *, alone: bool) -> dict[str, Any]:
        """The entry under `extenders` in kube-scheduler's configuration.

        Args:
            alone: whether it is the only one. Then kube-scheduler continues without it if it does not answer. Ignorable
                extenders are called after the others, which would already have excluded some nodes.
        """
        return entry(address(self.port, self.secret), TIMEOUT, ignorable=alone)

    @classmethod
    def read(cls, file: Path) -> ListenerSettings:
        """Read the settings from their file."""
        found = json.loads(file.read_text(encoding="utf-8"))
        return cls(**{**found, "profiles": tuple(found["profiles"])})

    def text(self) -> str:
        """The settings as text, for their file."""
        return json.dumps(asdict(self))


@dataclass(frozen=True)
class FilterCounts:
    """What was noted at one moment."""

    pod: str
    """Namespace/name; empty for a note that was requested."""
    profile: str
    passed: int
    begin: str
    """When reading of the metrics began, in klog's format."""
    end: str
    """When reading was done."""
    counts: dict[str, dict[str, int]] = field(default_factory=dict)
    """How often each filter had been run, by profile; empty if the metrics could not be read."""
    prepared: dict[str, dict[str, int]] = field(default_factory=dict)
    """For how many pods each filter's PreFilter had run without skipping the filter."""


class FilterRecorder:
    """Answers kube-scheduler, and notes the counts."""

    def __init__(self, settings: ListenerSettings, session: aiohttp.ClientSession, output: int) -> None:
        self._settings, self._session, self._output = settings, session, output
        self._lock = asyncio.Lock()

    async def filter(self, arguments: dict[str, Any]) -> dict[str, Any]:
        """Answer with all nodes, once the counts are noted."""
        metadata, names = arguments["Pod"]["metadata"], arguments["NodeNames"]
        profile = arguments["Pod"]["spec"].get("schedulerName", "")
        await self.note(f"{metadata['namespace']}/{metadata['name']}", profile, len(names))
        return {"NodeNames": names, "FailedNodes": {}, "Error": ""}

    async def note(self, pod: str = "", profile: str = "", passed: int = 0) -> None:
        """Note the counts as they are now."""
        async with self._lock:
            begin, (found, prepared) = _now(), await self._counts()
            asked = FilterCounts(pod, profile, passed, begin, _now(), found, prepared)
            os.write(self._output, json.dumps(asdict(asked), separators=(",", ":")).encode() + b"\n")

    async def _counts(self) -> tuple[dict[str, dict[str, int]], dict[str, dict[str, int]]]:
        import aiohttp

        try:
            async with self._session.get(self._settings.metrics) as answer:
                return counts(await answer.read())
        except (aiohttp.ClientError, TimeoutError, OSError):
            # Pods are scheduled nevertheless; the log's reader reports for which pods the counts are unknown.
            return {}, {}


def _now() -> str:
    return f"{datetime.now():%m%d %H:%M:%S.%f}"


async def serve(settings: ListenerSettings, commands: asyncio.StreamReader, output: int) -> None:
    """Serve until the commands end.

    Args:
        commands: gives a byte for each request to note the counts at once.

    Raises:
        OSError: something else listens on the port.
    """
    import aiohttp

    async with aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(ssl=anybody(), keepalive_timeout=3600),
        timeout=aiohttp.ClientTimeout(total=_READING),
        # Compressing the metrics would take kube-scheduler longer than sending them.
        headers={"Accept-Encoding": "identity", "Accept": "text/plain"},
    ) as session:
        notes = FilterRecorder(settings, session, output)
        async with serving(notes.filter, settings.port, settings.secret):
            # Several requests that have arrived by now count as one.
            while await commands.read(4096):
                await notes.note()


async def _main(settings: ListenerSettings) -> None:
    commands = asyncio.StreamReader()
    loop = asyncio.get_running_loop()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(commands), sys.stdin)
    with suppress(BrokenPipeError):
        await serve(settings, commands, sys.stdout.fileno())


if __name__ == "__main__":
    asyncio.run(_main(ListenerSettings.read(Path(sys.argv[1]))))

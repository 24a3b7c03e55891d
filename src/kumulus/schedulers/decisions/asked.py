"""Stands beside a kube-scheduler as an extender that refuses nothing, and notes how often each filter has been run.

    python -P -m kumulus.schedulers.decisions.asked asked.json

kube-scheduler asks its extenders in each attempt, after its own filters and before it scores, and waits for the
answer, so no filter runs during that time, and its metrics can be read. One line of JSON for each attempt goes to the
standard output before the answer is sent. A byte on the standard input asks for the counts out of turn, after an
attempt that failed without an extender being asked. The process ends when its standard input does.

It is a process of its own, since kube-scheduler waits for its answers and the process that reads the log is busy.
"""

from __future__ import annotations

import asyncio
import json
import os
import ssl
import sys
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any, Final

import aiohttp

from kumulus.schedulers.decisions.filters import PARALLELISM, counts
from kumulus.schedulers.extender import READY, address, entry, serving

NAME: Final = "asked.json"
"""The file, in the directory of the scheduler, that says where to listen and what to read."""
TIMEOUT: Final = 5.0
"""Seconds that kube-scheduler waits for the answer."""
_READING = 2.0


@dataclass(frozen=True)
class Settings:
    """Where to listen, and what to read.

    Attributes:
        port: of 127.0.0.1.
        secret: in the address; the file that has it is its owner's alone.
        metrics: the address of kube-scheduler's metrics.
        profiles: the names of its profiles, in the order of its configuration.
        parallelism: on how many nodes it runs filters at once.
    """

    port: int
    secret: str
    metrics: str
    profiles: tuple[str, ...]
    parallelism: int = PARALLELISM

    @property
    def ready(self) -> str:
        """The address that answers once it works."""
        return f"{address(self.port, self.secret)}/{READY}"

    def extender(self, *, alone: bool) -> dict[str, Any]:
        """As an extender of the configuration.

        Args:
            alone: whether there is no other. Then kube-scheduler continues without it if it does not answer. Extenders
                that may be ignored are asked after the others, which would already have left some nodes out.
        """
        return entry(address(self.port, self.secret), TIMEOUT, ignorable=alone)

    @classmethod
    def read(cls, file: Path) -> Settings:
        """From their file.

        Raises:
            OSError: it cannot be read.
        """
        found = json.loads(file.read_text(encoding="utf-8"))
        return cls(**{**found, "profiles": tuple(found["profiles"])})

    def text(self) -> str:
        """As they are in their file."""
        return json.dumps(asdict(self))


@dataclass(frozen=True)
class Asked:
    """What was noted at one moment.

    Attributes:
        pod: namespace/name; empty where it was out of turn.
        profile: the pod's scheduler.
        passed: how many nodes passed the filters.
        begin: when the metrics began to be read, as klog writes it.
        end: when they had been read.
        counts: how often each filter had been run, by profile; empty where the metrics could not be read.
        prepared: for how many pods each had been prepared, and not found to have nothing to say of the pod.
    """

    pod: str
    profile: str
    passed: int
    begin: str
    end: str
    counts: dict[str, dict[str, int]] = field(default_factory=dict)
    prepared: dict[str, dict[str, int]] = field(default_factory=dict)


class Notes:
    """Answers kube-scheduler, and notes the counts.

    Args:
        settings: what to read.
        session: for reading it.
        output: the file descriptor that takes the notes.
    """

    def __init__(self, settings: Settings, session: aiohttp.ClientSession, output: int) -> None:
        self._settings, self._session, self._output = settings, session, output
        self._turn = asyncio.Lock()

    async def filter(self, arguments: dict[str, Any]) -> dict[str, Any]:
        """Answer with all nodes, once the counts are noted."""
        metadata, names = arguments["Pod"]["metadata"], arguments["NodeNames"]
        profile = arguments["Pod"]["spec"].get("schedulerName", "")
        await self.note(f"{metadata['namespace']}/{metadata['name']}", profile, len(names))
        return {"NodeNames": names, "FailedNodes": {}, "Error": ""}

    async def note(self, pod: str = "", profile: str = "", passed: int = 0) -> None:
        """Note the counts as they are now."""
        async with self._turn:
            begin, (found, prepared) = _now(), await self._counts()
            asked = Asked(pod, profile, passed, begin, _now(), found, prepared)
            os.write(self._output, json.dumps(asdict(asked), separators=(",", ":")).encode() + b"\n")

    async def _counts(self) -> tuple[dict[str, dict[str, int]], dict[str, dict[str, int]]]:
        try:
            async with self._session.get(self._settings.metrics) as answer:
                return counts(await answer.read())
        except (aiohttp.ClientError, TimeoutError, OSError):
            # Pods are scheduled all the same, and the log's reader says of how many it is not known.
            return {}, {}


def _now() -> str:
    return f"{datetime.now():%m%d %H:%M:%S.%f}"


async def serve(settings: Settings, commands: asyncio.StreamReader, output: int) -> None:
    """Serve until the commands end.

    Args:
        settings: where, and what to read.
        commands: a byte for each time that the counts are to be noted out of turn.
        output: the file descriptor that takes the notes.

    Raises:
        OSError: something else listens on the port.
    """
    # It is on 127.0.0.1, on a port claimed for it, with a certificate that it has just made for itself.
    tls = ssl.create_default_context()
    tls.check_hostname, tls.verify_mode = False, ssl.CERT_NONE
    async with aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(ssl=tls, keepalive_timeout=3600),
        timeout=aiohttp.ClientTimeout(total=_READING),
        # Compressing it would take kube-scheduler longer than sending it does.
        headers={"Accept-Encoding": "identity", "Accept": "text/plain"},
    ) as session:
        notes = Notes(settings, session, output)
        async with serving(notes.filter, settings.port, settings.secret):
            # Several that have arrived by now count as one.
            while await commands.read(4096):
                await notes.note()


async def _main(settings: Settings) -> None:
    commands = asyncio.StreamReader()
    loop = asyncio.get_running_loop()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(commands), sys.stdin)
    with suppress(BrokenPipeError):
        await serve(settings, commands, sys.stdout.fileno())


if __name__ == "__main__":
    asyncio.run(_main(Settings.read(Path(sys.argv[1]))))

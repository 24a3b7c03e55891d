"""What a control plane's processes use, and what its API server was asked."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import psutil

from host import processes
from kube import Client

_COUNTER = re.compile(r"apiserver_request_total\{(?P<labels>[^}]*)\} (?P<value>\S+)")
_LABEL = re.compile(r'(\w+)="([^"]*)"')


@dataclass(frozen=True)
class Usage:
    """What each component has used so far.

    Attributes:
        cpu: seconds of CPU time since the component's start.
        memory: resident memory in MB now.
    """

    cpu: dict[str, float]
    memory: dict[str, float]

    def cpu_since(self, before: Usage) -> dict[str, float]:
        """Seconds of CPU time by component since another look."""
        return {name: self.cpu[name] - before.cpu.get(name, 0.0) for name in self.cpu}


def usage(directory: str) -> Usage:
    """Look at the processes of the cluster in that directory."""
    cpu: dict[str, float] = {}
    memory: dict[str, float] = {}
    for name, pids in processes.running(Path(directory)).items():
        found = [psutil.Process(pid) for pid in pids]
        cpu[name] = sum(sum(process.cpu_times()[:2]) for process in found)
        memory[name] = sum(process.memory_info().rss for process in found) / 1e6
    return Usage(cpu, memory)


async def requests(client: Client) -> Counter[str]:
    """Count what the API server has answered since its start, as ``POST nodes 201``."""
    text = await client.get("/metrics")
    counted: Counter[str] = Counter()
    for line in str(text).splitlines():
        if match := _COUNTER.match(line):
            labels = dict(_LABEL.findall(match["labels"]))
            what = "/".join(filter(None, (labels["resource"], labels.get("subresource", ""))))
            counted[f"{labels['verb']} {what} {labels['code']}"] += int(float(match["value"]))
    return counted

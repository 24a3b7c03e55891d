"""What a control plane's processes use, and which requests its API server has answered."""

from __future__ import annotations

import re
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import psutil

from kumulus.host import processes
from kumulus.kube import Client

_COUNTER = re.compile(r"apiserver_request_total\{(?P<labels>[^}]*)\} (?P<value>\S+)")
_LOOK_S, _WITHIN_S = 3.0, 300.0
# Cores, for all components but the API server and etcd, which serve thousands of leases even when nothing happens.
_AT_REST = 0.3
_SERVE = ("kube-apiserver", "etcd")
_LABEL = re.compile(r'(\w+)="([^"]*)"')


@dataclass(frozen=True)
class Usage:
    """What each component has used so far."""

    cpu: dict[str, float]
    """Seconds of CPU time since the component's start."""
    memory: dict[str, float]
    """Resident memory in MB now."""

    def cpu_since(self, before: Usage) -> dict[str, float]:
        """Seconds of CPU time by component since an earlier measurement."""
        return {name: self.cpu[name] - before.cpu.get(name, 0.0) for name in self.cpu}


def usage(directory: str) -> Usage:
    """Measure the processes of the cluster in that directory."""
    cpu: dict[str, float] = {}
    memory: dict[str, float] = {}
    for name, pids in processes.running(Path(directory)).items():
        found = [psutil.Process(pid) for pid in pids]
        cpu[name] = sum(sum(process.cpu_times()[:2]) for process in found)
        memory[name] = sum(process.memory_info().rss for process in found) / 1e6
    return Usage(cpu, memory)


def until_at_rest(directory: str) -> None:
    """Wait until a control plane has caught up with earlier changes and does little but renew leases.

    Raises:
        RuntimeError: it was busy for five minutes.
    """
    used: dict[str, float] = {}
    for _ in range(round(_WITHIN_S / _LOOK_S)):
        before = usage(directory)
        time.sleep(_LOOK_S)
        used = {name: of for name, of in usage(directory).cpu_since(before).items() if name not in _SERVE}
        if sum(used.values()) < _AT_REST * _LOOK_S:
            return
    busy = ", ".join(f"{name} {seconds / _LOOK_S:.2f}" for name, seconds in used.items())
    raise RuntimeError(f"the control plane did not come to rest within {_WITHIN_S:.0f} s; cores: {busy}")


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

"""The processes of a cluster on this machine: what they use, and the limits they were given.

A cluster of the kwok runtime consists of local processes. Those of any other cluster are not known and not measured.
"""

import re
import ssl
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

import psutil

from kumulus.host import processes
from kumulus.kube import ApiError, Client, Connection, Unreachable

SCHEDULER = "kube-scheduler"
_FLAG = re.compile(r"--(kube-api-qps|kube-api-burst|master-qps|config|leader-elect)(?:=(.*))?$")
_PORT = "--secure-port="
CLIENTS = (SCHEDULER, "kube-controller-manager", "kwok-controller")


@dataclass(frozen=True)
class ComponentUsage:
    """What a component has used."""

    cpu: float
    """Seconds of CPU time since its start."""
    memory: int


class Components:
    """The components of one cluster.

    Args:
        directory: the cluster's directory, where its kubeconfig is.
        workers: the directories of the clusters that it is the hub of, by name: each counts as one component.
    """

    def __init__(self, directory: Path, workers: Mapping[str, Path] | None = None) -> None:
        self._directory = directory
        self._workers = dict(workers or {})
        self._found: dict[int, tuple[str, psutil.Process]] = {}
        self._ended: dict[str, float] = {}
        self._last: dict[int, float] = {}
        self.look()

    @property
    def local(self) -> bool:
        """Whether any of them run on this machine."""
        return bool(self._found)

    def look(self, others: Mapping[str, Iterable[int]] | None = None) -> None:
        """Look for components in the process table, including those that were restarted.

        Args:
            others: pids of processes that were started for the experiment, by name.
        """
        found = {name: list(pids) for name, pids in processes.running(self._directory).items()}
        for name, folder in self._workers.items():
            found[name] = [pid for pids in processes.running(folder).values() for pid in pids]
        for name, pids in (others or {}).items():
            found[name] = list(pids)
        for name, pids in found.items():
            for pid in pids:
                if pid not in self._found and psutil.pid_exists(pid):
                    self._found[pid] = (name, psutil.Process(pid))

    def pids(self, component: str) -> list[int]:
        """The pids of a component's running processes."""
        return [pid for pid, (name, process) in self._found.items() if name == component and _runs(process)]

    def usage(self) -> dict[str, ComponentUsage]:
        """What each component has used so far, including the CPU time of processes that have ended since."""
        found: dict[str, ComponentUsage] = {}
        for pid, (name, process) in list(self._found.items()):
            try:
                with process.oneshot():
                    times, memory = process.cpu_times(), process.memory_info().rss
                self._last[pid] = times.user + times.system
            except psutil.Error:
                self._ended[name] = self._ended.get(name, 0.0) + self._last.pop(pid, 0.0)
                del self._found[pid]
                continue
            before = found.get(name, ComponentUsage(0.0, 0))
            found[name] = ComponentUsage(before.cpu + self._last[pid], before.memory + memory)
        for name, spent in self._ended.items():
            before = found.get(name, ComponentUsage(0.0, 0))
            found[name] = ComponentUsage(before.cpu + spent, before.memory)
        return found

    async def metrics(self, component: str) -> str:
        """The metrics of a component that the cluster's administrator may read; empty if it gives none here."""
        commands = [psutil.Process(pid).cmdline() for pid in self.pids(component)]
        ports = [each.removeprefix(_PORT) for command in commands for each in command if each.startswith(_PORT)]
        if not ports:
            return ""
        pki = self._directory / "pki"
        # It is on this machine, and has made its certificate itself.
        tls = ssl.create_default_context()
        tls.check_hostname, tls.verify_mode = False, ssl.CERT_NONE
        try:
            tls.load_cert_chain(pki / "admin.crt", pki / "admin.key")
            async with Client(Connection(f"https://127.0.0.1:{ports[0]}", component, tls=tls), patience=0.0) as client:
                return str(await client.request("GET", "/metrics", accept="text/plain", decode=bytes.decode))
        except (OSError, ApiError, Unreachable):
            return ""

    def settings(self) -> dict[str, dict[str, str]]:
        """The flags that affect the rate of requests, of each component that is an API client."""
        return {
            name: settings_of(process.cmdline())
            for name, process in self._found.values()
            if name in CLIENTS and _runs(process)
        }


def settings_of(command: Iterable[str]) -> dict[str, str]:
    """The flags of a command line that affect its requests to the API server."""
    found = {}
    for argument in command:
        if match := _FLAG.fullmatch(argument):
            found[match[1]] = match[2] or "true"
    return found


def _runs(process: psutil.Process) -> bool:
    try:
        return process.status() != psutil.STATUS_ZOMBIE
    except psutil.Error:
        return False

"""Let the API server, etcd and the scheduler go first when CPUs are short.

The controllers may be a moment late, and then have less to do: kube-controller-manager's endpointslice-controller
looks at every node whenever one is added, so that 10,000 new nodes cost it ten seconds of CPU; when it is slower, it
looks less often (docs/performance.md).
"""

import asyncio
import os
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from kumulus.host import processes
from kumulus.runtimes.kwok.layout import Layout

_PATIENT = ("kube-controller-manager", "kwok-controller")
_MADE_TO_YIELD = (*_PATIENT, "kube-scheduler")
_NICENESS = 5
_LOWEST = 19
# A node counts as lost when its lease expires: after 40 s, as with kubelets, or after 200 s by kwokctl's own heartbeat
# factor. KWOK renews it each quarter of that. A controller that hardly runs for three eighths more is still in time.
_BEARABLE = 3 / 8
_LEASE_S = 40.0
# However long leases last, since pods wait for their scheduler.
LONGEST_S = 45.0
# Of processes that are PID:NICENESS. It waits for the end of its input, which comes with the plugin's end, even by
# SIGKILL, and then sets their niceness. For users other than root, Linux accepts one such change in 100 ms (man 7
# sched), so it retries.
_GUARD = """
read -r _
for group in "$@"; do
  pid=${group%:*} niceness=${group#*:} tries=0
  until ! [ -e "/proc/$pid" ] || echo "$niceness" >"/proc/$pid/autogroup" || [ $tries -ge 50 ]; do
    tries=$((tries + 1))
    sleep 0.1
  done
done
"""


def lower(directory: Path) -> None:
    """Give a cluster's controllers a lower priority than everything else; without permission, nothing happens."""
    for name, pids in processes.running(directory).items():
        if name in _PATIENT:
            for pid in pids:
                # kwokctl starts each component in a session of its own. Linux then divides the CPUs among the sessions,
                # and niceness counts only within one: man 7 sched, "The autogroup feature".
                _set_of_session(pid, _NICENESS)
                with suppress(OSError):
                    os.setpriority(os.PRIO_PGRP, pid, _NICENESS)


def _set_of_session(pid: int, niceness: int) -> None:
    """Set the niceness of a process's session among the sessions; without permission, nothing happens."""
    with suppress(OSError):
        Path(f"/proc/{pid}/autogroup").write_text(str(niceness))


@dataclass
class _Yielding:
    """One time during which a cluster's controllers yield, and the process that ends it."""

    users: int = 0
    """Running operations for which they yield."""
    guard: subprocess.Popen[bytes] | None = None
    """Restores the priorities when it ends; None where controllers cannot yield, or no longer do."""
    limit: asyncio.TimerHandle | None = None
    """Ends this when it has lasted long enough."""
    began: float = 0.0
    """When the controllers began to yield (``time.monotonic``)."""
    behind: float = 0.0
    """Seconds that they were behind at that time."""
    ended: float = 0.0
    """When they got their usual priority again (``time.monotonic``)."""

    def behind_by_now(self) -> float:
        """Seconds that the controllers may still be behind; a second at their usual priority makes up for one."""
        fell_behind, caught_up = self.ended - self.began, time.monotonic() - self.ended
        return max(0.0, self.behind + fell_behind - caught_up)

    def end(self) -> None:
        """Give the controllers their usual priority again."""
        if self.limit is not None:
            self.limit.cancel()
        if self.guard is not None:
            self.ended = time.monotonic()
            if self.guard.stdin is not None:
                self.guard.stdin.close()
            with suppress(subprocess.TimeoutExpired):
                self.guard.wait(0.5)
        self.guard = None


class CpuYield:
    """Makes the controllers of a cluster on this machine yield while many requests last.

    A few seconds do not matter to the controllers, and a third more requests are answered in that time
    (docs/performance.md). They get their usual priority again when the last operation or the plugin ends, or after the
    time that their nodes' leases allow; operations that follow each other share that time.
    """

    def __init__(self) -> None:
        self._latest: dict[Path, _Yielding] = {}

    @contextmanager
    def yielding(self, kubeconfig: str) -> Iterator[None]:
        """Make the controllers of a kubeconfig's cluster yield; does nothing for a cluster of another runtime."""
        directory = Path(kubeconfig).parent
        if not Layout(directory).kwok_file.exists():
            yield
            return
        latest = self._latest.get(directory)
        if latest is None or not latest.users:
            behind = latest.behind_by_now() if latest else 0.0
            latest = self._latest[directory] = _begin_to_yield(directory, behind)
        latest.users += 1
        try:
            yield
        finally:
            latest.users -= 1
            if not latest.users:
                latest.end()


def bearable(layout: Layout) -> float:
    """Seconds for which a cluster's controllers may yield without a node being lost."""
    lease = (layout.settings().get("options") or {}).get("nodeLeaseDurationSeconds") or _LEASE_S
    return min(LONGEST_S, _BEARABLE * float(lease))


def _begin_to_yield(directory: Path, behind: float) -> _Yielding:
    """Make a cluster's controllers yield, which are so many seconds behind; without permission, nothing happens."""
    now = time.monotonic()
    yielding = _Yielding(began=now, ended=now, behind=behind)
    longest = bearable(Layout(directory)) - behind
    running = processes.running(directory)
    groups = {
        pid: _NICENESS if name in _PATIENT else 0
        for name, pids in running.items()
        if name in _MADE_TO_YIELD
        for pid in pids
        if Path(f"/proc/{pid}/autogroup").exists()
    }
    if not groups or longest <= 0:
        return yielding
    try:
        # The guard comes first, so that no component keeps the low priority: from here on, it notices if the plugin is
        # killed. In a session of its own, a Ctrl-C does not reach it.
        yielding.guard = subprocess.Popen(
            ["sh", "-c", _GUARD, "sh", *(f"{pid}:{niceness}" for pid, niceness in groups.items())],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
    except OSError:
        return yielding
    for pid in groups:
        _set_of_session(pid, _LOWEST)
    yielding.limit = asyncio.get_running_loop().call_later(longest, yielding.end)
    return yielding

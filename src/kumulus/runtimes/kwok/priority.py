"""Let the API server, etcd and the scheduler go first when CPUs are short.

The controllers can as well catch up a moment later, and then do less: kube-controller-manager's
endpointslice-controller looks at every node whenever one is added, so that 10,000 new nodes cost it ten seconds of
CPU; when it is slower, it looks less often (docs/performance.md).
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
# A node counts as lost when its lease expires, which is renewed each quarter of its duration: 40 s as with kubelets,
# 200 s with kwokctl's own heartbeat factor. A controller that hardly runs for three eighths more is still in time.
_BEARABLE = 3 / 8
_LEASE_S = 40.0
# During that time pods wait for their scheduler.
LONGEST_S = 45.0
# It waits for the end of its input, which comes with the plugin's end, even by SIGKILL, and restores the priorities.
# For users other than root, Linux accepts one such change in 100 ms (man 7 sched), so it retries.
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
                _set(pid, _NICENESS)
                with suppress(OSError):
                    os.setpriority(os.PRIO_PGRP, pid, _NICENESS)


def _set(pid: int, niceness: int) -> None:
    with suppress(OSError):
        Path(f"/proc/{pid}/autogroup").write_text(str(niceness))


@dataclass
class _Yielding:
    """Controllers that yield, and the process that ends this."""

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
    rested: float = 0.0
    """Since when they have their usual priority again."""

    def behind_by_now(self) -> float:
        """Seconds that the controllers may still be behind; a second at their usual priority makes up for one."""
        return max(0.0, self.behind + (self.rested - self.began) - (time.monotonic() - self.rested))

    def end(self) -> None:
        """Give the controllers their usual priority again."""
        if self.limit is not None:
            self.limit.cancel()
        if self.guard is not None:
            self.rested = time.monotonic()
            if self.guard.stdin is not None:
                self.guard.stdin.close()
            with suppress(subprocess.TimeoutExpired):
                self.guard.wait(0.5)
        self.guard = None


class CpuYield:
    """Makes the controllers of a cluster on this machine yield while many requests last.

    A few seconds do not matter to the controllers, and a third more requests are answered in that time
    (docs/performance.md). They get their usual priority again when the last operation or the plugin ends, or after the
    time that their nodes' leases allow, which successive operations share.
    """

    def __init__(self) -> None:
        self._latest: dict[Path, _Yielding] = {}

    @contextmanager
    def cleared(self, kubeconfig: str) -> Iterator[None]:
        """Make the controllers of a kubeconfig's cluster yield; does nothing for a cluster of another runtime."""
        directory = Path(kubeconfig).parent
        if not Layout(directory).kwok_file.exists():
            yield
            return
        yielding = self._latest.get(directory)
        if yielding is None or not yielding.users:
            behind = yielding.behind_by_now() if yielding else 0.0
            yielding = self._latest[directory] = _begin_to_yield(directory, behind)
        yielding.users += 1
        try:
            yield
        finally:
            yielding.users -= 1
            if not yielding.users:
                yielding.end()


def bearable(layout: Layout) -> float:
    """Seconds for which a cluster's controllers may yield without a node being lost."""
    lease = (layout.settings().get("options") or {}).get("nodeLeaseDurationSeconds") or _LEASE_S
    return min(LONGEST_S, _BEARABLE * float(lease))


def _begin_to_yield(directory: Path, behind: float) -> _Yielding:
    yielding = _Yielding(began=time.monotonic(), rested=time.monotonic(), behind=behind)
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
        _set(pid, _LOWEST)
    yielding.limit = asyncio.get_running_loop().call_later(longest, yielding.end)
    return yielding

"""Let the API server, etcd and the scheduler go first when CPUs are short.

The controllers catch up as well a moment later, and do less: kube-controller-manager's endpointslice-controller looks
at every node whenever one is added, so that 10,000 new nodes cost it ten seconds of CPU; when it is slower, it looks
less often (docs/performance.md).
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from host import processes

_PATIENT = ("kube-controller-manager", "kwok-controller")
_NICENESS = 5


def lower(directory: Path) -> None:
    """Give a cluster's controllers a lower priority than everything else; where that is not allowed, nothing happens.

    Args:
        directory: the cluster's directory.
    """
    for name, pids in processes.running(directory).items():
        if name in _PATIENT:
            for pid in pids:
                _lower(pid)


def _lower(pid: int) -> None:
    # kwokctl starts each component as a session of its own. Linux then shares CPUs out among the sessions, and
    # niceness counts within one only: man 7 sched, "The autogroup feature".
    with suppress(OSError):
        Path(f"/proc/{pid}/autogroup").write_text(str(_NICENESS))
    with suppress(OSError):
        os.setpriority(os.PRIO_PGRP, pid, _NICENESS)

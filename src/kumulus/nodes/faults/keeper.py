"""``python -m kumulus.nodes.faults.keeper KUBECONFIG NAME UNTIL``: end a fault when its time is up.

This is a process of its own, so that the command that injected the fault can exit. While waiting, it is a bare Python
that checks now and then whether the cluster is still there. It need not survive: the record says when the fault is
over, and the next operation on the cluster ends it (kumulus.nodes.faults.operations.settle).
"""

import sys
import time
from datetime import UTC, datetime
from pathlib import Path

_LOOK_EVERY_S = 2.0


def main(kubeconfig: Path, name: str, until: str) -> int:
    """Wait, then end the fault; returns an exit code."""
    while (left := (datetime.fromisoformat(until) - datetime.now(UTC)).total_seconds()) > 0:
        if not kubeconfig.exists():
            return 0
        time.sleep(min(left, _LOOK_EVERY_S))
    if not kubeconfig.exists():
        return 0
    import asyncio

    return asyncio.run(_end(kubeconfig, name, until))


async def _end(kubeconfig: Path, name: str, until: str) -> int:
    from kumulus.kube import Client, load_kubeconfig
    from kumulus.nodes.faults import operations, records

    async with Client(load_kubeconfig(kubeconfig)) as client:
        there = (await records.read(client)).faults.get(name)
        # A fault that was injected again under this name has another time and a process of its own.
        if there is None or there.until != until:
            return 0
        _, applied = await operations.end(client, name)
        return 1 if applied.left() else 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), sys.argv[2], sys.argv[3]))

"""Ctrl-C during an operation: pulumi is back soon, the state has what was done, the next up completes it."""

from __future__ import annotations

import signal
import time

import pytest

from tests.soak.rig import NOTHING, OPERATIONS, ROUND, UP, Progress, Rig, await_moment, recorded_pools, thousand
from tests.support.trials import Trial, chance, note, rounds

pytestmark = pytest.mark.e2e
# 2 s are promised; a machine that does other work meanwhile gets more.
BACK_WITHIN = 5.0


def trial(rig: Rig, operation: str, number: int) -> Trial:
    """One Ctrl-C in the middle, and the next up."""
    moment = chance("interrupt", operation, number).randrange(50, 800)
    rig.want(
        NOTHING if operation == "delete" else thousand(f"{operation}-{number}", gpus=8 if operation == "create" else 4)
    )
    selector = "kumulus.io/group in (a,b)" if operation == "delete" else f"{ROUND}={rig.wanted.mark}"
    progress = Progress(rig.api, "DELETED" if operation == "delete" else "ADDED", selector)
    command = rig.project.start(*UP)
    struck = await_moment(command, lambda: progress.count >= moment)
    command.process.send_signal(signal.SIGINT)
    signalled = time.monotonic()
    ended = command.result()
    seconds = time.monotonic() - signalled
    moment_words = f"after {progress.count} of 1000 nodes" if struck else "too late"
    faults = told(ended.text) + recorded_wrongly(rig, operation)
    again = rig.project.pulumi(*UP)
    if again.code:
        faults.append(f"the next up failed: {again.text.strip()[-600:]}")
    faults += rig.faults()
    said = "; ".join(faults[:3]) if faults else "recorded; completed by the next up"
    return Trial("Ctrl-C", operation, moment_words, said, not faults, round(seconds, 2))


def told(text: str) -> list[str]:
    """What is wrong with what pulumi said when it was interrupted."""
    return [f"it says {word}: {text[-1500:]}" for word in ("Traceback", "KeyboardInterrupt") if word in text]


def recorded_wrongly(rig: Rig, operation: str) -> list[str]:
    """Where the state does not say how many nodes each pool has; of a delete it says that pools are still there."""
    there: dict[str, int] = {}
    for node in rig.api.metadata("/api/v1/nodes"):
        pool = node["labels"]["kumulus.io/pool"]
        there[pool] = there.get(pool, 0) + 1
    known = recorded_pools(rig.project)
    if operation == "delete":
        return [f"{pool} has nodes and is not in the state" for pool in there.keys() - known.keys()]
    return [
        f"{pool}: {count} nodes, recorded are {known.get(pool, {}).get('replicas')}"
        for pool, count in there.items()
        if known.get(pool, {}).get("replicas") != count
    ]


def test_an_interrupt_is_answered_soon_and_recorded_and_the_next_up_completes(rig: Rig) -> None:
    found = []
    for number in rounds(sample=1):
        for operation in OPERATIONS:
            found.append(trial(rig, operation, number))
            note(found[-1])
            if not found[-1].converged:
                rig.project.up("--refresh")
    assert [each for each in found if not each.converged or each.seconds > BACK_WITHIN] == []

"""Ctrl-C during an operation: pulumi ends soon, the state has what was done, the next up completes it."""

import signal
import time
from collections import Counter
from functools import partial

import pytest

from tests.soak.rig import (
    NODES_OF_A_TRIAL,
    NOTHING,
    OPERATIONS,
    ROUND,
    UP,
    Progress,
    Rig,
    await_moment,
    many,
    recorded_pools,
)
from tests.support.trials import NotStruck, Trial, chance, note, rounds, soaking, until_struck

pytestmark = pytest.mark.e2e
# Seconds that docs/reliability.md promises; the machine of `make test` may be three times as slow as the record's.
BACK_WITHIN = 2.0 if soaking() else 6.0


def trial(rig: Rig, operation: str, number: int, drawn: int = 0) -> Trial:
    """One Ctrl-C in the middle, and the next up.

    Raises:
        NotStruck: the command had finished before its moment came; its work is undone.
    """
    moment = chance("interrupt", operation, number, drawn).randrange(20, NODES_OF_A_TRIAL * 3 // 4)
    mark = f"{operation}-{number}-{drawn}"
    rig.want(NOTHING if operation == "delete" else many(mark, gpus=8 if operation == "create" else 4))
    selector = "kumulus.io/group in (a,b)" if operation == "delete" else f"{ROUND}={rig.wanted.mark}"
    progress = Progress(rig.api, "DELETED" if operation == "delete" else "ADDED", selector)
    command = rig.project.start(*UP)
    struck = await_moment(command, lambda: progress.count >= moment)
    command.process.send_signal(signal.SIGINT)
    signalled = time.monotonic()
    ended = command.result()
    seconds = time.monotonic() - signalled
    if not struck or ended.code == 0:
        # The signal arrived when everything was done, so it had no effect; an up that fails by itself is a failure.
        assert ended.code == 0, ended.text
        rig.again(operation, mark)
        raise NotStruck("the command had ended")
    words = f"after {progress.count} of {NODES_OF_A_TRIAL} nodes"
    faults = [*progress.check(), *told(ended.text), *recorded_wrongly(rig, operation)]
    started = time.monotonic()
    again = rig.project.pulumi(*UP)
    # Beside other tests the machine may be slower still, and then so is the next up.
    most = BACK_WITHIN if soaking() else max(BACK_WITHIN, 2 * (time.monotonic() - started))
    if again.code:
        faults.append(f"the next up failed: {again.text.strip()[-600:]}")
    faults += rig.faults()
    if drifting := {name: pool["drift"] for name, pool in recorded_pools(rig.project).items() if pool.get("drift")}:
        faults.append(f"drift is left after the next up: {drifting}")
    if seconds > most:
        faults.append(f"pulumi was back after {seconds:.1f} s, not within {most:.1f}")
    said = "; ".join(faults[:3]) if faults else "recorded; completed by the next up"
    return Trial("Ctrl-C", operation, words, said, not faults, round(seconds, 2), injected=1)


def told(text: str) -> list[str]:
    """What is wrong with pulumi's output after the interrupt."""
    return [f"it says {word}: {text[-1500:]}" for word in ("Traceback", "KeyboardInterrupt") if word in text]


def recorded_wrongly(rig: Rig, operation: str) -> list[str]:
    """Where the state does not say how many nodes each pool has; for a delete, that the pools still exist."""
    there: Counter[str] = Counter()
    unlike: Counter[str] = Counter()
    known = recorded_pools(rig.project)
    for node in rig.api.metadata("/api/v1/nodes"):
        pool = node["labels"]["kumulus.io/pool"]
        there[pool] += 1
        unlike[pool] += node["labels"].get(ROUND) != known.get(pool, {}).get("labels", {}).get(ROUND)
    if operation == "update":
        # Pools that were changed completely, or not at all, have nothing left to do.
        return [
            f"{pool}: {count} nodes are not as recorded, and it is not recorded that they are left to do"
            for pool, count in unlike.items()
            if count and not known.get(pool, {}).get("drift")
        ]
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
            found.append(until_struck(partial(trial, rig, operation, number)))
            note(found[-1])
            if not found[-1].converged:
                rig.mend(found[-1].outcome)
    assert [each for each in found if not each.converged] == []

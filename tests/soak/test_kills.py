"""``kill -9`` of the plugin or of pulumi at random moments: the next up makes everything exactly as declared."""

import os
import random
import signal
import time
from functools import partial

import pytest

from tests.soak.rig import (
    DESTROY,
    NODES_OF_A_TRIAL,
    NOTHING,
    OPERATIONS,
    ROUND,
    UP,
    Fleet,
    Progress,
    Rig,
    await_moment,
    many,
)
from tests.support import processes
from tests.support.project import Result, Running
from tests.support.trials import NotStruck, Trial, chance, note, rounds, until_struck

pytestmark = pytest.mark.e2e
# The share of trials that begin from nothing or destroy everything, so that the control plane itself is affected.
WHOLE = 0.2
# Seconds from a command's start in which an early kill happens.
EARLY = {"create": 5.0, "update": 2.5, "delete": 2.0}
# A plugin is about to end when the last nodes are done, so later kills would miss it.
LATEST = int(NODES_OF_A_TRIAL * 0.85)


def target(operation: str, mark: str, random_numbers: random.Random) -> Fleet:
    """The declared fleet after an operation of a round."""
    if operation == "delete":
        return NOTHING
    if operation == "create":
        return many(mark)
    return many(mark, gpus=random_numbers.choice([2, 4, 16]), shift=random_numbers.randrange(-20, 20))


def strike(command: Running, victim: str, moment: int, early: float, progress: Progress | None) -> str:
    """Kill at a moment; returns a description of the moment.

    Args:
        victim: ``plugin`` or ``pulumi``.
        moment: the number of nodes after which to kill; without ``progress`` it gives the share of the early seconds.

    Raises:
        NotStruck: the command had already ended.
    """
    started = time.monotonic()

    def reached() -> bool:
        if progress is None:
            return time.monotonic() - started >= moment / LATEST * early
        return progress.count >= moment

    if not await_moment(command, reached):
        raise NotStruck(f"{victim}: its command had ended")
    pid = command.process.pid if victim == "pulumi" else command.await_plugin()
    if pid is None or command.process.poll() is not None:
        raise NotStruck(f"{victim}: its command had ended")
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        raise NotStruck(f"{victim}: it had ended") from None
    if progress is None:
        return f"{victim}, after {time.monotonic() - started:.2f} s"
    return f"{victim}, after {progress.count} of {NODES_OF_A_TRIAL} nodes"


def trial(rig: Rig, operation: str, number: int, drawn: int = 0) -> Trial:
    """One kill, and the next up.

    Raises:
        NotStruck: the command had finished before its moment came; its work is undone.
    """
    numbers = chance("kill", operation, number, drawn) if drawn else chance("kill", operation, number)
    victim, moment = numbers.choice(["plugin", "pulumi"]), numbers.randrange(LATEST)
    whole = operation != "update" and numbers.random() < WHOLE
    early = whole or numbers.random() < 0.2
    mark = f"{operation}-{number}-{drawn}"
    before, wanted = rig.wanted, target(operation, mark, numbers)
    if whole and operation == "create":
        rig.project.destroy()
    elif operation == "create" and rig.wanted.pools:
        # A destroy that was killed in the previous round has left nodes behind.
        rig.become(NOTHING)
    if operation == "delete" and whole:
        wanted = before
    rig.want(wanted)
    progress = None
    if not early:
        selector = "kumulus.io/group in (a,b)" if operation == "delete" else f"{ROUND}={wanted.mark}"
        progress = Progress(rig.api, "DELETED" if operation == "delete" else "ADDED", selector)
    command = rig.project.start(*(DESTROY if operation == "delete" and whole else UP))
    try:
        words = strike(command, victim, moment, EARLY[operation], progress)
        killed = command.result()
        if killed.code == 0:
            # The engine already had every answer.
            raise NotStruck(f"{words}: it had done its work")
    except NotStruck:
        ended = command.result()
        assert ended.code == 0, ended.text
        if operation == "delete" and whole:
            rig.project.up()
        rig.again(operation, mark)
        raise
    broken = progress.check() if progress is not None else []
    there = rig.project.node_uids() if operation == "create" and not whole else {}
    again = rig.recover()
    faults = outcome(killed, again) or [*broken, *rig.faults()]
    if not faults and not there.items() <= rig.project.node_uids().items():
        faults.append("what was there has been made again")
    what = f"{operation}, control plane included" if whole else operation
    said = "; ".join(faults[:3]) if faults else "by the next up"
    return Trial("kill -9", what, words, said, not faults, round(again.seconds, 1), injected=1)


def outcome(killed: Result, again: Result) -> list[str]:
    """What is wrong with how the two commands ended."""
    if again.code:
        return [f"the next up failed: {again.text.strip()[-600:]}"]
    return [
        f"{name} shows a traceback" for name, r in (("it", killed), ("the next up", again)) if "Traceback" in r.text
    ]


def test_a_kill_at_any_moment_is_mended_by_the_next_up(rig: Rig) -> None:
    found = []
    for number in rounds(sample=2):
        for operation in OPERATIONS:
            found.append(until_struck(partial(trial, rig, operation, number)))
            note(found[-1])
            if not found[-1].converged:
                rig.mend(found[-1].outcome)
    assert [each for each in found if not each.converged] == []
    rig.project.preview("--refresh", "--expect-no-changes")
    rig.project.destroy()
    assert rig.project.processes() == {}
    processes.await_that(lambda: left(rig) == [], 15, "nothing is left of the commands")


def left(rig: Rig) -> list[str]:
    """Processes left by the commands, except Pulumi's language host: it checks for its engine every five minutes."""
    running = processes.helpers(rig.project.home).values()
    return [line for line in running if "/pulumi-language-python " not in line]

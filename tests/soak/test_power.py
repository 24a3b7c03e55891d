"""Power loss: files are truncated or outdated; ``up --refresh`` restores everything, or says what is lost.

A file system may lose whatever was not synced: a file's end, its content, or its last change. So every component is
killed, and then files are cut at a random byte, emptied, removed, or restored from an earlier copy. The copy is made
while a command works, with all components paused, so that it is a state that a disk may have had.
"""

import filecmp
import os
import random
import shutil
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path

import pytest

from tests.soak.rig import Fleet, Rig
from tests.support import processes
from tests.support.trials import NotStruck, Trial, chance, note, rounds, until_struck

pytestmark = pytest.mark.e2e
SECTOR = 512
# The message about objects that cannot be restored.
LOST = "without the objects in it"
# An update of nodes alone leaves the cluster's own files as they are; one that brings these rewrites them.
LIFECYCLES = {"podLifecycles": [{"name": "training", "selector": {"ownerKinds": ["Job"]}, "run": "5m"}]}


def small(mark: str) -> Fleet:
    return Fleet({"a-z1": 12, "b-z1": 8}, mark)


def cut(name: str) -> Callable[[Rig, random.Random, Path], str]:
    """Cut a file of the cluster at a random byte."""

    def damage(rig: Rig, numbers: random.Random, _: Path) -> str:
        found = sorted(rig.project.cluster().glob(name))
        assert found, f"there is no {name}"
        file = numbers.choice(found)
        size = file.stat().st_size
        at = numbers.choice([0, numbers.randrange(size), numbers.randrange(size)])
        os.truncate(file, at)
        return f"{name} cut at byte {at} of {size}"

    return damage


def gone(name: str) -> Callable[[Rig, random.Random, Path], str]:
    """Remove a file, as if its directory entry had not been written yet."""

    def damage(rig: Rig, numbers: random.Random, _: Path) -> str:
        (rig.project.cluster() / name).unlink()
        return f"{name} gone"

    return damage


def older(*names: str) -> Callable[[Rig, random.Random, Path], str]:
    """Replace files by their copies from a moment during the update, where these have another content."""

    def damage(rig: Rig, numbers: random.Random, copy: Path) -> str:
        cluster = rig.project.cluster()
        unlike = [name for name in names if (copy / name).exists() and not alike(copy / name, cluster / name)]
        for name in unlike:
            place = cluster / name
            if (copy / name).is_dir():
                shutil.rmtree(place)
                shutil.copytree(copy / name, place, symlinks=True)
            else:
                shutil.copy2(copy / name, place)
        if not unlike:
            raise NotStruck(f"{', '.join(names)} had the same content before")
        return f"{', '.join(unlike)} as before"

    return damage


def alike(one: Path, other: Path) -> bool:
    """Whether two files have the same content, or two directories the same files."""
    if not (one.is_dir() and other.is_dir()):
        return one.is_file() and other.is_file() and filecmp.cmp(one, other, shallow=False)
    inside = [{path.relative_to(place) for path in place.rglob("*")} for place in (one, other)]
    return inside[0] == inside[1] and all(alike(one / name, other / name) for name in inside[0])


def log_cut(rig: Rig, numbers: random.Random, _: Path) -> str:
    """Cut the end of etcd's log: records that it had not synced and so not acknowledged, and sometimes more."""
    file = sorted(rig.project.cluster().glob("etcd/member/wal/*.wal"))[-1]
    content = file.read_bytes().rstrip(b"\0")
    lost = numbers.choice([numbers.randrange(1, 64), numbers.randrange(64, 4096), numbers.randrange(len(content))])
    # A disk writes whole sectors; by their zeros etcd distinguishes a truncated record from a corrupt one.
    lost = min(len(content), lost + (len(content) - lost) % SECTOR)
    # etcd preallocates the rest of the file as zeros.
    with file.open("r+b") as opened:
        opened.seek(len(content) - lost)
        opened.write(b"\0" * lost)
    return f"etcd's log without its last {lost} of {len(content)} bytes"


# `make test` runs the first ones.
SAMPLE = 4
# The damage, and whether everything has to be restored without a message about a loss.
DAMAGES: dict[str, tuple[Callable[[Rig, random.Random, Path], str], bool]] = {
    "kubeconfig": (cut("kubeconfig.yaml"), True),
    "kwok.yaml gone": (gone("kwok.yaml"), True),
    "etcd's log": (log_cut, False),
    "keys": (cut("pki/*.*"), False),
    "kwok.yaml": (cut("kwok.yaml"), True),
    "its copy": (cut("kwok-kept.yaml"), True),
    "note": (cut("kumulus.json"), True),
    "declaration": (cut("declared.json"), True),
    "pid files": (cut("pids/*.pid"), True),
    "kubeconfig gone": (gone("kubeconfig.yaml"), True),
    "files older": (older("kwok.yaml", "kumulus.json", "kubeconfig.yaml"), True),
    "etcd older": (older("etcd"), True),
    "etcd's data": (cut("etcd/member/snap/db"), False),
}


@contextmanager
def stopped(pids: list[int]) -> Iterator[None]:
    try:
        for pid in pids:
            os.kill(pid, signal.SIGSTOP)
        yield
    finally:
        for pid in pids:
            # What has ended meanwhile must not keep the others stopped.
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)


def copied(rig: Rig, into: Path) -> None:
    """Copy the cluster's files at one moment, with all components paused."""
    with stopped([pid for pids in rig.project.processes().values() for pid in pids]):
        shutil.copytree(rig.project.cluster(), into, symlinks=True, ignore=shutil.ignore_patterns("logs", "bin"))


def trial(rig: Rig, number: int, copy: Path, drawn: int = 0) -> Trial:
    """An update during which a copy is made, a power loss, and the next up.

    Raises:
        NotStruck: the damage changed nothing; the stack is up, and without what the update has brought.
    """
    numbers = chance("power", number, drawn)
    name = list(DAMAGES)[number % len(DAMAGES)]
    damage, has_to_be_whole = DAMAGES[name]
    rig.want(small(f"power-{number}-{drawn}"), **(LIFECYCLES if name == "files older" else {}))
    command = rig.project.start("up", "--yes", "--skip-preview")
    time.sleep(numbers.uniform(0.5, 4.0))
    shutil.rmtree(copy, ignore_errors=True)
    copied(rig, copy)
    amid = command.process.poll() is None
    if numbers.random() < 0.5 and amid:
        # The power loss comes during the update.
        command.process.kill()
        command.result()
        processes.kill(processes.helpers(rig.project.home))
    else:
        command.result()
    processes.kill(pid for pids in rig.project.processes().values() for pid in pids)
    try:
        words = damage(rig, numbers, copy)
    except NotStruck:
        recovered(rig)
        rig.become(small(f"again-{number}-{drawn}"))
        raise
    again = recovered(rig)
    told = LOST in again[0] or "what was in the cluster is lost" in again[0]
    wrong = [] if again[1] == 0 or (told and not has_to_be_whole) else [f"the next up failed: {why(again[0])}"]
    if "Traceback" in again[0]:
        wrong.append("it shows a traceback")
    said = "in the next up --refresh"
    if again[1] != 0 and not wrong:
        # The message said what is lost and what to do; the test does that.
        shutil.rmtree(rig.project.cluster())
        processes.kill(pid for pids in rig.project.processes().values() for pid in pids)
        again = recovered(rig)
        said = "told that it is lost; made anew as said"
        wrong += [] if again[1] == 0 else [f"what was said does not help: {why(again[0])}"]
    wrong += rig.faults() if not wrong else []
    if wrong and name == "etcd older" and "was not looked at" in again[0]:
        # Acknowledged writes are lost, which no syncing disk does; the first up said that it had not looked.
        again, said = recovered(rig), "told that pools were not looked at; by one more up --refresh"
        wrong = rig.faults()
    if wrong:
        shutil.rmtree(rig.project.cluster(), ignore_errors=True)
        processes.kill(pid for pids in rig.project.processes().values() for pid in pids)
        recovered(rig)
    outcome = "; ".join(wrong[:3]) if wrong else said
    return Trial("power lost", name, words, outcome, not wrong, round(again[2], 1), injected=1)


def why(text: str) -> str:
    """The error lines of a failed command."""
    lines = [line.strip() for line in text.partition("Diagnostics:")[2].splitlines()]
    first = next((n for n, line in enumerate(lines) if line.startswith("error:")), 0)
    return " / ".join(filter(None, lines[first : first + 12]))[:1500]


def recovered(rig: Rig) -> tuple[str, int, float]:
    """Run the next ``up --refresh``, after ``pulumi cancel`` where a lock was left: its text, code and seconds."""
    rig.unlock()
    found = rig.project.pulumi("up", "--yes", "--skip-preview", "--refresh")
    return found.text, found.code, found.seconds


def test_after_a_loss_of_power_the_next_up_has_it_all_or_says_what_is_lost(rig: Rig, tmp_path: Path) -> None:
    rig.become(small("before"))
    found = []
    for number in rounds(sample=SAMPLE):
        found.append(until_struck(partial(trial, rig, number, tmp_path / "copy")))
        note(found[-1])
    assert [each for each in found if not each.converged] == []

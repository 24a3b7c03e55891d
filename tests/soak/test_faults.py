"""The control plane fails while pulumi works on a thousand nodes: the same up waits for it and loses nothing."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.client import HTTPException
from pathlib import Path

import psutil
import pytest

from tests.soak.rig import NOTHING, OPERATIONS, ROUND, UP, Progress, Rig, await_moment, thousand
from tests.support import processes
from tests.support.api import Api, Refused
from tests.support.faultproxy import FaultProxy, Harm, Kind
from tests.support.project import NODES
from tests.support.trials import Trial, chance, note, rounds, soaking

pytestmark = pytest.mark.e2e
CUTS: tuple[Kind, ...] = ("cut", "lost answer", "half an answer")


@dataclass
class Scene:
    """A stack whose plugin reaches its control plane through a proxy; the test itself looks past it."""

    rig: Rig
    proxy: FaultProxy


@pytest.fixture(scope="module")
def scene(rig: Rig) -> Iterator[Scene]:
    kubeconfig = rig.project.kubeconfig()
    direct = kubeconfig.with_name("direct.yaml")
    direct.write_text(kubeconfig.read_text())
    rig.look_through(Api(direct))
    with FaultProxy(kubeconfig.parent) as proxy:
        proxy.kubeconfig(kubeconfig)
        yield Scene(rig, proxy)


# --- faults ----------------------------------------------------------------------------------------------------------


def component(rig: Rig, name: str) -> int:
    [pid] = rig.project.processes()[f"soak/{name}"]
    return pid


def restart_api_server(scene: Scene) -> None:
    """Kill it, and start it a second later as it was."""
    process = psutil.Process(component(scene.rig, "kube-apiserver"))
    command, executable, folder = process.cmdline(), process.exe(), process.cwd()
    processes.kill([process.pid])
    time.sleep(1)
    log = Path(folder) / "logs" / "kube-apiserver.log"
    log = log if log.exists() else scene.rig.project.cluster() / "logs" / "kube-apiserver.log"
    with log.open("ab") as output:
        subprocess.Popen(
            command, executable=executable, cwd=folder, stdout=output, stderr=output, start_new_session=True
        )


def stop_etcd(seconds: float) -> Callable[[Scene], None]:
    def stop(scene: Scene) -> None:
        pid = component(scene.rig, "etcd")
        os.kill(pid, signal.SIGSTOP)
        try:
            time.sleep(seconds)
        finally:
            os.kill(pid, signal.SIGCONT)

    return stop


def cut_all(scene: Scene) -> None:
    scene.proxy.refuse()
    time.sleep(3)
    scene.proxy.accept()


@contextmanager
def harmed(scene: Scene, harm: Harm | None) -> Iterator[None]:
    """Harm requests while a command runs."""
    scene.proxy.harm(harm)
    try:
        yield
    finally:
        scene.proxy.harm(None)


# In words; what is done at one moment; what is done to requests all the time.
FAULTS: dict[str, tuple[Callable[[Scene], None] | None, Harm | None]] = {
    "API server killed and started again": (restart_api_server, None),
    "etcd stopped for 10 s": (stop_etcd(10), None),
    "every connection cut, none taken for 3 s": (cut_all, None),
    "one request in ten cut before, after or amid its answer": (None, Harm(CUTS, share=0.1)),
    "429 with Retry-After for one request in twenty": (None, Harm(("429",), share=0.05)),
    "500 for one request in five": (None, Harm(("500",), share=0.2)),
    "one answer in five late by up to 2 s": (None, Harm(("slow",), share=0.2)),
}


def answers(rig: Rig) -> bool:
    """Whether the API server answers, whatever was done to it."""
    try:
        return bool(rig.api.version(NODES))
    except (OSError, HTTPException, Refused):
        return False


def trial(scene: Scene, fault: str, operation: str, number: int) -> Trial:
    """One operation under one fault."""
    rig = scene.rig
    moment = chance(fault, operation, number).randrange(50, 700)
    mark = f"{operation}-{number}-{list(FAULTS).index(fault)}"
    strike, harm = FAULTS[fault]
    # What is done to connections does not meet nodes that are written past them.
    rig.create_through = "api" if harm is not None or strike is cut_all else "storage"
    rig.want(NOTHING if operation == "delete" else thousand(mark, gpus=8 if operation == "create" else 4))
    selector = "kumulus.io/group in (a,b)" if operation == "delete" else f"{ROUND}={mark}"
    progress = Progress(rig.api, "DELETED" if operation == "delete" else "ADDED", selector)
    with harmed(scene, harm):
        command = rig.project.start(*UP)
        words = "throughout"
        if strike is not None:
            struck = await_moment(command, lambda: progress.count >= moment)
            words = f"after {progress.count} of 1000 nodes" if struck else "too late"
            if struck:
                strike(scene)
        ended = command.result()
    processes.await_that(lambda: answers(rig), 60, "the API server answers", pause=0.2)
    wrong = [f"the up failed: {ended.text.strip()[-800:]}"] if ended.code else []
    wrong += ["it shows a traceback"] if "Traceback" in ended.text else []
    wrong += rig.faults()
    said = "; ".join(wrong[:3]) if wrong else "in the same up"
    return Trial(fault, operation, words, said, not wrong, round(ended.seconds, 1))


def test_what_fails_meanwhile_is_waited_for_and_nothing_is_lost(scene: Scene) -> None:
    every = [(fault, operation) for fault in FAULTS for operation in OPERATIONS]
    # The sample: real processes, each in one operation. tests/integration/test_faults.py has the harm to requests.
    sample = list(zip(FAULTS, OPERATIONS, strict=False))
    found = []
    for number in rounds(sample=1):
        for fault, operation in every if soaking() else sample:
            found.append(trial(scene, fault, operation, number))
            note(found[-1])
    assert [each for each in found if not each.converged] == []

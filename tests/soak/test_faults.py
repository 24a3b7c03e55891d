"""The control plane fails while pulumi changes some hundred nodes: the same up waits for it and loses nothing."""

import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from http.client import HTTPException
from pathlib import Path

import psutil
import pytest

from tests.soak.rig import NODES_OF_A_TRIAL, NOTHING, OPERATIONS, ROUND, UP, Progress, Rig, await_moment, many
from tests.support import processes
from tests.support.api import Api, Refused
from tests.support.faultproxy import FaultProxy, Harm, Kind
from tests.support.project import NODES
from tests.support.trials import NotStruck, Trial, chance, note, rounds, soaking, until_struck

pytestmark = pytest.mark.e2e
CUTS: tuple[Kind, ...] = ("cut", "lost answer", "half an answer")


@dataclass
class Scene:
    """A stack whose plugin reaches its control plane through a proxy; the test itself bypasses it."""

    rig: Rig
    """The stack."""
    proxy: FaultProxy
    """The proxy that the plugin uses."""
    direct: Path
    """A kubeconfig that bypasses the proxy."""


Strike = Callable[[Scene], int]


@pytest.fixture(scope="module")
def scene(rig: Rig) -> Iterator[Scene]:
    kubeconfig = rig.project.kubeconfig()
    direct = kubeconfig.with_name("direct.yaml")
    direct.write_text(kubeconfig.read_text())
    rig.look_through(Api(direct))
    with FaultProxy(kubeconfig.parent) as proxy:
        proxy.kubeconfig(kubeconfig)
        yield Scene(rig, proxy, direct)


# --- faults ----------------------------------------------------------------------------------------------------------


def component(rig: Rig, name: str) -> int:
    [pid] = rig.project.processes()[f"soak/{name}"]
    return pid


def restart(name: str) -> Strike:
    """Kill a component, and restart it unchanged a second later."""

    def strike(scene: Scene) -> int:
        process = psutil.Process(component(scene.rig, name))
        command, executable, folder = process.cmdline(), process.exe(), process.cwd()
        processes.kill([process.pid])
        assert f"soak/{name}" not in scene.rig.project.processes(), "the kill has struck"
        time.sleep(1)
        log = Path(folder) / "logs" / f"{name}.log"
        log = log if log.exists() else scene.rig.project.cluster() / "logs" / f"{name}.log"
        with log.open("ab") as output:
            subprocess.Popen(
                command, executable=executable, cwd=folder, stdout=output, stderr=output, start_new_session=True
            )
        return 1

    return strike


def stop_etcd(seconds: float) -> Strike:
    def strike(scene: Scene) -> int:
        pid = component(scene.rig, "etcd")
        os.kill(pid, signal.SIGSTOP)
        try:
            time.sleep(seconds)
            assert psutil.Process(pid).status() == psutil.STATUS_STOPPED
        finally:
            os.kill(pid, signal.SIGCONT)
        return 1

    return strike


def cut_all(scene: Scene) -> int:
    before = scene.proxy.done["cut"]
    scene.proxy.refuse()
    time.sleep(3)
    scene.proxy.accept()
    return scene.proxy.done["cut"] - before


class Writer:
    """Writes small objects continuously and remembers which of them the API server has acknowledged.

    Args:
        mark: in the objects' names.
    """

    PATH = "/api/v1/namespaces/default/configmaps"

    def __init__(self, api: Api, mark: str) -> None:
        self._api, self._mark = api, mark
        self.acknowledged: list[str] = []
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._write, daemon=True)
        self._thread.start()

    def _write(self) -> None:
        number = 0
        while not self._ended.is_set():
            number += 1
            name = f"written-{self._mark}-{number}"
            try:
                self._api.create(self.PATH, {"metadata": {"name": name}, "data": {"number": str(number)}})
            except (OSError, HTTPException, Refused):
                # Not acknowledged: it may or may not exist.
                time.sleep(0.05)
            else:
                self.acknowledged.append(name)

    def lost(self) -> list[str]:
        """Stop writing; returns the objects that were acknowledged and do not exist."""
        self._ended.set()
        self._thread.join(60)
        there = {each["name"] for each in self._api.metadata(self.PATH)}
        found = [f"{name} was acknowledged and is lost" for name in self.acknowledged if name not in there]
        for name in there:
            if name.startswith(f"written-{self._mark}-"):
                self._api.delete(f"{self.PATH}/{name}")
        return found if self.acknowledged else ["no write was acknowledged, so that nothing is known of them"]


@contextmanager
def harmed(scene: Scene, harm: Harm | None) -> Iterator[None]:
    """Inject faults into requests while a command runs."""
    scene.proxy.harm(harm)
    try:
        yield
    finally:
        scene.proxy.harm(None)


# By description: the strike at one moment, which returns how often it struck, and the continuous harm to requests.
FAULTS: dict[str, tuple[Strike | None, Harm | None]] = {
    "API server killed and started again": (restart("kube-apiserver"), None),
    "etcd killed and started again, during writes": (restart("etcd"), None),
    "etcd stopped for 10 s": (stop_etcd(10), None),
    "every connection cut, none taken for 3 s": (cut_all, None),
    "one request in ten cut before, after or amid its answer": (None, Harm(CUTS, share=0.1)),
    "429 with Retry-After for one request in twenty": (None, Harm(("429",), share=0.05)),
    "500 for one request in five": (None, Harm(("500",), share=0.2)),
    "one answer in five late by up to 2 s": (None, Harm(("slow",), share=0.2)),
}


def answers(rig: Rig) -> bool:
    """Whether the API server answers."""
    try:
        return bool(rig.api.version(NODES))
    except (OSError, HTTPException, Refused):
        return False


def trial(scene: Scene, fault: str, operation: str, number: int, drawn: int = 0) -> Trial:
    """One operation under one fault.

    Raises:
        NotStruck: the operation had ended before the fault's moment came.
    """
    rig = scene.rig
    moment = chance(fault, operation, number, drawn).randrange(20, NODES_OF_A_TRIAL * 3 // 5)
    mark = f"{operation}-{number}-{list(FAULTS).index(fault)}-{drawn}"
    strike, harm = FAULTS[fault]
    # Faults of connections do not affect nodes that are written directly to etcd.
    rig.create_through = "api" if harm is not None or strike is cut_all else "storage"
    rig.want(NOTHING if operation == "delete" else many(mark, gpus=8 if operation == "create" else 4))
    selector = "kumulus.io/group in (a,b)" if operation == "delete" else f"{ROUND}={mark}"
    # The test's own client bypasses the proxy.
    survives = "killed" in fault or "stopped" in fault
    progress = Progress(rig.api, "DELETED" if operation == "delete" else "ADDED", selector, survives)
    writer = Writer(Api(scene.direct), mark) if "writes" in fault else None
    harmed_before = scene.proxy.done.total()
    with harmed(scene, harm):
        command = rig.project.start(*UP)
        words, injected = "throughout", 0
        if strike is not None:
            struck = await_moment(command, lambda: progress.count >= moment)
            words = f"after {progress.count} of {NODES_OF_A_TRIAL} nodes"
            injected = strike(scene) if struck else 0
        ended = command.result()
    injected = injected if strike is not None else scene.proxy.done.total() - harmed_before
    processes.await_that(lambda: answers(rig), 60, "the API server answers", pause=0.2)
    wrong = writer.lost() if writer is not None else []
    wrong += progress.check()
    if not injected:
        assert ended.code == 0, ended.text
        rig.again(operation, mark)
        raise NotStruck(f"{fault}, {operation}")
    wrong += [f"the up failed: {ended.text.strip()[-800:]}"] if ended.code else []
    wrong += ["it shows a traceback"] if "Traceback" in ended.text else []
    wrong += rig.faults()
    said = "; ".join(wrong[:3]) if wrong else "in the same up"
    return Trial(fault, operation, words, said, not wrong, round(ended.seconds, 1), injected)


def test_what_fails_meanwhile_is_waited_for_and_nothing_is_lost(scene: Scene) -> None:
    every = [(fault, operation) for fault in FAULTS for operation in OPERATIONS]
    # The sample: real processes, each in one operation. tests/integration/test_faults.py tests the harm to requests.
    sample = list(zip(FAULTS, OPERATIONS, strict=False))
    found = []
    for number in rounds(sample=1):
        for fault, operation in every if soaking() else sample:
            found.append(until_struck(partial(trial, scene, fault, operation, number)))
            note(found[-1])
            if not found[-1].converged:
                scene.rig.mend(found[-1].outcome)
    assert [each for each in found if not each.converged] == []

"""What `kumulus fit` predicts for random workloads on a clone, against what then happens on the source.

It also compares what kube-scheduler says about random pods on the source and on an anonymised clone: how many nodes are
feasible, and why none is.
"""

import asyncio
import os
import re
import sys
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import Any

import yaml

from benchmarks.capture import command, size, source
from benchmarks.probes import Fleet, draw, manifest, never_preempting, what_happens
from benchmarks.report import Row
from kumulus.extras.capture.fit import fit
from kumulus.extras.capture.grammar import renamed
from kumulus.extras.capture.probe import Probe, ProbeVerdict, without_preemption
from kumulus.extras.capture.reading import POD, captured_pod
from kumulus.extras.capture.words import Words
from kumulus.extras.schedulers.decisions.document import NAME, Decision, decisions
from kumulus.extras.schedulers.launch.plan import Switches
from kumulus.extras.schedulers.process import start
from kumulus.kube import Client, load_kubeconfig
from kumulus.kube.messages import MessageCodec
from tests.support.captured import NAMESPACES, ZONE
from tests.support.project import Project
from tests.support.tools import missing

_MOST_S = 10.0
_SCHEDULER = "second-scheduler"
_SHOWN, _TRIES, _ALIKE_S = 5, 5, 120.0
# The order of the reasons carries no meaning: the scheduler sorts them by their text, which contains names.
_REASON = re.compile(r"[:,] (?=\d)")
FLEET = Fleet(
    namespaces=NAMESPACES,
    selectors=(
        *({"acme.example/pool": each} for each in ("web", "search", "gpu", "batch")),
        *({ZONE: f"eu-acme-{number}"} for number in (1, 2, 3)),
        {"acme.example/serial": "web-eu-acme-1-00003"},
        {"acme.example/pool": "none"},
    ),
    tolerations=(
        {"key": "nvidia.com/gpu", "operator": "Exists"},
        {"key": "acme.example/reserved", "operator": "Equal", "value": "search", "effect": "NoSchedule"},
    ),
    neighbours=({"app": "web"}, {"app": "train"}, {"app": "nobody"}),
    resource="nvidia.com/gpu",
)


def drawn() -> tuple[int, int]:
    """How many workloads and pods; `KUMULUS_BENCH_PROBES=20x50` overrides 200 and 500."""
    first, _, second = os.environ.get("KUMULUS_BENCH_PROBES", "200x500").partition("x")
    return int(first), int(second)


async def probes() -> list[Row]:
    """Both comparisons, on one source."""
    if missing("kueue"):
        return []
    return await asyncio.to_thread(_measure)


def _measure() -> list[Row]:
    workloads, pods = drawn()
    with source(*size()) as project:
        command(project, "capture", "-s", "source", "--to", "one", "--rate", "1000")
        command(project, "clone", "one", "-s", "clone")
        rows = [_agreed(project, workloads)]
        command(project, "down", "clone")
        command(project, "capture", "-s", "source", "--to", "other", "--rate", "1000", "--anonymise")
        command(project, "clone", "other", "-s", "words")
        rows.append(asyncio.run(_judged(project, pods)))
    return rows


def _agreed(project: Project, count: int) -> Row:
    whole = _as_command(project)
    took, wrong = asyncio.run(_compared(project, count))
    nodes, pods = size()
    for each in wrong[:_SHOWN]:
        _said(each)
    slowest = max(took)
    return Row(
        f"`kumulus fit` on a standing clone of {nodes:,} nodes and {pods:,} pods, {count} drawn workloads",
        f"a verdict within {_MOST_S:.0f} s; all agree with what then happens on the source",
        f"{sorted(took)[len(took) // 2]:.1f} s, {slowest:.1f} s the slowest ({whole:.1f} s as a command); "
        f"{count - len(wrong)} of {count} agree",
        not wrong and max(slowest, whole) <= _MOST_S,
        {"slowest_s": slowest, "command_s": whole, "agreed": float(count - len(wrong))},
    )


def _as_command(project: Project) -> float:
    """How long `kumulus fit` takes for a pod that fits, in seconds."""
    container = {"name": "main", "resources": {"requests": {"cpu": "100m"}}}
    pod = {"metadata": {"name": "probe", "namespace": NAMESPACES[0]}, "spec": {"containers": [container]}}
    (project.directory / "probe.yaml").write_text(yaml.safe_dump({"apiVersion": "v1", "kind": "Pod", **pod}))
    return command(project, "fit", "probe.yaml", "-s", "clone", "--no-changes").seconds


async def _compared(project: Project, count: int) -> tuple[list[float], list[str]]:
    took, wrong = [], []
    async with _client(project, "clone") as clone, _client(project, "source") as there:
        await never_preempting(there)
        for seed in range(count):
            probe = draw(seed, FLEET)
            seconds, verdict, happened, why = await _tried(clone, there, probe)
            took.append(seconds)
            if (verdict.fitted, _sorted(verdict.reason)) != (happened, _sorted(why)):
                said = f"{verdict.fitted} fit, {verdict.reason!r}; then {happened}, {why!r}"
                wrong.append(f"{probe}: {said}")
    return took, wrong


async def _tried(clone: Client, there: Client, probe: Probe) -> tuple[float, ProbeVerdict, int, str]:
    """Ask the clone, then the source; returns the answer's seconds, its verdict, and what happened and why.

    With two fleets of this size on two cores, some nodes miss a lease renewal now and then and are tainted for a while.
    The comparison needs a fleet and its clone with the same taints: it is made again, a few times at most.
    """
    left = _TRIES
    while True:
        tainted = await _until_alike(clone, there)
        began = time.monotonic()
        answer = await fit(clone, probe, changes=False)
        seconds = time.monotonic() - began
        happened, why = await what_happens(there, probe)
        left -= 1
        if not left or tainted == await _tainted(clone) == await _tainted(there):
            return seconds, answer.verdict, happened, why


async def _until_alike(clone: Client, there: Client) -> frozenset[tuple[str, str]]:
    """Wait until the same nodes have the same taints in both clusters; returns these nodes and taints."""
    ends = time.monotonic() + _ALIKE_S
    while (found := await _tainted(clone)) != await _tainted(there):
        if time.monotonic() > ends:
            raise RuntimeError("the clone's nodes have not had the taints of the source's for two minutes")
        await asyncio.sleep(1)
    return found


async def _tainted(client: Client) -> frozenset[tuple[str, str]]:
    pages = client.listed("/api/v1/nodes", MessageCodec("Node"))
    nodes = [node async for page in pages for node in page]
    return frozenset((node.metadata.name, taint.key) for node in nodes for taint in node.spec.taints)


@asynccontextmanager
async def _client(project: Project, stack: str) -> AsyncIterator[Client]:
    async with Client(load_kubeconfig(project.kubeconfig(stack))) as client:
        yield client


@dataclass(frozen=True)
class Judged:
    """What kube-scheduler says of a pod: how many nodes are feasible, and why none is."""

    feasible: int
    why: str


async def _judged(project: Project, count: int) -> Row:
    words = Words.read(project.directory / "other-translation.json")
    drawn = [replace(draw(1000 + seed, FLEET), count=1) for seed in range(count)]
    before = await _scheduled(project, "source", drawn, lambda pod: pod, lambda text: text)
    after = await _scheduled(project, "words", drawn, lambda pod: _in_words(pod, words), words.back)
    wrong = [
        f"{probe}: {before[probe.name]} but {after[probe.name]}"
        for probe in drawn
        if before[probe.name] != after[probe.name]
    ]
    for each in wrong[:_SHOWN]:
        _said(each)
    words_of, (nodes, pods) = sum(not each.feasible for each in before.values()), size()
    return Row(
        f"{count} drawn pods on a source of {nodes:,} nodes and {pods:,} pods, and on an anonymised clone",
        "the same number of feasible nodes, and the same reason, translated back",
        f"{count - len(wrong)} of {count} ({words_of} of them fit nowhere)",
        not wrong,
        {"same": float(count - len(wrong)), "nowhere": float(words_of)},
    )


async def _scheduled(
    project: Project,
    stack: str,
    drawn: list[Probe],
    changed: Callable[[dict[str, Any]], dict[str, Any]],
    back: Callable[[str], str],
) -> dict[str, Judged]:
    """Schedule each pod by itself with a kube-scheduler that looks at every node."""
    folder = project.directory.parent / f"scheduler-{stack}"
    config = project.directory.parent / "scheduler.yaml"
    profile = {"schedulerName": _SCHEDULER, "percentageOfNodesToScore": 100}
    kind = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}
    config.write_text(yaml.safe_dump({**kind, "profiles": [profile]}))
    whys: dict[str, str] = {}
    running = await start(
        "kube-scheduler", project.kubeconfig(stack), folder, config, switches=Switches(decisions=True)
    )
    try:
        async with _client(project, stack) as client:
            await never_preempting(client)
            for probe in drawn:
                made = changed(manifest(probe, 0))
                again = replace(
                    probe,
                    name=next(iter(made["metadata"]["labels"].values())),
                    namespace=made["metadata"]["namespace"],
                    labels=made["metadata"]["labels"],
                    spec={key: value for key, value in made["spec"].items() if key != "priorityClassName"},
                )
                _, why = await what_happens(client, again, _SCHEDULER)
                whys[probe.name] = _sorted(back(why))
    finally:
        await running.stop()
    bound = {each.pod: each.feasible for each in decisions(folder / NAME) if isinstance(each, Decision)}
    names = {back(pod.rpartition("/")[2].removesuffix("-0")): feasible for pod, feasible in bound.items()}
    return {probe.name: Judged(names.get(probe.name, 0), whys[probe.name]) for probe in drawn}


def _in_words(pod: dict[str, Any], words: Words) -> dict[str, Any]:
    """A pod as an anonymised capture would have it."""
    kept = captured_pod({**pod, "status": {}})
    assert kept is not None
    found = renamed(POD, kept, words)
    containers = [{**each, "image": "none"} for each in found["spec"]["containers"]]
    metadata = {"namespace": found["namespace"], "name": found["name"], "labels": found["labels"]}
    return {"metadata": metadata, "spec": {**found["spec"], "containers": containers}}


def _sorted(why: str) -> str:
    """A reason with its parts in an order that does not depend on names."""
    head, *parts = _REASON.split(without_preemption(why).rstrip("."))
    return ", ".join([head, *sorted(parts)])


def _said(text: str) -> None:
    print(text, file=sys.stderr, flush=True)

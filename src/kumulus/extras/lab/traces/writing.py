"""The stack file and the experiment file of an imported trace."""

import itertools
import math
import os
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kumulus.extras.lab.errors import LabError
from kumulus.extras.lab.file.fields import NAME_LENGTH
from kumulus.extras.lab.file.model import ExperimentSpec
from kumulus.extras.lab.offline.placing import EmptyNode
from kumulus.extras.lab.policies.nodes import WHOLE_GPU
from kumulus.extras.lab.traces.summary import Sums
from kumulus.extras.lab.traces.task import COLUMNS
from kumulus.kube import safe_yaml
from kumulus.model.devices import GATES, Parts
from kumulus.model.durations import LONGEST_S, written
from kumulus.model.errors import SpecError, shown
from kumulus.model.gfd import GPU_PRODUCT_LABEL, GPU_RESOURCE, SHARE_RESOURCE
from kumulus.model.names import dns_safe, node_name_mistake
from kumulus.nodes.catalog.instances import gpu_products, mig_profiles
from kumulus.stackfile.model import ClusterSpec

STACK_BEGINS = "# The machines of a trace, a node group for each kind:"
EXPERIMENT_BEGINS = "# A recorded trace, as `kumulus trace import` made it."
"""How the first line of each file begins."""

_PODS = "1000"
"""Pods per node: as many as the published simulator allows, so that no node is full of many pods with little CPU."""
_ZONE = "trace"
_SLOWEST = 5
"""Pods per second that a busy control plane of two cores accepts."""
_MODEL_LENGTH = 30
"""Of a group's name, which its nodes' names begin with."""
_UNKNOWN = "unknown"


@dataclass(frozen=True)
class WantedExperiment:
    """What the experiment is to be, as the command line says."""

    policy: str = ""
    inflate: float | None = None
    """Demand to arrive, as a share of all GPUs; None for the trace's own."""
    stay: bool = False
    shuffle: bool = False
    speed: float = 1.0
    limit: int | None = None
    window: tuple[float, float] | None = None
    """Seconds from the trace's first task, from and to; None for all of it."""
    milli_gpus: bool = False
    resource_claims: Parts | None = None
    """How pods claim parts of GPUs, and nodes publish GPUs for these claims; None for no claims."""
    keep_names: bool = False
    user_queues: bool = False


def groups(machines: Sequence[EmptyNode]) -> Iterator[tuple[str, EmptyNode, int]]:
    """Each kind of machine, with a name for its group and how many there are."""
    kinds = Counter(map(_kind, machines))
    taken: set[str] = set()
    for (cpu, memory, gpus, model), count in kinds.items():
        what = f"{dns_safe(model, _MODEL_LENGTH) or 'gpu'}-{gpus}g" if gpus else "cpu"
        more = f"{what}-{cpu // 1000}c", f"{what}-{cpu // 1000}c-{memory}m"
        numbered = (f"{more[-1]}-{number}" for number in itertools.count(2))
        name = next(each for each in itertools.chain([what, *more], numbered) if each not in taken)
        taken.add(name)
        yield name, EmptyNode(name, cpu, memory, gpus, model), count


def stack_text(machines: Sequence[EmptyNode], source: str, wanted: WantedExperiment | None = None) -> str:
    """A stack file with a node group for each kind of machine.

    Args:
        source: where the trace is from, for a comment.
    """
    wanted = wanted or WantedExperiment()
    parts = wanted.resource_claims
    if parts == "mig" and not any(machine.model in mig_profiles() for machine in machines):
        there = ", ".join(sorted({machine.model for machine in machines if machine.gpus and machine.model}) or ["none"])
        raise LabError(
            f"no machine of the trace has GPUs that the catalog knows MIG devices of; it has {there}\n"
            f"  Write --resource-claims milli; MIG devices are of {', '.join(mig_profiles())}"
        )
    names = _names(machines) if wanted.keep_names else {}
    made = [
        {
            "name": name,
            "placement": [{"availabilityZone": _ZONE, "replicas": count, **_named(names.get(_kind(machine), []))}],
            "nodeTemplate": {
                **({"metadata": {"labels": {GPU_PRODUCT_LABEL: machine.model}}} if machine.model else {}),
                "capacity": {
                    "cpu": f"{machine.cpu}m" if machine.cpu % 1000 else str(machine.cpu // 1000),
                    "memory": f"{machine.memory}Mi",
                    "pods": _PODS,
                    **({GPU_RESOURCE: str(machine.gpus)} if machine.gpus else {}),
                    **({SHARE_RESOURCE: str(machine.gpus * WHOLE_GPU)} if machine.gpus and wanted.milli_gpus else {}),
                },
            },
            **({"resourceSlices": _slices(machine, parts)} if machine.gpus and parts else {}),
        }
        for name, machine, count in groups(machines)
    ]
    gates = {"kwok": {"featureGates": {GATES[parts]: True}}} if parts else {}
    cluster = {"runtime": "kwok", **gates, "nodeGroups": made}
    refuse_invalid(ClusterSpec, cluster, "the stack of the trace's machines")
    return f"{STACK_BEGINS} {source}\n{yaml_text({'config': {'kumulus:cluster': cluster}})}"


def _kind(machine: EmptyNode) -> tuple[int, int, int, str]:
    return (machine.cpu, machine.memory, machine.gpus, machine.model)


def _names(machines: Sequence[EmptyNode]) -> dict[tuple[int, int, int, str], list[str]]:
    """The names of each kind's machines, in lower case, as nodes' have to be."""
    found: dict[tuple[int, int, int, str], list[str]] = {}
    taken: set[str] = set()
    for machine in machines:
        name = machine.name.lower()
        mistake = node_name_mistake(name)
        if mistake or name in taken:
            why = mistake.message if mistake else "is there twice"
            raise LabError(f"the machine {shown(machine.name)}: its name {why}\n  Leave out --keep-names")
        taken.add(name)
        found.setdefault(_kind(machine), []).append(name)
    return found


def _named(names: Sequence[str]) -> dict[str, Any]:
    return {"nodes": [{"name": name} for name in names]} if names else {}


def _slices(machine: EmptyNode, parts: Parts) -> dict[str, Any]:
    """How a machine publishes its GPUs for claims: as whole ones if they cannot be divided."""
    section: dict[str, Any] = {"extendedResource": False}
    if parts == "milli":
        section["allowMultipleAllocations"] = True
    elif machine.model in mig_profiles():
        section["partitionable"] = True
    if machine.model not in gpu_products():
        section["attributes"] = {"productName": machine.model or _UNKNOWN}
    return section


def experiment_text(file: Path, stack: Path, tasks: Path, source: str, wanted: WantedExperiment, sums: Sums) -> str:
    """An experiment file that replays a file of tasks.

    Args:
        file: the experiment file; paths in it are relative to it, and the experiment has its name.
        source: where the trace is from.
    """
    gangs = sums.gangs > 0
    window = wanted.window
    trace = _without_none(
        file=_from(file, tasks),
        columns=dict(COLUMNS),
        speed=None if wanted.speed == 1 else wanted.speed,
        limit=wanted.limit,
        window={"from": written(window[0]), "to": written(window[1])} if window is not None else None,
        inflate=wanted.inflate,
        shuffle="seed" if wanted.shuffle or wanted.inflate is not None else None,
        stay=wanted.stay or None,
        milliGpus=wanted.milli_gpus or None,
        userQueues=wanted.user_queues or None,
    )
    workload = _without_none(
        name="tasks",
        kind="Pod" if wanted.stay and not gangs else "Job",
        resourceClaims=wanted.resource_claims,
        arrival={"trace": trace},
        gang=gangs or None,
    )
    experiment = _without_none(
        name=dns_safe(file.stem, NAME_LENGTH) or "trace",
        about={"source": source},
        stack=stack_name(stack),
        stackFile=_from(file, stack),
        policy=wanted.policy or None,
        # kube-scheduler can take a minute over one claim of many GPUs.
        settle="30s" if wanted.resource_claims else None,
        timeout=written(_patience(wanted, sums)),
        workloads=[workload],
    )
    refuse_invalid(ExperimentSpec, experiment, str(file))
    return f"{EXPERIMENT_BEGINS}\n{yaml_text(experiment)}"


def _without_none(**fields: Any) -> dict[str, Any]:
    return {key: value for key, value in fields.items() if value is not None}


def refuse_invalid(model: type[ClusterSpec | ExperimentSpec], written: Mapping[str, Any], source: str) -> None:
    """Refuse to write what could not be read again, such as a GPU model that is no value of a label."""
    try:
        model.checked(written, source)
    except SpecError as error:
        raise LabError(str(error)) from None


def _patience(wanted: WantedExperiment, sums: Sums) -> float:
    """Seconds after which the run ends in any case: 1.5 times the time in which its jobs arrive, and half an hour.

    No experiment may take longer than a year.

    Jobs that the seed draws arrive one right after the other, as fast as a control plane accepts them.
    """
    if wanted.shuffle or wanted.inflate is not None:
        lasts = sums.pods * (wanted.inflate or 1) / _SLOWEST
    else:
        first, last = wanted.window or (0.0, math.inf)
        lasts = max(0.0, min(last, sums.last - sums.first) - first) / wanted.speed
    return min(LONGEST_S, math.ceil((1.5 * lasts + 1800) / 600) * 600.0)


def stack_name(file: Path) -> str:
    """The name that Pulumi gives the stack of a file."""
    return file.name.removeprefix("Pulumi.").removesuffix(".yaml").removesuffix(".yml")


def _from(file: Path, other: Path) -> str:
    return os.path.relpath(other.absolute(), file.absolute().parent)


def yaml_text(document: Mapping[str, Any]) -> str:
    """A document as YAML, in lines of 120 characters."""
    return safe_yaml.written(dict(document), width=120)

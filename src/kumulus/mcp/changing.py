"""What an agent may do in the clusters that the server has made for it, and only there."""

import tempfile
from collections.abc import Iterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Annotated, Any

import yaml
from pydantic import Field

from kumulus.extras.capture import probe
from kumulus.extras.capture.commands.fit import plain
from kumulus.extras.capture.fit import fit
from kumulus.extras.gpu_operator.section import FakeGpuOperator
from kumulus.extras.lab.file.load import references
from kumulus.extras.lab.file.model import ExperimentSpec
from kumulus.extras.lab.report import text
from kumulus.extras.lab.report.model import Report
from kumulus.extras.scaling.section import AutoscalerSpec
from kumulus.kube.safe_yaml import FAST_LOADER
from kumulus.mcp.held import Held
from kumulus.mcp.looking import Cluster
from kumulus.model.errors import path_text
from kumulus.nodes.catalog.faults import fault_kinds
from kumulus.stackfile.model import ClusterSpec
from kumulus.testing import AsyncCluster, ClusterError

Yaml = Annotated[str, Field(description="YAML, one or more documents")]
Nodes = Annotated[
    int | dict[str, int] | None,
    Field(description="how many plain nodes, or how many by instance type or GPU, such as {'h100': 100}; 30 if empty"),
]
Broken = Annotated[int | list[str] | None, Field(description="how many nodes, or which ones; all if left out")]
Kind = Annotated[str, Field(description=f"one of {', '.join(fault_kinds())}")]


class Changing:
    """The tools that change something."""

    def __init__(self, held: Held) -> None:
        self._held = held

    async def create(
        self, name: str = "test", nodes: Nodes = None, stack_file: str = "", kubernetes_version: str = ""
    ) -> dict[str, Any]:
        """Start an emulated cluster, of so many nodes or as a stack file says, and wait until its nodes are Ready."""
        sections: dict[str, Any] = {"kubernetesVersion": kubernetes_version} if kubernetes_version else {}
        wanted = 30 if nodes is None and not stack_file else nodes
        cluster = AsyncCluster(stack_file or None, nodes=wanted, **sections)
        _refuse(_programs(cluster.spec), "start it yourself: kumulus cluster up FILE")
        return await self._held.make(name, cluster)

    async def apply(self, manifests: Yaml, cluster: Cluster = "") -> dict[str, Any]:
        """Apply manifests, as `kubectl apply --server-side` does."""
        async with self._held.changing(cluster) as made:
            # A text of one line would be the path of a file.
            found = await made.cluster.apply(manifests + "\n")
        return {"applied": [f"{each['kind']} {each['metadata']['name']}" for each in found]}

    async def fit(
        self, workload: Yaml, count: Annotated[int | None, Field(ge=1)] = None, cluster: Cluster = ""
    ) -> dict[str, Any]:
        """Ask the scheduler whether a workload's pods fit, where, what the limit is, and what would make all fit."""
        async with self._held.changing(cluster) as made:
            with tempfile.NamedTemporaryFile("w", prefix="workload-", suffix=".yaml", dir=made.cluster.folder) as file:
                file.write(workload)
                file.flush()
                wanted = probe.read(Path(file.name), count)
            answer = await fit(made.cluster.client, wanted, clone=False)
        return plain(cluster, wanted, answer)

    async def inject(self, kind: Kind, nodes: Broken = None, cluster: Cluster = "") -> dict[str, Any]:
        """Begin a fault of the catalog; it lasts until clear, reset or destroy."""
        async with self._held.changing(cluster) as made, AsyncExitStack() as stack:
            begun = await stack.enter_async_context(made.cluster.fault(kind, nodes=nodes))
            made.faults[begun.name] = stack.pop_all()
        return {"fault": begun.name, "nodes": list(begun.names)}

    async def clear(self, fault: str, cluster: Cluster = "") -> dict[str, Any]:
        """End a fault, by the name that inject has answered."""
        async with self._held.changing(cluster) as made:
            if fault not in made.faults:
                raise ClusterError(f"no fault {fault} is active; there are {', '.join(sorted(made.faults)) or 'none'}")
            await made.faults.pop(fault).aclose()
        return {"cleared": fault}

    async def measure(self, experiment: Yaml, cluster: Cluster = "") -> dict[str, Any]:
        """Run an experiment: create its workloads, measure, compare with its thresholds, remove them.

        It starts no programs of the user's and names no files.
        """
        written = yaml.load(experiment, FAST_LOADER)  # noqa: S506 - a safe loader
        if not isinstance(written, dict):
            raise ClusterError("experiment: write the contents of an experiment file, not its path")
        named = _named(ExperimentSpec.checked(written, "the experiment"))
        _refuse(named, "run it yourself: kumulus experiment run FILE --kubeconfig KUBECONFIG")
        async with self._held.changing(cluster) as made:
            report = await made.cluster.experiment(written)
        found = Report.model_validate(report)
        return {"status": found.results.status, "report": [*text.lines(found)]}

    async def reset(self, cluster: Cluster = "") -> dict[str, Any]:
        """Put everything back to what it was when the cluster had started: nodes, pods, CRDs, namespaces, faults."""
        async with self._held.changing(cluster) as made:
            while made.faults:
                await made.faults.popitem()[1].aclose()
            return {"reset": str(await made.cluster.reset())}

    async def destroy(self, cluster: Cluster = "") -> dict[str, Any]:
        """Take a cluster down, with everything in it."""
        await self._held.destroy(cluster)
        return {"clusters": self._held.described()}


def _programs(spec: ClusterSpec) -> Iterator[str]:
    """Where a cluster's description names programs of the user's machine."""
    if spec.kwok.processes:
        yield "kwok.processes"
    asked = spec.sections_of_extras()
    if isinstance(scaler := asked.get("autoscaler"), AutoscalerSpec) and scaler.binary:
        yield "autoscaler.binary"
    if isinstance(operator := asked.get("gpuOperator"), FakeGpuOperator) and operator.binaries:
        yield "gpuOperator.binaries"


def _named(experiment: ExperimentSpec) -> Iterator[str]:
    """Where an experiment names programs or files of the user's machine; a policy's file is a program, too."""
    yield from (path_text(where) for where, _ in references(experiment))
    if experiment.scheduler.binary:
        yield "scheduler.binary"
    yield from (f"timeline[{number}].run" for number, each in enumerate(experiment.timeline) if each.run is not None)


def _refuse(places: Iterator[str], instead: str) -> None:
    if found := ", ".join(places):
        raise ClusterError(
            f"{found}: an agent starts no programs of this machine, and reads none of its files\n"
            f"  Leave it out, or {instead}"
        )

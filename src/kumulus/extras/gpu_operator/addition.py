"""A stack's `gpuOperator`: the fake GPU operator's status-updater and its device plugin for KWOK's nodes, as processes.

The status-updater writes a ConfigMap for each node of a simulated pool, with its GPUs and who has them; the device
plugin gives a node the GPUs of its ConfigMap. Neither listens anywhere. Variables and objects as tried with 0.2.0.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kumulus import toolchain
from kumulus.extras.gpu_operator import dra
from kumulus.host.ports import Claims
from kumulus.kube import namespaces, objects
from kumulus.kube.codecs import METADATA_ONLY
from kumulus.kube.namespaces import NAMESPACES
from kumulus.model.gfd import GPU_OPERATOR, SIMULATED_POOL_LABEL
from kumulus.nodes.ownership import make
from kumulus.nodes.reporter import Reporter
from kumulus.runtimes.kwok import components
from kumulus.runtimes.kwok.addition import Addition, Options
from kumulus.runtimes.kwok.layout import Layout, dump

if TYPE_CHECKING:
    from kumulus.kube import Client

UPDATER, PLUGIN = GPU_OPERATOR
TOPOLOGY = "topology"
CONFIG_MAPS = f"{NAMESPACES}/{dra.NAMESPACE}/configmaps"
_FILE = "topology.yml"
_MARK = components.mark("fake-gpu-operator")
_OURS = (_MARK, "fake GPU operator", "take gpuOperator out of the stack file")
_OF_NODES = {"labelSelector": "node-topology=true"}
_PLACES = {
    "TOPOLOGY_CM_NAME": TOPOLOGY,
    "TOPOLOGY_CM_NAMESPACE": dra.NAMESPACE,
    "FAKE_GPU_OPERATOR_NAMESPACE": dra.NAMESPACE,
}
_ENVIRONMENT = {
    **_PLACES,
    # Where KAI reserves GPUs of which pods have a part.
    "RESOURCE_RESERVATION_NAMESPACE": "kai-resource-reservation",
    # Nobody answers there: by default, it asks a Prometheus in the cluster for the usage of inference.
    "PROMETHEUS_URL": "http://127.0.0.1:9",
    # Its label is for the daemons of its chart, none of which are here.
    "DISABLE_NODE_LABELING": "true",
}


class Operator(Addition):
    """The fake GPU operator that a stack's section `gpuOperator` asks for."""

    names = frozenset(GPU_OPERATOR)

    def asked(self, options: Options) -> bool:
        return bool(options.get("gpuOperator"))

    def fingerprints(self, options: Options) -> dict[str, str]:
        """See :meth:`Addition.fingerprints`: the status-updater reads its pools when it starts."""
        if not self.asked(options):
            return {}
        programs = dict(options["gpuOperator"].get("programs") or {})
        how = [_ENVIRONMENT, programs]
        return {UPDATER: components.fingerprint([how, topology(options)]), PLUGIN: components.fingerprint(how)}

    def announced(self, options: Options) -> list[str]:
        return [f"gpuOperator: the fake GPU operator is started, {_pools(options)}"]

    def described(self, old: Options, new: Options) -> list[str]:
        then, now = self.fingerprints(old), self.fingerprints(new)
        if then == now:
            return [] if self.objects(old) == self.objects(new) else [f"gpuOperator: {_plugin(new)}"]
        if not now:
            return ["gpuOperator: the fake GPU operator goes, with its namespace; nodes keep their GPUs"]
        return [f"gpuOperator: the fake GPU operator is restarted, {_pools(new)}"] if then else self.announced(new)

    def configured(self, settings: dict[str, Any], layout: Layout, options: Options, claims: Claims) -> dict[str, Any]:
        if not self.asked(options):
            return components.replaced(settings, self.names)
        own: Mapping[str, str] = options["gpuOperator"].get("programs") or {}
        environment = {**_ENVIRONMENT, "KUBECONFIG": str(layout.kubeconfig)}
        links = {UPDATER: ("kube-apiserver", "kwok-controller"), PLUGIN: (UPDATER,)}
        definitions = []
        for name, after in links.items():
            components.link(layout, name, Path(own[name]) if name in own else toolchain.find(name))
            definitions.append(components.definition(layout, name, [], {}, links=after, environment=environment))
        return components.replaced(settings, self.names, *definitions)

    def has_kinds(self, options: Options) -> bool:
        """See :meth:`Addition.has_kinds`: without its ConfigMap, neither of its processes would start."""
        return self.asked(options)

    async def define(self, client: Client, layout: Layout, options: Options) -> None:
        """See :meth:`Addition.define`; the status-updater is down, as its pools may have changed."""
        if self.asked(options):
            await _prepare(client, options)

    def starts_after_api_server(self, options: Options) -> str | None:
        """See :meth:`Addition.starts_after_api_server`: it would have the pools of before."""
        return UPDATER if self.asked(options) else None

    def resumes(self, options: Options) -> str | None:
        """See :meth:`Addition.resumes`: somebody may have removed its ConfigMap."""
        return UPDATER if self.asked(options) else None

    async def resume(self, client: Client, options: Options, report: Reporter) -> None:
        await _prepare(client, options)

    def objects(self, options: Options) -> Any:
        return bool(self.asked(options) and options["gpuOperator"].get("dra"))

    async def apply(self, client: Client, layout: Layout, options: Options) -> None:
        if self.objects(options):
            await dra.run(client, _PLACES, _OURS)
        else:
            await dra.end(client, _MARK)
        if self.asked(options):
            return
        for name in await objects.names(client, NAMESPACES, objects.labelled(_MARK)):
            await namespaces.remove(client, f"{NAMESPACES}/{name}")


def topology(options: Options) -> str:
    """The operator's pools, as it reads them: :file:`internal/common/topology/types.go`."""
    # Pulumi's numbers are floats, and its mappings have another order each time.
    pools = {
        name: {"gpuProduct": pool["gpuProduct"], "gpuCount": int(pool["gpuCount"]), "gpuMemory": int(pool["gpuMemory"])}
        for name, pool in sorted(options["gpuOperator"]["pools"].items())
    }
    return dump([{"nodePoolLabelKey": SIMULATED_POOL_LABEL, "migStrategy": "mixed", "nodePools": pools}])


async def _prepare(client: Client, options: Options) -> None:
    """Make what its processes read when they start."""
    await make(client, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": dra.NAMESPACE}}, *_OURS)
    wanted = {_FILE: topology(options)}
    there = await objects.find(client, f"{CONFIG_MAPS}/{TOPOLOGY}")
    if there and there.get("data") != wanted:
        # Those that are there it leaves as they are.
        await client.request("DELETE", CONFIG_MAPS, params=_OF_NODES, accept=METADATA_ONLY)
    metadata = {"name": TOPOLOGY, "namespace": dra.NAMESPACE}
    await make(client, {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": wanted}, *_OURS)


def _pools(options: Options) -> str:
    pools = sorted(options["gpuOperator"]["pools"].items())
    listed = ", ".join(f"{name} ({int(each['gpuCount'])} {each['gpuProduct']})" for name, each in pools)
    return f"with {listed}" + (f"; {_plugin(options)}" if options["gpuOperator"].get("dra") else "")


def _plugin(options: Options) -> str:
    """What becomes of its DRA plugin."""
    return "its DRA plugin " + ("runs" if options["gpuOperator"].get("dra") else "ends, and its slices go")


ADDITION = Operator()

"""``kumulus:index:FederationHub`` and ``…:FederationWorker``: clusters that work as one, through MultiKueue.

A worker has a queue and a service account for the hub, with rights to no more than its Jobs. The hub has the workers'
kubeconfigs in Secrets, and a queue whose Jobs go to them. The plugin reads each worker's token from the worker when it
writes the Secret, so no Pulumi state contains the token.
"""

from __future__ import annotations

import asyncio
import time
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from kumulus.extras.federation import declared, federation
from kumulus.extras.federation.federation import Manifest, Queue
from kumulus.extras.federation.names import NAMESPACE
from kumulus.kube import ApiError
from kumulus.kube.errors import tolerating
from kumulus.kube.objects import address
from kumulus.nodes.errors import PartialFailure, ProviderError
from kumulus.provider.connections import UNASKED
from kumulus.provider.properties import STRING, STRINGS, Property, listing, mapping
from kumulus.provider.resources.base import Operation, Properties, known
from kumulus.provider.resources.in_cluster import DRIFT, LOOK_PATIENCE, PLACE, WORK_PATIENCE, InClusterResource, drifted
from kumulus.provider.values import contains_unknown

if TYPE_CHECKING:
    from kumulus.kube import Client

_TOKEN_S = 60.0
_CONNECT_S = 60.0
_LOOK_EVERY = 0.2
_MADE = "made"
_QUEUE = (
    Property("queue", STRING, "What the LocalQueue and its ClusterQueue are called.", required=True),
    Property("namespaces", listing(STRING), "Where the LocalQueue is.", required=True),
    Property("quota", STRINGS, "What its Jobs may have together, by resource.", required=True),
    Property("kueueNamespace", STRING, "Where Kueue is; `kueue-system` when not given."),
)


class _Member(InClusterResource):
    """A cluster of a federation: a set of objects in it."""

    role: ClassVar[str]
    outputs: ClassVar = (Property(_MADE, listing(STRING), "Addresses of what was made."), DRIFT)

    def title(self, properties: Properties) -> str:
        return f"{self.role} {properties.get('clusterName')}"

    def id_of(self, inputs: Properties) -> str:
        return f"{known(inputs, 'clusterName')}/{self.role}/{known(inputs, 'queue')}"

    @abstractmethod
    async def wanted(self, inputs: Properties, patience: float, *, whole: bool) -> list[Manifest]:
        """The objects; with ``whole``, what cannot be read at the moment is an error, otherwise it is left out."""

    async def previewed(self, op: Operation, inputs: Properties, old: Properties | None) -> Properties:
        if not contains_unknown(inputs):
            op.report.info(self.described(inputs))
        if old is not None and (drift := old.get("drift")):
            op.report.info("drift to repair: " + "; ".join(f"{key}: {what}" for key, what in drift.items()))
        return {**inputs, _MADE: (old or {}).get(_MADE, [])}

    @abstractmethod
    def described(self, inputs: Properties) -> str:
        """A description of what is wanted, for users."""

    async def make(self, op: Operation, resource_id: str, inputs: Properties, old: Properties | None) -> Properties:
        before: list[str] = list((old or {}).get(_MADE) or [])
        with self.needing_cluster(inputs):
            client = await self.client(inputs, WORK_PATIENCE)
            await self._require_kueue(client, inputs)
            wanted = await self.wanted(inputs, WORK_PATIENCE, whole=True)
            owner = self.owner(op, inputs, old)
            seen = await declared.look(client, wanted, owner, recorded=before)
        declared.refuse(seen)
        made = [address(each) for each in wanted]
        try:
            await declared.converge(client, wanted, owner, seen)
            await self.settled(op, client, inputs)
        except UNASKED as error:
            outputs = {**inputs, _MADE: [*dict.fromkeys([*before, *made])], "drift": {"missing": "not all was made"}}
            message = f"{self.title(inputs)}: {_explained(error)}"
            raise PartialFailure(message, resource_id, outputs, []) from None
        return {**inputs, _MADE: made}

    async def settled(self, op: Operation, client: Client, inputs: Properties) -> None:
        """Wait until what was made works."""

    async def look(self, op: Operation, outputs: Properties, inputs: Properties) -> Properties | None:
        client = await self.client(inputs, LOOK_PATIENCE)
        wanted = await self.wanted(inputs, LOOK_PATIENCE, whole=False)
        before: list[str] = list(outputs.get(_MADE) or [])
        owner = self.owner(op, inputs, outputs)
        seen = await declared.look(client, wanted, owner, recorded=before, patience=LOOK_PATIENCE)
        if len(seen.missing) == len(wanted):
            return None
        drift = seen.drift() | ({"taken": ", ".join(seen.foreign)} if seen.foreign else {})
        kept = {key: value for key, value in outputs.items() if key != "drift"}
        return drifted({**kept, **inputs, _MADE: before}, drift)

    async def remove(self, op: Operation, outputs: Properties) -> None:
        client = await self.client(outputs, WORK_PATIENCE)
        await declared.remove(client, outputs.get(_MADE) or [], self.owner(op, outputs))

    async def _require_kueue(self, client: Client, inputs: Properties) -> None:
        kinds: set[str] = set()
        with tolerating(404):
            served = await client.get(f"/apis/{federation.API}")
            kinds = {each["kind"] for each in served["resources"]}
        if "MultiKueueCluster" not in kinds:
            raise ProviderError(
                f"{self.title(inputs)} has no Kueue ({federation.API} is not served); install it there, as by an entry "
                "of clusterAddons, or take a cluster of the runtime kwok, which runs it as a local process"
            )


class FederationWorker(_Member):
    """A cluster that runs the Jobs of a hub: what the hub needs in it."""

    token: ClassVar[str] = "kumulus:index:FederationWorker"
    role: ClassVar[str] = "worker"
    inputs: ClassVar = (*PLACE, Property("hub", STRING, "The hub's name.", required=True, replaces=True), *_QUEUE)

    def described(self, inputs: Properties) -> str:
        """See :meth:`_Member.described`."""
        return f"worker of {inputs['hub']}: queue {inputs['queue']} with {_quota(inputs)}"

    async def wanted(self, inputs: Properties, patience: float, *, whole: bool) -> list[Manifest]:
        """See :meth:`_Member.wanted`."""
        return federation.worker(str(known(inputs, "hub")), _queue(inputs))


class FederationHub(_Member):
    """A cluster that queues Jobs and gives them to workers."""

    token: ClassVar[str] = "kumulus:index:FederationHub"
    role: ClassVar[str] = "hub"
    inputs: ClassVar = (
        *PLACE,
        Property(
            "workers",
            mapping(STRINGS),
            "The workers by name: the `kubeconfig` by which this machine reaches each, and its `clusterIdentity`.",
            required=True,
        ),
        *_QUEUE,
    )

    def described(self, inputs: Properties) -> str:
        """See :meth:`_Member.described`."""
        workers = ", ".join(inputs["workers"])
        return f"hub of {workers}: queue {inputs['queue']} with {_quota(inputs)}"

    async def wanted(self, inputs: Properties, patience: float, *, whole: bool) -> list[Manifest]:
        """See :meth:`_Member.wanted`; the token of a worker that does not answer is not compared."""
        workers: Mapping[str, Mapping[str, str]] = known(inputs, "workers")
        found = await asyncio.gather(*(self._kubeconfig(inputs, name, patience, whole=whole) for name in workers))
        texts = dict(zip(workers, found, strict=True))
        made = federation.hub({name: text or "" for name, text in texts.items()}, _queue(inputs))
        silent = {federation.secret_name(name) for name, text in texts.items() if text is None}
        return [
            {key: value for key, value in each.items() if key != "data"}
            if each["kind"] == "Secret" and each["metadata"]["name"] in silent
            else each
            for each in made
        ]

    async def _kubeconfig(self, inputs: Properties, name: str, patience: float, *, whole: bool) -> str | None:
        worker = inputs["workers"][name]
        path = (
            f"/api/v1/namespaces/{inputs.get('kueueNamespace') or NAMESPACE}/secrets/"
            f"{federation.account(str(known(inputs, 'clusterName')))}"
        )
        give_up = time.monotonic() + (_TOKEN_S if whole else 0.0)
        try:
            client = await self._connections.client(worker["kubeconfig"], worker["clusterIdentity"], patience)
            while True:
                data = (await client.get(path, patience=patience)).get("data") or {}
                if {"token", "ca.crt"} <= data.keys():
                    return federation.kubeconfig(name, client.connection.server, data)
                if time.monotonic() > give_up:
                    break
                await asyncio.sleep(_LOOK_EVERY)
        except UNASKED as error:
            if not whole:
                return None
            raise ProviderError(f"worker {name}: {_explained(error)}") from None
        if not whole:
            return None
        raise ProviderError(
            f"worker {name}: the cluster wrote no token into {path} in {_TOKEN_S:.0f} s; see that its "
            "kube-controller-manager runs, and run this again"
        )

    async def settled(self, op: Operation, client: Client, inputs: Properties) -> None:
        """See :meth:`_Member.settled`: waits a limited time until the hub is connected with its workers."""
        give_up = time.monotonic() + _CONNECT_S
        while not op.stop.is_set():
            states = await asyncio.gather(*(_state(client, name) for name in inputs["workers"]))
            waiting = {name: why for name, why in zip(inputs["workers"], states, strict=True) if why}
            if not waiting:
                return
            op.report.status(f"connecting with {', '.join(waiting)}")
            if time.monotonic() > give_up:
                for name, why in waiting.items():
                    op.report.warn(f"the hub is not connected with {name}: {why}; Kueue keeps trying")
                return
            await asyncio.sleep(_LOOK_EVERY)


async def _state(client: Client, worker: str) -> str:
    """Why a hub is not connected with a worker; empty when it is."""
    found = await client.get(f"/apis/{federation.API}/multikueueclusters/{worker}")
    for each in found.get("status", {}).get("conditions") or []:
        if each["type"] == "Active":
            return "" if each["status"] == "True" else f"{each.get('reason')}: {each.get('message')}"
    return "Kueue has not looked at it"


def _queue(inputs: Properties) -> Queue:
    namespaces: Sequence[str] = known(inputs, "namespaces")
    quota: Mapping[str, Any] = known(inputs, "quota")
    namespace = str(inputs.get("kueueNamespace") or NAMESPACE)
    return Queue(str(known(inputs, "queue")), namespaces, {name: str(each) for name, each in quota.items()}, namespace)


def _quota(inputs: Properties) -> str:
    return ", ".join(f"{name} {amount}" for name, amount in inputs["quota"].items()) or "no resources"


def _explained(error: Exception) -> str:
    if isinstance(error, ApiError) and error.status == 403:
        return (
            f"{error}; the account of its kubeconfig has to be allowed that: a federation makes a service account, "
            "roles and Kueue's queues in the cluster"
        )
    return str(error)

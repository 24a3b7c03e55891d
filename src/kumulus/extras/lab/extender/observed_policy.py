"""A policy whose scores are shown next to kube-scheduler's and decide nothing.

kube-scheduler is answered at once, with all nodes. The policy's scores are computed later, pod by pod in the order in
which kube-scheduler asked, and for the cluster as it was then: with the pods on their nodes that kube-scheduler had
decided on before.
"""

import asyncio
import random
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

from kumulus.extras.lab.extender.column import PolicyColumn
from kumulus.extras.lab.extender.ledger import Accounting, NodeLedger
from kumulus.extras.lab.offline.placing import EmptyNode, PodPlacement
from kumulus.extras.lab.policies import Pod
from kumulus.extras.lab.policies.fragmentation import typical_kinds
from kumulus.extras.lab.policies.load import Policy, PolicyFailed
from kumulus.kube import ApiError, Unreachable

# For how many seconds a pod that kube-scheduler asked about, but did not bind, delays the pods after it.
_PATIENCE = 10.0


@dataclass
class _Waiting:
    """A pod that kube-scheduler asked about; its node is empty until the cluster reports it."""

    pod: Pod
    name: str
    nodes: Sequence[str]
    since: float
    node: str = ""


class ObservedPolicy(Accounting):
    """Answers kube-scheduler in each repetition, and keeps a policy's scores of its choices.

    Args:
        refresh: lists the cluster's nodes; called when an unknown one is named.
    """

    def __init__(
        self,
        policy: Policy,
        *,
        limit: float,
        product_label: str,
        refresh: Callable[[], Awaitable[list[EmptyNode]]],
        keep: Callable[[PolicyColumn], None],
    ) -> None:
        super().__init__(policy, "name", limit, product_label, refresh)
        self._keep = keep
        self._waiting: dict[str, _Waiting] = {}
        self._gone: list[str] = []
        self._elsewhere: list[tuple[str, str, Callable[[], Pod]]] = []
        self._wake = asyncio.Event()
        self._lock = asyncio.Lock()
        self._task: asyncio.Task[None] | None = None

    def begin(self, machines: Sequence[EmptyNode], typical: Sequence[Pod], source: random.Random) -> None:
        """Begin a repetition, with no pods and no requests so far."""
        self._waiting.clear()
        self._gone.clear()
        self._elsewhere.clear()
        self._begun(NodeLedger(machines), typical_kinds(typical), source)
        if self._task is None:
            self._task = asyncio.create_task(self._work())

    async def filter(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """Answer kube-scheduler with all nodes."""
        pod, uid, names = self._asked(arguments)
        # A pod that is asked about again moves behind all others.
        self._waiting.pop(uid, None)
        name = f"{arguments['Pod']['metadata']['namespace']}/{pod.name}"
        self._waiting[uid] = _Waiting(pod, name, names, time.monotonic())
        return {"NodeNames": names, "FailedNodes": {}, "Error": ""}

    def seen(self, uid: str, node: str, over: bool, pod: Callable[[], Pod]) -> None:
        """Take the cluster's report of where a pod is.

        Args:
            node: where it is bound; empty while it is not.
            over: whether it has ended or is gone.
            pod: gives what it asks for.
        """
        waiting = self._waiting.get(uid)
        if over:
            self._gone.append(uid)
            if waiting is not None and not waiting.node:
                del self._waiting[uid]
        elif node and waiting is not None:
            waiting.node = node
        elif node and uid not in self.ledger.reservations:
            self._elsewhere.append((uid, node, pod))
        self._wake.set()

    async def settle(self) -> None:
        """Keep the remaining columns, at the end of a repetition."""
        await self._done(patience=0.0)

    async def close(self) -> None:
        """Stop, and release the policy's thread."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        self._caller.close()

    async def _work(self) -> None:
        while True:
            with suppress(TimeoutError):
                async with asyncio.timeout(_PATIENCE):
                    await self._wake.wait()
            self._wake.clear()
            await self._done(_PATIENCE)

    async def _done(self, patience: float) -> None:
        """Keep the columns of the pods whose nodes are known, up to the first pod whose node is not."""
        async with self._lock:
            while self._waiting:
                uid, first = next(iter(self._waiting.items()))
                if not first.node and time.monotonic() - first.since < patience:
                    break
                del self._waiting[uid]
                self._heed()
                if first.node:
                    await self._one(uid, first)
            self._heed()

    def _heed(self) -> None:
        """Account for pods that were bound without a request, and for pods that are gone."""
        elsewhere, self._elsewhere = self._elsewhere, []
        for uid, node, pod in elsewhere:
            number = self.ledger.number(node)
            if number is not None and uid not in self.ledger.reservations:
                wants = pod()
                self._reserve(uid, wants, self.ledger.anywhere_on(wants, number))
        # A pod that is gone is kept until the policy has scored the nodes for it.
        gone, self._gone = self._gone, []
        for uid in gone:
            if uid in self._waiting:
                self._gone.append(uid)
            elif (changed := self.ledger.release(uid)) is not None:
                self._placer.changed(changed)

    async def _one(self, uid: str, asked: _Waiting) -> None:
        among, known = self.ledger.among(asked.nodes)
        if not known:
            with suppress(ApiError, Unreachable):
                await self._grown()
            among, _ = self.ledger.among(asked.nodes)
        about = PolicyColumn(asked.name, self.policy.name, False, len(asked.nodes), node=asked.node)
        number = self.ledger.number(asked.node)
        try:
            scored = await self._called(lambda: self._placer.scored(asked.pod, among))
        except PolicyFailed as error:
            self._keep(replace(about, failure=str(error)))
            if number is not None:
                self._reserve(uid, asked.pod, self.ledger.anywhere_on(asked.pod, number))
            return
        if number is None:
            return
        self._keep(replace(about, fitting=len(scored.nodes), **scored.about(number, self.ledger.name)))
        where = self.ledger.anywhere_on(asked.pod, number)
        if number in scored.nodes:
            with suppress(PolicyFailed):
                where = await self._called(lambda: self._placer.on(asked.pod, number))
        self._reserve(uid, asked.pod, where)

    def _reserve(self, uid: str, pod: Pod, where: PodPlacement) -> None:
        self.ledger.reserve(uid, pod, where, True)
        self._placer.changed(where.node)

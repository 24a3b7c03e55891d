"""An extender's side of scheduling: which nodes a policy allows for a pod, and where the pod went."""

import asyncio
import random
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from kumulus.extras.lab.extender.column import PolicyColumn
from kumulus.extras.lab.extender.ledger import Accounting, NodeLedger
from kumulus.extras.lab.measure.statistics import spread
from kumulus.extras.lab.offline.placing import EmptyNode, PodPlacement, Ties
from kumulus.extras.lab.policies import Pod
from kumulus.extras.lab.policies.fragmentation import typical_kinds
from kumulus.extras.lab.policies.load import FittingNodes, Policy, PolicyFailed

# Seconds that kube-scheduler has to choose among equally good nodes and to report its choice.
_CHOICE = 5.0


@dataclass
class ExtenderResult:
    """What an extender did in a repetition."""

    asked: int = 0
    failed: int = 0
    failure: str = ""
    """The message of the first failure; empty if there is none."""
    elsewhere: int = 0
    """Pods that were bound to a node other than the chosen one."""
    seconds: list[float] = field(default_factory=list)
    places: dict[str, list[tuple[str, tuple[int, ...]]]] = field(default_factory=dict)
    """The node and the GPUs of each pod that was bound, by its job."""

    def took(self) -> dict[str, float]:
        """The spread of the answers' durations, in seconds."""
        return spread(self.seconds)


@dataclass
class _Choice:
    """Equally good nodes; kube-scheduler takes one of them."""

    uid: str
    pod: Pod
    made: asyncio.Event


class Extender(Accounting):
    """Answers kube-scheduler in each repetition.

    Args:
        policy: the one that decides; if it leaves the choice to kube-scheduler, it only says where there is room.
        ties: whether the first of equally good nodes is chosen, in the seed's order, or kube-scheduler draws one.
        on_failure: whether a policy that fails ends the run, or leaves its pod without a node.
        refresh: lists the cluster's nodes; called when an unknown one is named.
        now: a clock in seconds, which times the answers.
        keep: takes the policy's scores of each pod's nodes; None if they are not kept.
    """

    def __init__(
        self,
        policy: Policy,
        *,
        ties: Ties,
        on_failure: Literal["end", "skip"],
        limit: float,
        product_label: str,
        refresh: Callable[[], Awaitable[list[EmptyNode]]],
        now: Callable[[], float],
        keep: Callable[[PolicyColumn], None] | None = None,
    ) -> None:
        super().__init__(policy, ties, limit, product_label, refresh)
        self._on_failure, self._now, self._keep = on_failure, now, keep
        self._lock = asyncio.Lock()
        self._choice: _Choice | None = None
        self._chosen = ("", "")
        self.ended = ""
        self.done = ExtenderResult()
        self._news: list[Callable[[], None]] = []

    def begin(self, machines: Sequence[EmptyNode], typical: Sequence[Pod], source: random.Random) -> None:
        """Begin a repetition, with no pods and no requests so far.

        Args:
            machines: the cluster's nodes, by name; the seed reorders them.
            typical: the pods to be expected.
            source: of random numbers, as it is after the stream of pods was drawn.
        """
        shuffled = list(machines)
        source.shuffle(shuffled)
        self._choice, self.ended, self.done = None, "", ExtenderResult()
        self._news.clear()
        self._begun(NodeLedger(shuffled), typical_kinds(typical), source)

    def close(self) -> None:
        """Release the policy's thread."""
        self._caller.close()

    async def filter(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """Answer kube-scheduler with those of its remaining nodes that the policy chooses."""
        began = self._now()
        async with self._lock:
            pod, uid, names = self._asked(arguments)
            self.done.asked += 1
            try:
                best = await self._best(uid, pod, names, arguments["Pod"]["metadata"].get("namespace", ""))
            except PolicyFailed as error:
                return self._failed(str(error))
            finally:
                self.done.seconds.append(self._now() - began)
        return _answer([self.ledger.name(number) for number in best])

    def seen(self, uid: str, job: str, node: str, over: bool, pod: Callable[[], Pod]) -> None:
        """Take the cluster's report of where a pod is.

        Args:
            node: where it is bound; empty while it is not.
            over: whether it has ended or is gone.
            pod: gives what it asks for.
        """
        if self._choice is not None and self._choice.uid == uid and node:
            # The policy chooses the pod's GPU in its own thread, before the next answer.
            self._chosen = (job, node)
            self._choice.made.set()
            if not over:
                return
        self._news.append(lambda: self._take_news(uid, job, node, over, pod))
        # While the policy computes, the state that it reads must not change; and a pod gets its GPU before it ends.
        if self._choice is None and not self._lock.locked():
            self._heed()

    def _heed(self) -> None:
        while self._news:
            self._news.pop(0)()

    def _take_news(self, uid: str, job: str, node: str, over: bool, pod: Callable[[], Pod]) -> None:
        if over:
            self._changed(self.ledger.release(uid))
            return
        reserved, number = self.ledger.reservations.get(uid), self.ledger.number(node)
        if number is None or (reserved is not None and reserved.seen):
            return
        if reserved is not None and reserved.where.node == number:
            self.ledger.reservations[uid] = replace(reserved, seen=True)
            self.done.places.setdefault(job, []).append((node, reserved.where.gpus))
            return
        self.done.elsewhere += reserved is not None
        wants = pod()
        self._reserve(uid, job, wants, self.ledger.anywhere_on(wants, number), seen=True)

    async def _best(self, uid: str, pod: Pod, names: Sequence[str], namespace: str) -> Sequence[int]:
        await self._settled()
        self._heed()
        self._changed(self.ledger.release(uid))
        among, known = self.ledger.among(names)
        if not known:
            await self._grown()
            among, _ = self.ledger.among(names)
        scored: FittingNodes = await self._called(lambda: self._placer.scored(pod, among))
        found = [int(number) for number in scored.best()]
        if self._ties == "name" and not self.policy.leaves:
            found = found[:1]
        if found and self._keep is not None and not self.policy.leaves:
            self._keep(self._column(f"{namespace}/{pod.name}", len(names), scored, found))
        if len(found) == 1:
            where = await self._called(lambda: self._placer.on(pod, found[0]))
            self._reserve(uid, "", pod, where, seen=False)
        elif found:
            self._choice = _Choice(uid, pod, asyncio.Event())
        return found

    def _column(self, pod: str, offered: int, scored: FittingNodes, found: Sequence[int]) -> PolicyColumn:
        name = self.ledger.name
        # kube-scheduler draws one of several equally good nodes.
        node = name(found[0]) if len(found) == 1 else ""
        about = scored.about(found[0], name)
        return PolicyColumn(pod, self.policy.name, True, offered, len(scored.nodes), node, **about)

    async def _settled(self) -> None:
        """Wait for kube-scheduler's last choice among equally good nodes, as it changes what is free now."""
        choice = self._choice
        if choice is None:
            return
        try:
            async with asyncio.timeout(_CHOICE):
                await choice.made.wait()
        except TimeoutError:
            self._choice = None
            return
        job, node = self._chosen
        self._choice = None
        number = self.ledger.number(node)
        if number is None:
            return
        try:
            where = await self._called(lambda: self._placer.on(choice.pod, number))
        except PolicyFailed as error:
            self._failed(str(error))
            where = self.ledger.anywhere_on(choice.pod, number)
        self._reserve(choice.uid, job, choice.pod, where, seen=True)

    async def settle(self) -> None:
        """Take the last choice into account, at the end of a repetition."""
        async with self._lock:
            if self._choice is not None and self._choice.made.is_set():
                await self._settled()
            self._heed()

    def _failed(self, why: str) -> dict[str, Any]:
        self.done.failed += 1
        self.done.failure = self.done.failure or why
        if self._on_failure == "end":
            # The traceback is in `done`, and shown only once.
            self.ended = self.ended or f"the policy failed: {why.splitlines()[0]}"
            return {"Error": "the policy failed, which ends the experiment's run"}
        return _answer([])

    def _reserve(self, uid: str, job: str, pod: Pod, where: PodPlacement, *, seen: bool) -> None:
        self._changed(self.ledger.release(uid))
        self.ledger.reserve(uid, pod, where, seen)
        self._changed(where.node)
        if seen:
            self.done.places.setdefault(job, []).append((self.ledger.name(where.node), where.gpus))

    def _changed(self, node: int | None) -> None:
        if node is not None:
            self._placer.changed(node)


def _answer(names: Sequence[str]) -> dict[str, Any]:
    return {"NodeNames": list(names), "FailedNodes": {}, "Error": ""}

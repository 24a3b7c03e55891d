"""What resources in a cluster have in common.

That is: where the cluster is, checks of inputs, drift, and the outcome of each operation when the cluster is gone, does
not answer, or only part of the work was done.
"""

from __future__ import annotations

import asyncio
from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from kumulus.kube import KubeconfigError
from kumulus.model.identity import Owner
from kumulus.model.plain import UNKNOWN
from kumulus.nodes.errors import PartialFailure, ProviderError
from kumulus.nodes.ownership import NotOurs
from kumulus.provider.connections import GONE, SILENT, UNASKED, Connections, WrongCluster
from kumulus.provider.properties import BOOLEAN, STRING, STRINGS, Property
from kumulus.provider.resources.base import InputFailure, Operation, Properties, ReadResult, Resource, known, why_ended
from kumulus.provider.resources.diffing import PropertyDifference
from kumulus.runtimes.directories import no_room
from kumulus.runtimes.existing.source import GONE_FOR_GOOD, outlives_by_note

if TYPE_CHECKING:
    from kumulus.kube import Client

STACK_ID = Property(
    "stackId",
    STRING,
    "Identity of the owning stack: everything it creates carries it, and it changes nothing that another stack owns.",
)
OUTLIVES = Property(
    "clusterOutlivesStack",
    BOOLEAN,
    "Whether the cluster is there before the stack and after it: that it is not found does not mean that it is gone.",
)
PLACE = (
    Property("kubeconfig", STRING, "Path of the cluster's kubeconfig file.", required=True),
    Property(
        "clusterIdentity",
        STRING,
        "UID of the cluster's kube-system namespace: another one is another cluster.",
        required=True,
        replaces=True,
    ),
    Property("clusterName", STRING, "The cluster's name.", required=True, replaces=True),
    STACK_ID,
    OUTLIVES,
)
PLACE_KEYS = tuple(each.name for each in PLACE)
DRIFT = Property("drift", STRINGS, "What a refresh found not to be as wanted, by where; absent when all is well.")
# A preview or a refresh does not wait long for a cluster that is down: it reports that and continues.
LOOK_PATIENCE = 3.0
WORK_PATIENCE = 30.0
_LOOK_EVERY = 0.5
# With fewer nodes, the work is done before the way could be cleared for it.
_MANY = 100
ClearWay = Callable[[str], AbstractContextManager[object]]


class InClusterResource(Resource):
    """A resource in a cluster; the inputs of :data:`PLACE`, which come first, say in which.

    What is in a cluster that is gone is gone with it: it is not found, and its removal is done. While a cluster is
    silent, what is recorded stands, and what was to be done is refused. What was done in part is recorded as a
    :class:`kumulus.nodes.errors.PartialFailure` by :meth:`make`. What the stack still declares is not removed but put
    right: see docs/decisions/replacements.md. Each resource says what is its own: :meth:`title`, :meth:`place_of`,
    :meth:`previewed`, :meth:`make`, :meth:`look` and :meth:`remove`.
    """

    silent: ClassVar[tuple[type[Exception], ...]] = SILENT
    """What :meth:`look` raises when what is there could not be seen."""

    def __init__(self, connections: Connections, clear_way: ClearWay = nullcontext) -> None:
        """Serve it, with what to do while many requests go to the API server of a kubeconfig."""
        self._connections = connections
        self._clear_way = clear_way
        # Inputs of what the stack declares now, by URN.
        self._declared: dict[str, Properties] = {}

    async def declare(self, urn: str, old_inputs: Properties, inputs: Properties) -> None:
        self._declared[urn] = inputs

    def cleared_way(self, properties: Properties, nodes: int) -> AbstractContextManager[object]:
        """Clear the way for requests about this many nodes."""
        return self._clear_way(str(properties["kubeconfig"])) if nodes >= _MANY else nullcontext()

    @classmethod
    def input_failures(cls, inputs: Properties) -> list[InputFailure]:
        """See :meth:`Resource.input_failures`; also checks the types of the inputs in :data:`PLACE`."""
        found = super().input_failures(inputs)
        for each in PLACE:
            value = inputs.get(each.name)
            kind = bool if each is OUTLIVES else str
            if value is not None and value is not UNKNOWN and not isinstance(value, kind):
                found.append(InputFailure(each.name, f"{value!r} is not a {each.type['type']}"))
        return found

    def diff(self, old_outputs: Properties, inputs: Properties) -> list[PropertyDifference]:
        """See :meth:`Resource.diff`: outputs are what exists, so drift found by a read is a difference."""
        # OUTLIVES follows from the cluster: that it was not recorded is no reason for an update.
        found = [each for each in super().diff(old_outputs, inputs) if each.path != OUTLIVES.name]
        drift = old_outputs.get("drift")
        if isinstance(drift, Mapping):
            found += [PropertyDifference(f"drift.{key}", "delete") for key in drift]
        elif drift:
            found.append(PropertyDifference("drift", "delete"))
        return found

    @abstractmethod
    def title(self, properties: Properties) -> str:
        """Its name in messages, such as ``pool a100``."""

    def unlooked(self, properties: Properties) -> str:
        """The beginning of the message "… not looked at"."""
        return f"{self.title(properties)} was"

    def id_of(self, inputs: Properties) -> str:
        """Its id."""
        return f"{known(inputs, 'clusterName')}/{known(inputs, 'name')}"

    def place_of(self, properties: Properties) -> tuple[object, ...]:
        """Which thing in its cluster it is: resources with the same place, or without any name, are about the same."""
        return (properties.get("name"),)

    def failed(self, properties: Properties, error: Exception) -> ProviderError:
        """The failure of an operation that needs the cluster; nothing was done."""
        return ProviderError(f"{self.title(properties)}: {error}")

    @contextmanager
    def needing_cluster(self, properties: Properties) -> Iterator[None]:
        """Run a block that needs the cluster."""
        try:
            yield
        except UNASKED as error:
            raise self.failed(properties, error) from None

    @contextmanager
    def previewing_name(self, op: Operation, inputs: Properties, remedy: str) -> Iterator[None]:
        """Run a preview's look at who has the name: another owner's object is refused; nobody to ask is a warning."""
        try:
            yield
        except NotOurs as error:
            raise ProviderError(f"{error}; {remedy}") from None
        except UNASKED as error:
            op.report.warn(f"{self.title(inputs)}: whether its name is free is not known: {error}")

    async def previewed(self, op: Operation, inputs: Properties, old: Properties | None) -> Properties:
        """Report what a preview has to report; returns the outputs as far as it knows them."""
        return inputs

    @abstractmethod
    async def make(self, op: Operation, resource_id: str, inputs: Properties, old: Properties | None) -> Properties:
        """Change what exists into what is wanted; returns the outputs."""

    async def settle(self, op: Operation, outputs: Properties) -> None:
        """Do what comes once it is made; raises TimeoutError when the user's time is over."""

    @abstractmethod
    async def look(self, op: Operation, outputs: Properties, inputs: Properties) -> Properties | None:
        """The outputs as they are; None when the resource does not exist."""

    @abstractmethod
    async def remove(self, op: Operation, outputs: Properties) -> None:
        """Remove it; not finding it is success."""

    async def create(self, op: Operation, inputs: Properties) -> tuple[str, Properties]:
        if op.preview:
            return "", await self.previewed(op, inputs, None)
        resource_id = self.id_of(inputs)
        return resource_id, await self._made(op, resource_id, inputs, None)

    async def update(self, op: Operation, resource_id: str, old_outputs: Properties, inputs: Properties) -> Properties:
        if op.preview:
            return await self.previewed(op, inputs, old_outputs)
        return await self._made(op, resource_id, inputs, old_outputs)

    async def _made(self, op: Operation, resource_id: str, inputs: Properties, old: Properties | None) -> Properties:
        outputs = await self.make(op, resource_id, inputs, old)
        try:
            await self.settle(op, outputs)
        except (TimeoutError, *UNASKED) as error:
            reason = why_ended(op) if isinstance(error, TimeoutError) else error
            raise PartialFailure(str(self.failed(outputs, ProviderError(str(reason)))), resource_id, outputs) from None
        return outputs

    async def read(self, op: Operation, resource_id: str, outputs: Properties, inputs: Properties) -> ReadResult | None:
        try:
            found = await self.look(op, outputs, inputs)
        except GONE:
            return None
        except self.silent as error:
            op.report.warn(f"{self.unlooked(inputs)} not looked at: {error}")
            return ReadResult(resource_id, outputs, inputs)
        return None if found is None else ReadResult(resource_id, found, inputs)

    async def delete(self, op: Operation, resource_id: str, outputs: Properties) -> None:
        """See :meth:`Resource.delete`; what now belongs to somebody else is left alone.

        What the stack still declares, under this URN or another one, is updated instead, from what is recorded here.
        Pulumi asks for that if it replaces a resource for another reason than a change of its place, and if a resource
        gets another URN; which of the two comes first, the new one or the end of the old one, makes no difference.
        """
        if (declared := self._still_declared(op.urn, outputs)) is not None:
            await self._put_right(op, resource_id, declared, outputs)
            return
        # If nothing else changed, OUTLIVES is only in the recorded inputs, not in the outputs.
        if OUTLIVES.name in op.old_inputs:
            outputs = {**outputs, OUTLIVES.name: op.old_inputs[OUTLIVES.name]}
        try:
            await self._removed(op, outputs)
        except GONE:
            return
        except NotOurs as error:
            op.report.warn(f"{error}; it is left alone")
        except (ProviderError, *SILENT) as error:
            if await self._is_gone(outputs):
                return
            raise error if isinstance(error, ProviderError) else self.failed(outputs, error) from None

    async def _removed(self, op: Operation, outputs: Properties) -> None:
        """Remove it; ends early if its cluster goes meanwhile, as the requests would wait until they are given up.

        Of an imported resource, Pulumi does not know that it is in its cluster, and deletes both at once.
        """
        removal = asyncio.ensure_future(self.remove(op, outputs))
        try:
            while not (await asyncio.wait([removal], timeout=_LOOK_EVERY))[0]:
                if _has_gone(outputs):
                    return
            await removal
        finally:
            removal.cancel()

    async def _is_gone(self, outputs: Properties) -> bool:
        try:
            await self.client(outputs, LOOK_PATIENCE)
        except GONE:
            return True
        except (ProviderError, *SILENT):
            pass
        return False

    def _still_declared(self, urn: str, outputs: Properties) -> Properties | None:
        """The inputs with which the stack declares what it has on record; None if it declares it no more.

        Several resources may be about the same thing: the one of this URN decides, or else the last one.
        """
        place = self._whereabouts(outputs)
        found = {each: inputs for each, inputs in self._declared.items() if self._whereabouts(inputs) == place}
        if not found:
            return None
        return found[urn] if urn in found else [*found.values()][-1]

    def _whereabouts(self, properties: Properties) -> tuple[object, ...]:
        """Which thing in which cluster it is; see :meth:`place_of`."""
        # As text, whatever a state that was edited by hand has there.
        return (str(properties.get("clusterIdentity")), *self.place_of(properties))

    async def _put_right(self, op: Operation, resource_id: str, declared: Properties, outputs: Properties) -> None:
        op.report.info(f"{self.title(declared)} stays, as the stack still declares it")
        try:
            await self._made(op, resource_id, declared, outputs)
        except PartialFailure as failure:
            # Pulumi records no outputs of what it deletes; the next update goes on from the recorded ones.
            raise ProviderError("\n  ".join(failure.reasons)) from None

    @staticmethod
    def owner(op: Operation, properties: Properties, old: Properties | None = None) -> Owner:
        """The stack, as the owner that its objects in the cluster are marked with; `old` is what it has on record."""
        return Owner(str(properties.get(STACK_ID.name) or ""), stack_of(op.urn), recorded_owner(old) or "")

    async def client(self, properties: Properties, patience: float) -> Client:
        """A client of the cluster.

        Raises:
            WrongCluster: another cluster answers there, in place of one that is gone.
        """
        kubeconfig, identity = str(known(properties, "kubeconfig")), str(known(properties, "clusterIdentity"))
        try:
            return await self._connections.client(kubeconfig, identity, patience)
        except KubeconfigError as error:
            if not outlives_stack(properties):
                raise
            raise ProviderError(f"{error}; `pulumi refresh` writes this machine's copy of it") from None
        except WrongCluster as error:
            if not outlives_stack(properties):
                raise
            raise ProviderError(f"{error}; nothing was changed; {GONE_FOR_GOOD}") from None


def recorded_owner(outputs: Properties | None) -> str | None:
    """The identity that a resource is recorded with; empty if it has none, None before it is made."""
    return None if outputs is None else str(outputs.get(STACK_ID.name) or "")


def drifted(properties: Properties, drift: object) -> Properties:
    """Outputs with the drift, if there is any."""
    return {**properties, "drift": drift} if drift else properties


def stack_of(urn: str) -> str:
    """The display name ``<project>/<stack>`` of a URN's stack; a URN is ``urn:pulumi:<stack>::<project>::…``."""
    stack, _, rest = urn.removeprefix("urn:pulumi:").partition("::")
    project = rest.partition("::")[0]
    return f"{project}/{stack}"


def outlives_stack(properties: Properties) -> bool:
    """Whether a resource's cluster exists before and after its stack, by its properties or the kubeconfig's note."""
    outlives = properties.get(OUTLIVES.name)
    if isinstance(outlives, bool):
        return outlives
    return outlives_by_note(Path(str(properties.get("kubeconfig"))))


def _has_gone(properties: Properties) -> bool:
    return not outlives_stack(properties) and not Path(str(properties.get("kubeconfig"))).exists()


def disk_full(properties: Properties) -> str:
    """The message if a cluster on this machine has too little room on its disk to continue; empty otherwise."""
    return "" if outlives_stack(properties) else no_room(Path(str(properties.get("kubeconfig"))).parent)


def with_remedy(failure: ProviderError, properties: Properties) -> ProviderError:
    """A failure with a remedy for a cluster that does not answer."""
    if outlives_stack(properties):
        return ProviderError(f"{failure}; when it answers, run this again; {GONE_FOR_GOOD}")
    if full := disk_full(properties):
        return ProviderError(f"{failure}; {full}")
    return ProviderError(f"{failure}; `pulumi up --refresh` brings a cluster back that is down")

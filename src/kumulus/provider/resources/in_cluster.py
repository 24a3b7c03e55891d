"""What the resources have in common that live in a cluster: where it is, what is asked of their inputs, and drift."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING

from kumulus.cluster.errors import ProviderError
from kumulus.kube import KubeconfigError
from kumulus.model.identity import Owner
from kumulus.model.unknown import UNKNOWN
from kumulus.provider.connections import Connections, WrongCluster
from kumulus.provider.properties import STRING, STRINGS, Property
from kumulus.provider.resources.base import Difference, Failure, Operation, Properties, Resource, known
from kumulus.provider.resources.diffing import differences
from kumulus.runtimes.existing.copy import is_copy
from kumulus.runtimes.existing.refusals import GONE_FOR_GOOD

if TYPE_CHECKING:
    from kumulus.kube import Client

STACK_ID = Property(
    "stackId", STRING, "The identity of the stack whose it is: what is made carries it, and nobody else's is touched."
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
)
PLACE_KEYS = tuple(each.name for each in PLACE)
DRIFT = Property("drift", STRINGS, "What a refresh found not to be as wanted, by where; absent when all is well.")
# A preview or a refresh does not wait long for a cluster that is down: it says so and goes on.
LOOK_PATIENCE = 3.0
WORK_PATIENCE = 30.0
# Fewer nodes than these are done before a way could be cleared for them.
_MANY = 100
ClearWay = Callable[[str], AbstractContextManager[object]]


class InCluster(Resource):
    """A resource in a cluster; the inputs of :data:`PLACE`, which come first, say in which."""

    def __init__(self, connections: Connections, clear_way: ClearWay = nullcontext) -> None:
        """Serve it.

        Args:
            connections: clients by kubeconfig.
            clear_way: what to do while many requests go to the API server of a kubeconfig.
        """
        self._connections = connections
        self._clear_way = clear_way

    def cleared_way(self, properties: Properties, nodes: int) -> AbstractContextManager[object]:
        """Clear the way for requests about this many nodes."""
        return self._clear_way(str(properties["kubeconfig"])) if nodes >= _MANY else nullcontext()

    @classmethod
    def input_failures(cls, inputs: Properties) -> list[Failure]:
        """See :meth:`Resource.input_failures`; and a place that is none."""
        found = super().input_failures(inputs)
        for key in PLACE_KEYS:
            value = inputs.get(key)
            if value is not None and value is not UNKNOWN and not isinstance(value, str):
                found.append(Failure(key, f"{value!r} is not a string"))
        return found

    def diff(self, old_outputs: Properties, inputs: Properties) -> list[Difference]:
        """See :meth:`Resource.diff`: outputs are what is there, so that drift found by a read is a difference."""
        found: list[Difference] = []
        for each in self.inputs:
            found += differences(each.name, old_outputs.get(each.name), inputs.get(each.name), replace=each.replaces)
        drift = old_outputs.get("drift")
        paths = [f"drift.{key}" for key in drift] if isinstance(drift, Mapping) else ["drift"] if drift else []
        return found + [Difference(path, "delete") for path in paths]

    @staticmethod
    def owner(op: Operation, properties: Properties) -> Owner:
        """The stack, as what it makes in the cluster is marked with it."""
        return Owner(str(properties.get(STACK_ID.name) or ""), stack_of(op.urn))

    async def client(self, properties: Properties, patience: float) -> Client:
        """A client of the cluster.

        Args:
            properties: which have its place.
            patience: seconds to keep trying while the server does not answer.

        Raises:
            KubeconfigError: the kubeconfig is missing or cannot be used, and the cluster has gone with it.
            WrongCluster: another cluster answers there, in place of one that is gone.
            ApiError, Unreachable: the server could not be asked.
            ProviderError: the cluster outlives its stacks: that it is not found does not mean that it is gone.
        """
        kubeconfig, identity = str(known(properties, "kubeconfig")), str(known(properties, "clusterIdentity"))
        try:
            return await self._connections.client(kubeconfig, identity, patience)
        except KubeconfigError as error:
            if not is_copy(kubeconfig):
                raise
            raise ProviderError(f"{error}; `pulumi refresh` writes this machine's copy of it") from None
        except WrongCluster as error:
            if not is_copy(kubeconfig):
                raise
            raise ProviderError(f"{error}; nothing was changed; {GONE_FOR_GOOD}") from None


def stack_of(urn: str) -> str:
    """What people call the stack of a URN, ``urn:pulumi:<stack>::<project>::…``: ``<project>/<stack>``."""
    stack, project = [*urn.removeprefix("urn:pulumi:").split("::"), ""][:2]
    return f"{project}/{stack}"


def when_down(properties: Properties) -> str:
    """What can be done about a cluster that does not answer."""
    if is_copy(str(properties.get("kubeconfig"))):
        return f"when it answers, run this again; {GONE_FOR_GOOD}"
    return "`pulumi up --refresh` brings a cluster back that is down"

"""What the resources have in common that live in a cluster: where it is, what is asked of their inputs, and drift."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, ClassVar

from kube import KubeconfigError
from provider.connections import Connections, WrongCluster
from provider.errors import ProviderError
from provider.resources.base import Difference, Failure, Properties, Resource, known
from provider.resources.diffing import differences
from provider.runtimes.existing.copy import is_copy
from provider.runtimes.existing.refusals import GONE_FOR_GOOD
from provider.values import UNKNOWN

if TYPE_CHECKING:
    from kube import Client

PLACE_KEYS = ("kubeconfig", "clusterIdentity", "clusterName")
# A preview or a refresh does not wait long for a cluster that is down: it says so and goes on.
LOOK_PATIENCE = 3.0
WORK_PATIENCE = 30.0
# Fewer nodes than these are done before a way could be cleared for them.
_MANY = 100
ClearWay = Callable[[str], AbstractContextManager[object]]


class Placed(Resource):
    """A resource in a cluster; ``kubeconfig``, ``clusterIdentity`` and ``clusterName`` say in which.

    Attributes:
        own_keys: its other inputs.
        required: which of those it cannot do without.
        replaced_by: inputs of which another value means another resource.
    """

    own_keys: ClassVar[tuple[str, ...]]
    required: ClassVar[tuple[str, ...]] = ()
    replaced_by: ClassVar[tuple[str, ...]] = ("clusterIdentity", "clusterName")

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
    def keys(cls) -> tuple[str, ...]:
        """All its inputs."""
        return (*PLACE_KEYS, *cls.own_keys)

    @classmethod
    def input_failures(cls, inputs: Properties) -> list[Failure]:
        """Inputs that it does not have, those that are missing, and a place that is none."""
        keys = cls.keys()
        found = [
            Failure(key, f"{cls.__name__} has no input {key!r}; it takes {', '.join(keys)}")
            for key in inputs
            if key not in keys and not key.startswith("__")
        ]
        found += [Failure(key, "is required") for key in (*PLACE_KEYS, *cls.required) if inputs.get(key) is None]
        for key in PLACE_KEYS:
            value = inputs.get(key)
            if value is not None and value is not UNKNOWN and not isinstance(value, str):
                found.append(Failure(key, f"{value!r} is not a string"))
        return found

    def diff(self, old_outputs: Properties, inputs: Properties) -> list[Difference]:
        """See :meth:`Resource.diff`: outputs are what is there, so that drift found by a read is a difference."""
        found: list[Difference] = []
        for key in self.keys():
            found += differences(key, old_outputs.get(key), inputs.get(key), replace=key in self.replaced_by)
        drift = old_outputs.get("drift")
        paths = [f"drift.{key}" for key in drift] if isinstance(drift, Mapping) else ["drift"] if drift else []
        return found + [Difference(path, "delete") for path in paths]

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


def when_down(properties: Properties) -> str:
    """What can be done about a cluster that does not answer."""
    if is_copy(str(properties.get("kubeconfig"))):
        return f"when it answers, run this again; {GONE_FOR_GOOD}"
    return "`pulumi up --refresh` brings a cluster back that is down"

"""The components that programs in other languages declare, their inputs as our arguments, and their construction."""

import asyncio
import importlib
import re
import threading
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from typing import Any, Unpack

import pulumi
from google.protobuf import struct_pb2
from pulumi.provider import ConstructResult, Provider
from pulumi.provider.server import ProviderServicer
from pulumi.runtime import proto
from pulumi.runtime.stack import wait_for_rpcs

from kumulus.components.arguments import Argument, described_arguments, outputs
from kumulus.components.engine import UserMistake
from kumulus.components.fault import Fault, FaultArgs
from kumulus.components.inputs import reworded
from kumulus.components.resources import ClusterLike
from kumulus.host.version import VERSION
from kumulus.model.node_sets import to_plain
from kumulus.nodes.errors import InvalidInputs, ProviderError
from kumulus.provider.plugin.references import Settled, cluster_of, group_of
from kumulus.provider.values import by_urn

_HEAD = re.compile(r"\w+")


@dataclass(frozen=True)
class ComponentKind:
    """A component."""

    module: str
    """The module of its class, which is imported when needed."""
    name: str
    """The class's name; its arguments are the class of that name with the suffix Args."""

    @property
    def token(self) -> str:
        """Its type in the schema."""
        return f"kumulus:index:{self.name}"

    @property
    def label(self) -> str:
        """A suffix that distinguishes its parts from those of other components of the same name."""
        return self.module.rpartition(".")[2].replace("_", "-")

    @property
    def component(self) -> Any:
        """Its class."""
        return getattr(importlib.import_module(self.module), self.name)

    @property
    def arguments(self) -> tuple[Argument, ...]:
        """Its arguments."""
        return described_arguments(getattr(importlib.import_module(self.module), f"{self.name}Args"))

    @property
    def outputs(self) -> tuple[Argument, ...]:
        """Its outputs."""
        return outputs(self.component)

    def construct(self, name: str, inputs: Mapping[str, Settled], opts: pulumi.ResourceOptions) -> Any:
        """Declare it, with the inputs of another language's program by their names in the schema."""
        known = {each.key: each for each in self.arguments}
        arguments = {
            # An unknown argument keeps its name, so that the component reports it.
            known[key].name if key in known else key: _value_for(known.get(key), value, f"{name}-{self.label}", opts)
            for key, value in inputs.items()
        }
        return self.component(name, opts=opts, **{key: value for key, value in arguments.items() if value is not None})

    def place(self, path: str) -> str:
        """A path in the arguments, with the argument's name in the schema."""
        names = {each.name: each.key for each in self.arguments}
        head = _HEAD.match(path)
        if head is None:
            return path
        return names.get(head[0], head[0]) + path[head.end() :]

    def state(self, component: Any) -> dict[str, Any]:
        """Its outputs for the program, by their names in the schema."""
        return {each.key: getattr(component, each.name) for each in self.outputs}


def is_cluster(argument: Argument) -> bool:
    """Whether an argument is a cluster."""
    return argument.type is ClusterLike


def is_groups(argument: Argument) -> bool:
    """Whether an argument is a list of node groups."""
    return argument.name == "node_groups"


def _value_for(argument: Argument | None, value: Settled, component: str, opts: pulumi.ResourceOptions) -> Any:
    """What the Python class takes for an argument of a component; of an unknown argument, any value will do."""
    if argument is None:
        return value.plain
    if is_cluster(argument):
        return cluster_of(value, component, opts)
    if is_groups(argument):
        return [group_of(each) for each in value.plain or ()]
    return value.plain if argument.plain and value.is_plain else value.original


@cache
def component_kinds() -> tuple[ComponentKind, ...]:
    """All components."""
    found = {
        "emulated_cluster": "EmulatedCluster",
        "kwok_cluster": "KwokCluster",
        "kind_cluster": "KindCluster",
        "existing_cluster": "ExistingCluster",
        "kwok_node_group": "KwokNodeGroup",
        "helm_addon": "HelmAddon",
        "tenant": "Tenant",
    }
    made = [ComponentKind(f"kumulus.components.{module}", name) for module, name in found.items()]
    # The type Fault is taken: it is the resource, with its nodes, that a FleetFault consists of.
    return (*made, ComponentKind(__name__, "FleetFault"))


def by_token(token: str) -> ComponentKind:
    """The component of a type; raises pulumi.RunError if there is none."""
    known = {each.token: each for each in component_kinds()}
    if token not in known:
        raise pulumi.RunError(f"kumulus has no component {token!r}; it has: {', '.join(known)}")
    return known[token]


# How many resources of one component are registered at once.
_AT_ONCE = 32
# A constructor runs to its end without waiting for anything, and some change state of the whole process.
_declaring = threading.Lock()


class _Components(Provider):
    def __init__(self) -> None:
        super().__init__(VERSION)

    def construct(
        self,
        name: str,
        resource_type: str,
        inputs: Mapping[str, Any],
        options: pulumi.ResourceOptions | None = None,
    ) -> ConstructResult:
        kind = by_token(resource_type)
        try:
            with _declaring:
                component = kind.construct(name, inputs, options or pulumi.ResourceOptions())
        except UserMistake as error:
            words = {each.name: each.key for each in kind.arguments}
            raise InvalidInputs(
                f"{error.source} has arguments that are wrong",
                [(kind.place(each.path), f"{each.message}; {reworded(each.remedy, words)}") for each in error.problems],
            ) from None
        return ConstructResult(urn=component.urn, state=kind.state(component))


class _Servicer(ProviderServicer):
    @staticmethod
    async def _construct_inputs(inputs: Any, input_dependencies: Any) -> dict[str, Any]:
        """The component's inputs, with their known values at hand, as a constructor waits for nothing."""
        # The SDK would replace a reference by its resource's id, which components do not have.
        encoded = struct_pb2.Struct(fields={key: by_urn(value) for key, value in inputs.fields.items()})
        received = await ProviderServicer._construct_inputs(encoded, input_dependencies)
        return {key: await Settled.of(value) for key, value in received.items()}


async def constructed(request: bytes, engine: str) -> bytes:
    """Construct a component against the monitor that the request names.

    Returns a ConstructResponse, once everything in the component is registered; raises InvalidInputs otherwise.
    """
    loop = asyncio.get_running_loop()
    loop.set_default_executor(ThreadPoolExecutor(_AT_ONCE))
    # A resource's failure is also that of every output that depends on it, but it is reported only once.
    loop.set_exception_handler(lambda *_: None)
    servicer = _Servicer(_Components(), [], engine)
    try:
        # Its Construct puts a traceback into its message, and runs only one request at a time.
        answer = await servicer._construct(proto.ConstructRequest.FromString(request), None)
        # For resources that are declared only once an output is known.
        await wait_for_rpcs()
    except pulumi.RunError as error:
        raise ProviderError(str(error)) from None
    except Exception as error:
        # The SDK raises the engine's message about a resource as a plain Exception; any other type is a bug.
        if type(error) is Exception:
            raise ProviderError(str(error)) from None
        raise
    return bytes(answer.SerializeToString())


class FleetFaultArgs(FaultArgs, total=False):
    """Arguments of a FleetFault."""


class FleetFault(pulumi.ComponentResource):
    """Something that goes wrong on nodes or with pods while it is declared; its nodes are chosen by a target.

    Args:
        resource_name: its name in the stack, and the fault's.
        args: see :class:`FaultArgs`.
    """

    nodes: pulumi.Output[dict[str, str]]
    """Its nodes: by pool, ordinals as ranges."""

    def __init__(
        self, resource_name: str, *, opts: pulumi.ResourceOptions | None = None, **args: Unpack[FleetFaultArgs]
    ) -> None:
        super().__init__("kumulus:index:FleetFault", resource_name, None, opts)
        self.resource = Fault(resource_name, opts=pulumi.ResourceOptions(parent=self), **args)
        self.nodes = pulumi.Output.from_input(to_plain(self.resource.fault.nodes))
        self.register_outputs({"nodes": self.nodes})

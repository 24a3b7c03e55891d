"""One request to construct a component, answered with Pulumi's SDK; imported with the first request."""

import asyncio
import threading
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pulumi
from google.protobuf import struct_pb2
from pulumi.provider import ConstructResult, Provider
from pulumi.provider.server import ProviderServicer
from pulumi.runtime import proto
from pulumi.runtime.stack import wait_for_rpcs

from kumulus.components.engine import Mistake
from kumulus.nodes.errors import InvalidInputs, ProviderError
from kumulus.provider import VERSION
from kumulus.provider.plugin.components import by_token
from kumulus.provider.plugin.references import Settled
from kumulus.provider.values import by_urn

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
        except Mistake as error:
            raise InvalidInputs(
                f"what {error.source} is given is not valid",
                [(kind.place(each.path), f"{each.message}; {each.remedy}") for each in error.problems],
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

    Returns:
        A ConstructResponse, once everything in the component is registered.

    Raises:
        InvalidInputs: arguments are wrong.
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

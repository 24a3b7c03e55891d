"""The adapter between Pulumi's provider protocol and our resources: values, partial failure, progress, cancel.

It speaks the gRPC protocol itself (the stable layer) because the experimental Python provider API drops old inputs
and cannot report partial failures; see docs/decisions/provider-protocol.md.
"""

from __future__ import annotations

import asyncio
import os
import sys
import traceback
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from functools import wraps
from types import SimpleNamespace
from typing import Any

import grpc
from google.protobuf import empty_pb2, struct_pb2

from kumulus.host.version import VERSION
from kumulus.nodes.errors import InvalidInputs, PartialFailure, ProviderError
from kumulus.provider.engine import PulumiEngine
from kumulus.provider.protocol import errors_pb2, plugin_pb2, provider_pb2, provider_pb2_grpc, status_pb2
from kumulus.provider.resources.base import Operation, Resource
from kumulus.provider.resources.diffing import PropertyDifference, covers
from kumulus.provider.settings import PluginSettings
from kumulus.provider.values import from_struct, keep_secret, to_struct

Function = Callable[[dict[str, Any]], Awaitable[dict[str, Any]]]
_Answer = Callable[[Any, Any, Any], Coroutine[Any, Any, Any]]
_KINDS = {
    "add": provider_pb2.PropertyDiff.ADD,
    "add-replace": provider_pb2.PropertyDiff.ADD_REPLACE,
    "delete": provider_pb2.PropertyDiff.DELETE,
    "delete-replace": provider_pb2.PropertyDiff.DELETE_REPLACE,
    "update": provider_pb2.PropertyDiff.UPDATE,
    "update-replace": provider_pb2.PropertyDiff.UPDATE_REPLACE,
}


def _guarded(inputs: str = "") -> Callable[[_Answer], _Answer]:
    """Answer a request by a method whose exceptions become a message, never a traceback.

    If the work may be done in part, `inputs` is the field of the request that has the resource's inputs.
    """

    def decorate(answer: _Answer) -> _Answer:
        @wraps(answer)
        async def guarded(self: Servicer, request: Any, context: Any) -> Any:
            try:
                return await answer(self, request, context)
            except PartialFailure as failure:
                await self._engine.flush()
                await context.abort_with_status(_partial(failure, getattr(request, inputs) if inputs else None))
            except InvalidInputs as error:
                await self._engine.flush()
                await context.abort_with_status(_invalid(error))
            except ProviderError as error:
                await self._engine.flush()
                await context.abort(grpc.StatusCode.UNKNOWN, str(error))
            except Exception as error:
                # A bug in the plugin: the engine shows one line; the details go to the engine's debug log (-v=9).
                traceback.print_exc(file=sys.stderr)
                where = traceback.extract_tb(error.__traceback__)[-1]
                message = " ".join(str(error).split())
                await context.abort(
                    grpc.StatusCode.INTERNAL,
                    f"kumulus plugin: unexpected {type(error).__name__}: {message} "
                    f"({os.path.basename(where.filename)}:{where.lineno}); please report this",
                )
            finally:
                await self._engine.flush()
            raise AssertionError("abort returned")

        return guarded

    return decorate


class Servicer(provider_pb2_grpc.ResourceProviderServicer):
    """Serves the provider protocol for a set of resources.

    Args:
        resources: the resources by type token.
        program: directory of the user's Pulumi program, which relative paths and defaults refer to.
        functions: functions that a program can invoke, by token.
        construct: answers a ConstructRequest with a ConstructResponse; None without components.
        settings: takes the plugin's configuration from Pulumi.
    """

    def __init__(
        self,
        engine: PulumiEngine,
        resources: dict[str, Resource],
        program: str,
        functions: Mapping[str, Function] | None = None,
        schema: Callable[[], str] = lambda: "{}",
        construct: Callable[[bytes], Awaitable[bytes]] | None = None,
        settings: PluginSettings | None = None,
    ) -> None:
        self._engine = engine
        self._construct = construct
        self._settings = settings or PluginSettings()
        self._schema = schema
        self._resources = resources
        self._functions = functions or {}
        self._program = program
        self._stop = asyncio.Event()

    def stop(self) -> None:
        """Let running operations finish their current requests and start nothing new."""
        self._stop.set()

    def _resource(self, urn: str) -> Resource:
        # urn:pulumi:<stack>::<project>::<parent type>$<type>::<name>
        parts = urn.split("::", 3)
        token = parts[2].rpartition("$")[2] if len(parts) > 2 else ""
        try:
            return self._resources[token]
        except KeyError:
            known = ", ".join(sorted(self._resources))
            raise ProviderError(f"kumulus has no resource type {token!r}; it has: {known}") from None

    def _operation(self, urn: str, *, preview: bool = False, timeout: float = 0.0, old_inputs: Any = None) -> Operation:
        old = {} if old_inputs is None else from_struct(old_inputs)
        return Operation(urn, self._engine.reporter(urn), self._stop, preview, timeout, self._program, old)

    # --- the plugin itself -----------------------------------------------------------------------------------------

    async def GetPluginInfo(self, request: Any, context: Any) -> Any:
        return plugin_pb2.PluginInfo(version=VERSION)

    async def GetSchema(self, request: Any, context: Any) -> Any:
        return provider_pb2.GetSchemaResponse(schema=self._schema())

    @_guarded()
    async def CheckConfig(self, request: Any, context: Any) -> Any:
        request.news.update(self._settings.kept(from_struct(request.olds), from_struct(request.news)))
        return provider_pb2.CheckResponse(inputs=request.news)

    async def DiffConfig(self, request: Any, context: Any) -> Any:
        # When nothing changed, the engine configures the plugin with the recorded configuration.
        changed = self._settings.changed(from_struct(request.olds), from_struct(request.news))
        answers = provider_pb2.DiffResponse
        return answers(changes=answers.DIFF_SOME if changed else answers.DIFF_NONE)

    @_guarded()
    async def Configure(self, request: Any, context: Any) -> Any:
        self._settings.take(from_struct(request.args))
        return provider_pb2.ConfigureResponse(
            # Components need all of these to keep their inputs unchanged.
            acceptSecrets=True,
            supportsPreview=True,
            acceptResources=True,
            acceptOutputs=True,
        )

    async def Cancel(self, request: Any, context: Any) -> Any:
        self.stop()
        return empty_pb2.Empty()

    @_guarded()
    async def Invoke(self, request: Any, context: Any) -> Any:
        if request.tok not in self._functions:
            raise ProviderError(f"kumulus has no function {request.tok!r}; it has: {', '.join(self._functions)}")
        response = provider_pb2.InvokeResponse()
        answer = await self._functions[request.tok](from_struct(request.args))
        # "return" is a Python keyword, so the field is reachable only through getattr.
        getattr(response, "return").CopyFrom(to_struct(answer))
        return response

    @_guarded()
    async def Construct(self, request: Any, context: Any) -> Any:
        if self._construct is None:
            raise ProviderError("this plugin serves no components")
        return provider_pb2.ConstructResponse.FromString(await self._construct(request.SerializeToString()))

    # --- resources -------------------------------------------------------------------------------------------------

    @_guarded()
    async def Check(self, request: Any, context: Any) -> Any:
        resource = self._resource(request.urn)
        olds, news = from_struct(request.olds), from_struct(request.news)
        news |= resource.drawn(olds, news, request.randomSeed)
        checked = await resource.examine(olds, news, self._program)
        if not checked.failures:
            await resource.declare(request.urn, olds, checked.inputs)
        failures = [provider_pb2.CheckFailure(property=f.path, reason=f.reason) for f in checked.failures]
        return provider_pb2.CheckResponse(
            inputs=keep_secret(to_struct(checked.inputs), request.news), failures=failures
        )

    @_guarded()
    async def Diff(self, request: Any, context: Any) -> Any:
        resource = self._resource(request.urn)
        olds, news = from_struct(request.olds), from_struct(request.news)
        await resource.preview(self._engine.reporter, request.urn, from_struct(request.old_inputs), olds, news)
        found = await resource.compare(olds, news)
        ignored = list(request.ignoreChanges)
        found = [d for d in found if not any(covers(pattern, d.path) for pattern in ignored)]
        return _diff_response(found, resource.delete_before_replace)

    @_guarded("properties")
    async def Create(self, request: Any, context: Any) -> Any:
        op = self._operation(request.urn, preview=request.preview, timeout=request.timeout)
        resource_id, outputs = await self._resource(request.urn).create(op, from_struct(request.properties))
        return provider_pb2.CreateResponse(
            id="" if request.preview else resource_id,
            properties=keep_secret(to_struct(outputs), request.properties),
        )

    @_guarded()
    async def Read(self, request: Any, context: Any) -> Any:
        op = self._operation(request.urn, timeout=request.timeout)
        found = await self._resource(request.urn).read(
            op, request.id, from_struct(request.properties), from_struct(request.inputs)
        )
        if found is None:
            return provider_pb2.ReadResponse()
        return provider_pb2.ReadResponse(
            id=found.resource_id,
            properties=keep_secret(to_struct(found.outputs), request.inputs, request.properties),
            inputs=keep_secret(to_struct(found.inputs), request.inputs),
        )

    @_guarded("news")
    async def Update(self, request: Any, context: Any) -> Any:
        op = self._operation(
            request.urn, preview=request.preview, timeout=request.timeout, old_inputs=request.old_inputs
        )
        outputs = await self._resource(request.urn).update(
            op, request.id, from_struct(request.olds), from_struct(request.news)
        )
        return provider_pb2.UpdateResponse(properties=keep_secret(to_struct(outputs), request.news))

    @_guarded()
    async def Delete(self, request: Any, context: Any) -> Any:
        op = self._operation(request.urn, timeout=request.timeout, old_inputs=request.old_inputs)
        await self._resource(request.urn).delete(op, request.id, from_struct(request.properties))
        return empty_pb2.Empty()


def _diff_response(found: list[PropertyDifference], delete_before_replace: bool) -> provider_pb2.DiffResponse:
    detailed = {d.path: provider_pb2.PropertyDiff(kind=_KINDS[d.kind], inputDiff=False) for d in found}
    replaces = [d.path for d in found if d.replaces]
    changes = provider_pb2.DiffResponse.DIFF_SOME if found else provider_pb2.DiffResponse.DIFF_NONE
    return provider_pb2.DiffResponse(
        changes=changes,
        replaces=replaces,
        deleteBeforeReplace=bool(replaces) and delete_before_replace,
        detailedDiff=detailed,
        hasDetailedDiff=True,
    )


def _partial(failure: PartialFailure, inputs: struct_pb2.Struct | None) -> SimpleNamespace:
    """Encode a partial failure so that the engine records the resource (``ErrorResourceInitFailed``)."""
    outputs = keep_secret(to_struct(failure.outputs), inputs or struct_pb2.Struct())
    detail = provider_pb2.ErrorResourceInitFailed(id=failure.resource_id, reasons=failure.reasons, properties=outputs)
    return _status(grpc.StatusCode.UNKNOWN, failure.message, detail)


def _invalid(error: InvalidInputs) -> SimpleNamespace:
    detail = errors_pb2.InputPropertiesError()
    for path, reason in error.problems:
        detail.errors.add(property_path=path, reason=reason)
    return _status(grpc.StatusCode.INVALID_ARGUMENT, str(error), detail)


def _status(code: grpc.StatusCode, message: str, detail: Any) -> SimpleNamespace:
    status = status_pb2.Status(code=code.value[0], message=message)
    status.details.add().Pack(detail)
    metadata = (("grpc-status-details-bin", status.SerializeToString()),)
    # The shape that ``abort_with_status`` wants; grpc has no public class for it.
    return SimpleNamespace(code=code, details=message, trailing_metadata=metadata)

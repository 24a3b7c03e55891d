"""A resource monitor to construct components against: it registers whatever it is set to to, and remembers it."""

import threading
from collections.abc import Iterator, Mapping
from concurrent import futures
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import grpc
from google.protobuf import empty_pb2, json_format, struct_pb2
from pulumi.runtime.proto import provider_pb2, resource_pb2, resource_pb2_grpc

_FEATURES = {"secrets", "resourceReferences", "outputValues", "deletedWith", "aliasSpecs"}


@dataclass
class Monitor(resource_pb2_grpc.ResourceMonitorServicer):
    """What was registered."""

    outputs: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """What a custom resource has besides its inputs, by type; `UNKNOWN` as on the wire."""
    registered: dict[str, Any] = field(default_factory=dict)
    """The requests, by URN."""
    declared: dict[str, dict[str, Any]] = field(default_factory=dict)
    """The outputs that components registered, by URN."""
    refuse: set[str] = field(default_factory=set)
    """Names of resources that cannot be registered."""
    silent: threading.Event | None = None
    """Nothing is answered before it is set; None for no such thing."""
    address: str = ""
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def SupportsFeature(self, request: Any, context: Any) -> Any:
        return resource_pb2.SupportsFeatureResponse(hasSupport=request.id in _FEATURES)

    def RegisterResource(self, request: Any, context: Any) -> Any:
        if self.silent is not None:
            self.silent.wait(60)
        if request.name in self.refuse:
            context.abort(grpc.StatusCode.UNKNOWN, f"{request.name} is refused")
        chain = request.parent.split("::")[2] + "$" if request.parent.count("::") > 2 else ""
        chain = chain.removeprefix("pulumi:pulumi:Stack$")
        urn = f"urn:pulumi:dev::p::{chain}{request.type}::{request.name}"
        with self._lock:
            self.registered[urn] = request
        found = struct_pb2.Struct()
        found.CopyFrom(request.object)
        found.update(self.outputs.get(request.type, {}))
        return resource_pb2.RegisterResourceResponse(urn=urn, id="id" if request.custom else "", object=found)

    def RegisterResourceOutputs(self, request: Any, context: Any) -> Any:
        with self._lock:
            self.declared[request.urn] = json_format.MessageToDict(request.outputs)
        return empty_pb2.Empty()

    def Invoke(self, request: Any, context: Any) -> Any:
        assert request.tok == "pulumi:pulumi:getResource"
        urn = request.args["urn"]
        if urn not in self.registered:
            context.abort(grpc.StatusCode.UNKNOWN, f"unknown resource {urn}")
        asked = self.registered[urn]
        state = {**json_format.MessageToDict(asked.object), **self.outputs.get(asked.type, {})}
        answer = provider_pb2.InvokeResponse()
        getattr(answer, "return").update({"urn": urn, "state": {**state, **self.declared.get(urn, {})}})
        return answer

    def of(self, kind: str) -> dict[str, Any]:
        """The requests for resources of a type, by name."""
        return {each.name: each for each in self.registered.values() if each.type == f"kumulus:index:{kind}"}


@contextmanager
def listening(**arguments: Any) -> Iterator[Monitor]:
    """Serve a monitor."""
    monitor = Monitor(**arguments)
    server = grpc.server(futures.ThreadPoolExecutor(64))
    resource_pb2_grpc.add_ResourceMonitorServicer_to_server(monitor, server)
    monitor.address = f"127.0.0.1:{server.add_insecure_port('127.0.0.1:0')}"
    server.start()
    yield monitor
    server.stop(0)

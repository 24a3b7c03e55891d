"""The plugin as the engine starts it answers the user who started it, and no other one of the machine."""

import json
import os
import socket
import struct
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import grpc
from google.protobuf import struct_pb2
from pulumi.runtime.proto import provider_pb2, provider_pb2_grpc

from kumulus.provider.plugin import serving
from tests.support import sandbox, stranger
from tests.unit.provider.test_rpc import listening

SERVICE = "/pulumirpc.ResourceProvider"
PLUGIN = "import runpy; runpy.run_module('kumulus.provider.plugin', run_name='__main__')"


@contextmanager
def plugin(before: str = "", engine: str = "", **variables: str) -> Iterator[int]:
    """The port of a plugin, which runs until the block ends; its process runs some Python first."""
    command = [sys.executable, "-c", f"{before}\n{PLUGIN}", *([engine] if engine else [])]
    inherited = {name: value for name, value in os.environ.items() if name not in ("no_proxy", "no_grpc_proxy")}
    environment = {**inherited, **(variables or {"no_grpc_proxy": "127.0.0.1"})}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as process:
        assert process.stdout is not None
        try:
            yield int(process.stdout.readline())
        finally:
            process.terminate()
        assert process.wait(60) == 0


def kubeconfig(executed: Path) -> bytes:
    """A request for findKwok with a kubeconfig whose exec command makes a file."""
    command = {"apiVersion": "client.authentication.k8s.io/v1", "command": "touch", "args": [str(executed)]}
    document = {
        "current-context": "c",
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
        "clusters": [{"name": "c", "cluster": {"server": "https://127.0.0.1:1"}}],
        "users": [{"name": "u", "user": {"exec": {**command, "interactiveMode": "Never"}}}],
    }
    arguments = struct_pb2.Struct()
    arguments.update({"kubeconfig": json.dumps(document, indent=1), "context": "c", "release": "mine"})
    request = provider_pb2.InvokeRequest(tok="kumulus:index:findKwok", args=arguments)
    return bytes(request.SerializeToString())


def test_another_user_of_the_machine_runs_no_command_by_it(tmp_path: Path) -> None:
    file = tmp_path / "executed"
    with plugin() as port:
        assert stranger.call(port, f"{SERVICE}/Invoke", kubeconfig(file)) == "PERMISSION_DENIED"
        assert not file.exists()
        with grpc.insecure_channel(f"127.0.0.1:{port}") as channel:
            # The same request of the user himself shows that it is the caller that counts.
            provider_pb2_grpc.ResourceProviderStub(channel).Invoke(
                provider_pb2.InvokeRequest.FromString(kubeconfig(file))
            )
    assert file.exists()


def test_another_user_gets_nothing_by_any_of_its_methods() -> None:
    (service,) = provider_pb2.DESCRIPTOR.services_by_name.values()
    with plugin() as port:
        answers = {each.name: stranger.call(port, f"{SERVICE}/{each.name}", b"") for each in service.methods}
        assert answers.pop("List") == "UNIMPLEMENTED"
        assert set(answers.values()) == {"PERMISSION_DENIED"}


def test_a_call_whose_process_has_ended_runs_no_command(tmp_path: Path) -> None:
    """Older kernels show a socket that is closed as root's, and the tests may be root's, too."""
    file = tmp_path / "executed"
    with plugin() as port:
        for _ in range(20):
            stranger.send(port, written(kubeconfig(file)))
        assert answered(port, "127.0.0.1", kubeconfig(tmp_path / "own"))
    assert (tmp_path / "own").exists()
    assert not file.exists()


def test_a_call_from_another_address_of_the_machine_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "executed"
    with plugin() as port:
        assert answered(port, "127.0.0.2", kubeconfig(file))
    assert not file.exists()


def written(request: bytes) -> bytes:
    """A call of Invoke as a client writes it: HTTP/2 (RFC 9113) without a library, so that anything can be sent."""

    def frame(kind: int, flags: int, stream: int, payload: bytes) -> bytes:
        return len(payload).to_bytes(3, "big") + struct.pack(">BBI", kind, flags, stream) + payload

    def text(value: str) -> bytes:
        return bytes([len(value)]) + value.encode()

    # By HPACK's static table (RFC 7541): POST, http, a path, an authority, a content type; then `te` by its name.
    headers = b"\x83\x86\x04" + text(f"{SERVICE}/Invoke") + b"\x01" + text("localhost")
    headers += b"\x0f\x10" + text("application/grpc") + b"\x00" + text("te") + text("trailers")
    message = b"\0" + len(request).to_bytes(4, "big") + request
    begin = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + frame(4, 0, 0, b"")
    return begin + frame(1, 4, 1, headers) + frame(0, 1, 1, message)


def answered(port: int, source: str, request: bytes) -> bool:
    """Call Invoke from an address of this machine; whether the call was ended by an answer, whichever that is."""
    with socket.create_connection(("127.0.0.1", port), 60, (source, 0)) as caller:
        caller.sendall(written(request))
        with caller.makefile("rb") as answer:
            while len(head := answer.read(9)) == 9:
                kind, flags = head[3:5]
                answer.read(int.from_bytes(head[:3], "big"))
                if kind == 1 and flags & 1:
                    return True
    return False


async def test_where_the_system_does_not_tell_who_calls_the_plugin_works_and_says_so() -> None:
    async with listening() as (log, engine):
        with plugin(sandbox.WITHOUT_NETLINK, engine) as port:
            async with grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel:
                ready = provider_pb2.InvokeRequest(tok="kumulus:index:ready")
                await provider_pb2_grpc.ResourceProviderStub(channel).Invoke(ready)
    assert [each.message for each in log.told] == [serving.CALLERS_UNKNOWN]

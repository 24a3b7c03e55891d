"""A stand-in for Pulumi's plugin `command`, for tests: it really runs the commands of ``local.Command``, nothing else.

The real one, https://github.com/pulumi/pulumi-command, is available only from Pulumi's own downloads, which a testing
machine may not reach. Both distinguish ``create``, ``update`` (``create`` again without one) and ``delete``,
``triggers`` (the SDK makes another one a replacement), ``environment``, ``dir`` and ``interpreter``; a failed
``create`` leaves nothing in the state; a preview runs nothing and knows no output of what has changed.
"""

import os
import subprocess
import sys
from concurrent import futures
from pathlib import Path
from typing import Any

import grpc
from google.protobuf import empty_pb2

from kumulus.model.plain import UNKNOWN
from kumulus.provider.protocol import plugin_pb2, provider_pb2, provider_pb2_grpc
from kumulus.provider.values import from_struct, to_struct

VERSION = "1.2.1"
ROOT = Path(__file__).resolve().parents[2]


def install(pulumi_home: Path) -> None:
    """Install it where engines with this PULUMI_HOME look for the real one."""
    folder = pulumi_home / "plugins" / f"resource-command-v{VERSION}"
    folder.mkdir(parents=True, exist_ok=True)
    program = folder / "pulumi-resource-command"
    program.write_text(f'#!/bin/sh\nPYTHONPATH="{ROOT}" exec "{sys.executable}" -m {__name__} "$@"\n')
    program.chmod(0o755)


class StandIn(provider_pb2_grpc.ResourceProviderServicer):
    """The part of the provider protocol that ``local.Command`` needs."""

    def GetPluginInfo(self, request: Any, context: Any) -> Any:
        return plugin_pb2.PluginInfo(version=VERSION)

    def CheckConfig(self, request: Any, context: Any) -> Any:
        return provider_pb2.CheckResponse(inputs=request.news)

    def DiffConfig(self, request: Any, context: Any) -> Any:
        return provider_pb2.DiffResponse(changes=provider_pb2.DiffResponse.DIFF_NONE)

    def Configure(self, request: Any, context: Any) -> Any:
        return provider_pb2.ConfigureResponse(supportsPreview=True)

    def Cancel(self, request: Any, context: Any) -> Any:
        return empty_pb2.Empty()

    def Check(self, request: Any, context: Any) -> Any:
        return provider_pb2.CheckResponse(inputs=request.news)

    def Diff(self, request: Any, context: Any) -> Any:
        olds, news = from_struct(request.old_inputs), from_struct(request.news)
        changed = sorted(key for key in {*olds, *news} if olds.get(key) != news.get(key))
        replaced = [key for key in changed if key == "triggers"]
        kind = provider_pb2.DiffResponse.DIFF_SOME if changed else provider_pb2.DiffResponse.DIFF_NONE
        return provider_pb2.DiffResponse(changes=kind, diffs=changed, replaces=replaced)

    def Create(self, request: Any, context: Any) -> Any:
        inputs = from_struct(request.properties)
        outputs = _previewed(inputs) if request.preview else _ran(inputs, inputs.get("create"), {}, context)
        return provider_pb2.CreateResponse(id="" if request.preview else "stand-in", properties=to_struct(outputs))

    def Read(self, request: Any, context: Any) -> Any:
        return provider_pb2.ReadResponse(id=request.id, properties=request.properties, inputs=request.inputs)

    def Update(self, request: Any, context: Any) -> Any:
        inputs, before = from_struct(request.news), from_struct(request.olds)
        command = inputs.get("update") or inputs.get("create")
        outputs = _previewed(inputs) if request.preview else _ran(inputs, command, before, context)
        return provider_pb2.UpdateResponse(properties=to_struct(outputs))

    def Delete(self, request: Any, context: Any) -> Any:
        state = from_struct(request.properties)
        _ran(state, state.get("delete"), state, context)
        return empty_pb2.Empty()


def _previewed(inputs: dict[str, Any]) -> dict[str, Any]:
    return {**inputs, "stdout": UNKNOWN, "stderr": UNKNOWN}


def _ran(inputs: dict[str, Any], command: str | None, before: dict[str, Any], context: Any) -> dict[str, Any]:
    if not command:
        return {**inputs, "stdout": "", "stderr": ""}
    earlier = {"PULUMI_COMMAND_STDOUT": before.get("stdout", ""), "PULUMI_COMMAND_STDERR": before.get("stderr", "")}
    answer = subprocess.run(
        [*(inputs.get("interpreter") or ["/bin/sh", "-c"]), command],
        env={**os.environ, **(earlier if before else {}), **(inputs.get("environment") or {})},
        cwd=inputs.get("dir"),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    if answer.returncode != 0:
        # Same wording as the real plugin's.
        said = f"{answer.stdout}{answer.stderr}".strip()
        context.abort(grpc.StatusCode.UNKNOWN, f"exit status {answer.returncode}: running {command!r}:\n{said}")
    return {**inputs, "stdout": answer.stdout.rstrip("\n"), "stderr": answer.stderr.rstrip("\n")}


def main() -> None:
    """Serve until the engine ends it."""
    server = grpc.server(futures.ThreadPoolExecutor(8))
    provider_pb2_grpc.add_ResourceProviderServicer_to_server(StandIn(), server)
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    print(port, flush=True)
    server.wait_for_termination()


if __name__ == "__main__":
    main()

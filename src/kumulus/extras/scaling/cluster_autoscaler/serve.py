"""``python -m kumulus.extras.scaling.cluster_autoscaler.serve PORT KUBECONFIG PKI SETTINGS``: serve the node groups.

It listens on 127.0.0.1 and answers only clients with the certificate of the cluster's administrator, which
cluster-autoscaler has; the TLS handshake fails for every other user of the machine.
"""

import asyncio
import json
import signal
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import grpc
import grpc.aio

from kumulus.extras.scaling.cluster_autoscaler import interface
from kumulus.extras.scaling.cluster_autoscaler.groups import GroupRefused, ScalableGroups, UnknownGroup
from kumulus.extras.scaling.cluster_autoscaler.service import NotKnown, Service
from kumulus.kube import ApiError, Client, Unreachable, load_kubeconfig

_Answer = Callable[[Any], Awaitable[dict[str, Any]]]


def main(port: int, kubeconfig: Path, pki: Path, settings: Path) -> int:
    """Serve until a signal ends the process; returns an exit code."""
    return asyncio.run(_serve(port, kubeconfig, pki, json.loads(settings.read_text())))


async def _serve(port: int, kubeconfig: Path, pki: Path, settings: dict[str, Any]) -> int:
    ended = asyncio.Event()
    for each in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(each, ended.set)
    async with Client(load_kubeconfig(kubeconfig)) as client:
        groups = ScalableGroups(client, settings["delays"])
        server = grpc.aio.server()
        server.add_generic_rpc_handlers((handler(Service(groups, settings["hourly"])),))
        server.add_secure_port(f"127.0.0.1:{port}", credentials(pki))
        await server.start()
        print(f"serving node groups on 127.0.0.1:{port}", file=sys.stderr)
        await ended.wait()
        await server.stop(1.0)
        await groups.close()
    return 0


def credentials(pki: Path) -> grpc.ServerCredentials:
    """Accept only holders of a certificate by the cluster's CA, which has issued only the administrator's."""
    authority, certificate, key = ((pki / name).read_bytes() for name in ("ca.crt", "admin.crt", "admin.key"))
    return grpc.ssl_server_credentials([(key, certificate)], authority, require_client_auth=True)


def handler(service: Service) -> grpc.GenericRpcHandler:
    """The gRPC handler of the interface's calls."""
    made = {}
    for call, answer in service.calls().items():
        asked, answered = interface.of_call(call)
        made[call] = grpc.unary_unary_rpc_method_handler(
            _answering(answer, answered),
            request_deserializer=asked.FromString,
            response_serializer=answered.SerializeToString,
        )
    return grpc.method_handlers_generic_handler(interface.SERVICE, made)


def _answering(answer: _Answer, response: Any) -> Callable[[Any, Any], Awaitable[Any]]:
    async def answered(request: Any, context: Any) -> Any:
        try:
            return response(**await answer(request))
        except (UnknownGroup, NotKnown) as error:
            await context.abort(grpc.StatusCode.NOT_FOUND, str(error))
        except GroupRefused as error:
            await context.abort(grpc.StatusCode.FAILED_PRECONDITION, str(error))
        except (ApiError, Unreachable) as error:
            await context.abort(grpc.StatusCode.UNAVAILABLE, str(error))

    return answered


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]), *map(Path, sys.argv[2:5])))

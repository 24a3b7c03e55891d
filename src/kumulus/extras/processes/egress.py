"""The way from the API server into the pods: the proxy that its egress selector names, at a socket of this user alone.

An API server reaches webhooks, aggregated APIs and kubelets in the cluster's network. That of processes is in their
namespaces, so the API server is configured to ask here (`--egress-selector-config-file`, by CONNECT of HTTP). Addresses
that are not of the node `local` are connected to as the API server would have done itself.
Source: https://kubernetes.io/docs/tasks/extend-kubernetes/setup-konnectivity/ and KEP-1281.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import ssl
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import parse_qs, urlsplit

from kumulus.extras.processes.containers import NODE
from kumulus.extras.processes.outside import SandboxError, Streams, relay
from kumulus.extras.processes.running import ProcessPod
from kumulus.kube import ApiError, Unreachable

if TYPE_CHECKING:
    from kumulus.kube import Client

SOCKET = "local/egress.sock"
"""In the cluster's directory, in which the API server runs; the whole path might be too long for a socket."""
_CONNECTED = b"HTTP/1.1 200 Connection established\r\n\r\n"
_DISCOVERY = "/apis/discovery.k8s.io/v1/namespaces"


class Egress:
    """The proxy.

    Args:
        pods: those of the node, by the namespace and the name.
        certificate: what the node's kubelet shows to the API server.
    """

    def __init__(self, client: Client, pods: Mapping[str, ProcessPod], certificate: ssl.SSLContext) -> None:
        self._client = client
        self._pods = pods
        self._certificate = certificate

    async def answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer one connection."""
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
            host, _, port = head.split(" ")[1].rpartition(":")
            if host == NODE:
                writer.write(_CONNECTED)
                await writer.start_tls(self._certificate)
                await self._kubelet(reader, writer)
                return
            theirs = await self._connected(host.strip("[]"), int(port))
            writer.write(_CONNECTED)
            await relay((reader, writer), theirs)
        except (OSError, SandboxError, ApiError, Unreachable, LookupError) as error:
            with contextlib.suppress(OSError):
                why = " ".join(str(error).split())
                writer.write(f"HTTP/1.1 502 {why}\r\nContent-Length: 0\r\n\r\n".encode("latin-1", "replace"))
        except (ValueError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            pass
        finally:
            writer.close()

    async def _connected(self, host: str, port: int) -> Streams:
        if pod := self._at(host):
            return await pod(port)
        found = []
        if host[0].isdigit() and not host.startswith("127."):
            query = {"fieldSelector": f"spec.clusterIP={host}"}
            found = (await self._client.get("/api/v1/services", query))["items"]
        if not found:
            return await asyncio.open_connection(host, port)
        metadata, ports = found[0]["metadata"], found[0]["spec"]["ports"]
        named = next((each.get("name", "") for each in ports if each["port"] == port), None)
        selector = {"labelSelector": f"kubernetes.io/service-name={metadata['name']}"}
        slices = await self._client.get(f"{_DISCOVERY}/{metadata['namespace']}/endpointslices", selector)
        for part in slices["items"]:
            target = next((each["port"] for each in part.get("ports") or [] if each.get("name", "") == named), None)
            for endpoint in part.get("endpoints") or []:
                ready = (endpoint.get("conditions") or {}).get("ready", True)
                if ready and target and (pod := self._at(endpoint["addresses"][0])):
                    return await pod(target)
        raise LookupError(f"no pod of {metadata['namespace']}/{metadata['name']} that runs is ready")

    def _at(self, address: str) -> Callable[[int], Awaitable[Streams]] | None:
        for each in self._pods.values():
            if each.address == address and each.sandbox:
                return each.sandbox.connect
        return None

    async def _kubelet(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer the API server as the kubelet of the node does for logs; nothing else of it is here."""
        asked = urlsplit((await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split(" ")[1])
        parts, query = asked.path.strip("/").split("/"), parse_qs(asked.query)
        pod = self._pods.get("/".join(parts[1:3]))
        log = pod.log_of(parts[3]) if pod and parts[0] == "containerLogs" and len(parts) == 4 else None
        if log is None:
            why = f"pods that are processes have logs alone, no {parts[0]}".encode()
            writer.write(b"HTTP/1.1 501 Not Implemented\r\nContent-Length: %d\r\n\r\n%s" % (len(why), why))
            return
        text = log.read_bytes() if log.exists() else b""
        read = len(text)
        if last := query.get("tailLines"):
            text = b"".join(text.splitlines(keepends=True)[-int(last[0]) :]) if int(last[0]) else b""
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nConnection: close\r\n\r\n" + text)
        await writer.drain()
        if query.get("follow") == ["true"]:
            await followed(log, read, writer)


async def followed(log: Path, sent: int, writer: asyncio.StreamWriter) -> None:
    """Send what is written to a log until it is removed, without the first ``sent`` bytes."""
    with log.open("rb") as opened:
        opened.seek(sent)
        # Its file is removed with the pod.
        while not writer.is_closing() and (now := os.fstat(opened.fileno())).st_nlink:
            if now.st_size < opened.tell():
                # A long log is emptied.
                opened.seek(0)
            if data := opened.read():
                writer.write(data)
                await writer.drain()
            await asyncio.sleep(0.2)

"""The probes of a container, as a kubelet asks them."""

import asyncio
import contextlib
import ssl
from collections.abc import Awaitable, Callable
from typing import Any

from kumulus.extras.processes.containers import Manifest, Missing, port_of
from kumulus.extras.processes.outside import Sandbox, SandboxError

Execute = Callable[[list[str]], Awaitable[int]]
"""Runs a command as the container's program is run; returns its exit code."""


async def follow(
    sandbox: Sandbox, container: Manifest, kind: str, execute: Execute, changed: Callable[[bool], None]
) -> None:
    """Ask a probe, such as ``startupProbe``, for ever, and tell when its verdict changes.

    ``changed`` takes whether the container is well, when as many answers in a row as the probe asks for agree.
    """
    probe = container[kind]
    await asyncio.sleep(probe.get("initialDelaySeconds", 0))
    verdict: bool | None = None
    row, last = 0, None
    while True:
        well = await asks(sandbox, container, probe, execute)
        row, last = (row + 1 if well == last else 1), well
        needed = probe.get("successThreshold", 1) if well else probe.get("failureThreshold", 3)
        if row >= needed and well != verdict:
            verdict = well
            changed(well)
        await asyncio.sleep(probe.get("periodSeconds", 10))


async def asks(sandbox: Sandbox, container: Manifest, probe: Manifest, execute: Execute) -> bool:
    """Ask a probe once; whether the container is well."""
    try:
        async with asyncio.timeout(probe.get("timeoutSeconds", 1)):
            if "exec" in probe:
                return await execute(probe["exec"]["command"]) == 0
            if "tcpSocket" in probe:
                _, writer = await sandbox.connect(port_of(container, probe["tcpSocket"]["port"]))
                writer.close()
                return True
            return 200 <= await _status(sandbox, container, probe["httpGet"]) < 400
    except (OSError, ValueError, SandboxError, Missing):
        return False


async def _status(sandbox: Sandbox, container: Manifest, asked: Manifest) -> int:
    reader, writer = await sandbox.connect(port_of(container, asked["port"]))
    try:
        if asked.get("scheme", "HTTP").upper() == "HTTPS":
            # As a kubelet: it does not check the certificate.
            context: Any = ssl.create_default_context()
            context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
            await writer.start_tls(context)
        headers = {"Host": sandbox.address, "User-Agent": "kube-probe/kumulus", "Connection": "close"}
        headers |= {each["name"]: each["value"] for each in asked.get("httpHeaders") or []}
        lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
        writer.write(f"GET {asked.get('path', '/')} HTTP/1.1\r\n{lines}\r\n".encode())
        return int((await reader.readline()).split()[1])
    except IndexError:
        return 0
    finally:
        writer.close()
        with contextlib.suppress(OSError, ssl.SSLError):
            await writer.wait_closed()

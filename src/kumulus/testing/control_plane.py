"""Start a control plane for a test: from its template where there is one, else by kwokctl, which makes the template."""

import asyncio
import os
import socket
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from functools import partial
from pathlib import Path

from kumulus import toolchain
from kumulus.host import files, ports, processes
from kumulus.kube import ApiError, Client, Unreachable, objects
from kumulus.kube.http import Query
from kumulus.kwok.stages import STAGES
from kumulus.nodes.errors import ProviderError
from kumulus.nodes.reporter import Reporter
from kumulus.runtimes import apiserver, directories
from kumulus.runtimes.base import Observed, WantedControlPlane
from kumulus.runtimes.kwok import api, configuration, kwokctl, priority
from kumulus.runtimes.kwok.etcd_keys import EtcdKeys
from kumulus.runtimes.kwok.layout import Layout
from kumulus.runtimes.kwok.runtime import KwokRuntime
from kumulus.testing import keys, launching, template
from kumulus.testing.loop import in_daemon_thread
from kumulus.testing.reset import Baseline
from kumulus.testing.template import Template
from kumulus.toolchain import supply

SILENT_S = 30.0
"""Seconds for which the API server may be silent."""
_LOOK_EVERY_S = 0.01
# While the nodes are made, looking takes CPU time from that.
_LOOK_RARELY_S = 0.05
# Seconds without a change after which a new control plane is at rest.
_REST_S = 0.5
_FIRST_NAMESPACES = ("default", "kube-node-lease", "kube-public", "kube-system")
# Started as soon as the API server answers.
_BEFORE_READY = ("kwok-controller", "kube-scheduler")
# Started once the API server is quite ready: this one ends if that takes ten seconds.
_WHEN_READY = "kube-controller-manager"
# The API server looks a second after it serves whether it has these objects, and makes what is missing (v1.37.2,
# pkg/registry/rbac/rest/storage_rbac.go and scheduling/rest/storage_scheduling.go). A template has them, so that these
# checks of readiness need not be waited for.
_NOT_AWAITED = {
    "exclude": ("poststarthook/rbac/bootstrap-roles", "poststarthook/scheduling/bootstrap-system-priority-classes")
}


@asynccontextmanager
async def started(wanted: WantedControlPlane, report: Reporter) -> AsyncIterator[tuple[Observed, Client]]:
    """A control plane whose API server serves, with a client of it; all of it is ready when the block ends."""
    with ports.Claims() as claims:
        observed, client = await _start(wanted, report, claims)
        completing = asyncio.create_task(_complete(Layout(Path(observed.directory)), client))
        try:
            yield observed, client
            # The ports are claimed until all components listen on them.
            await completing
        except BaseException:
            completing.cancel()
            await asyncio.gather(completing, return_exceptions=True)
            await client.close()
            raise


async def _start(wanted: WantedControlPlane, report: Reporter, claims: ports.Claims) -> tuple[Observed, Client]:
    try:
        file = template.file_of(wanted) if keys.available() else None
    except toolchain.ToolchainError as error:
        raise ProviderError(str(error)) from None
    if file is None:
        return await _start_from_nothing(wanted, report)
    if found := await _start_from_file(file, wanted, report, claims):
        return found
    # Of several that start at once, one makes the template.
    async with _locked(file):
        found = await _start_from_file(file, wanted, report, claims)
        return found or await _start_from_nothing(wanted, report, file)


async def _start_from_file(
    file: Path, wanted: WantedControlPlane, report: Reporter, claims: ports.Claims
) -> tuple[Observed, Client] | None:
    """Start a control plane from its template; None without one, or with one that does not start, which is removed."""
    kept = template.read(file)
    if kept is None:
        return None
    try:
        return await _start_from_template(kept, wanted, report, claims)
    except ProviderError as error:
        await asyncio.to_thread(file.unlink, missing_ok=True)
        report.info(f"the template that an earlier cluster has left does not start, and is made anew: {error}")
        return None


async def _start_from_nothing(
    wanted: WantedControlPlane, report: Reporter, file: Path | None = None
) -> tuple[Observed, Client]:
    """Make a control plane by kwokctl, and keep it as a template.

    Args:
        file: where to keep the template; None for nowhere.
    """
    try:
        await in_daemon_thread(partial(supply.provide, ["kubectl"]))
    except toolchain.ToolchainError as error:
        raise ProviderError(str(error)) from None
    since = time.time()
    observed = await KwokRuntime().create(wanted, report, asyncio.Event())
    layout = Layout(Path(observed.directory))
    client = apiserver.client(Path(observed.kubeconfig), patience=SILENT_S)
    # It was started before the API server, and may be in a long pause now.
    launching.end(processes.running(layout.directory).get("kwok-controller", []))
    launching.launch(layout, ["kwok-controller"])
    await wait_until_filled(client, _FIRST_NAMESPACES)
    if file is not None:
        with EtcdKeys(layout) as etcd:
            at_rest = Baseline(etcd)
            await at_rest.take(_REST_S)
        # If it cannot be kept, the next start takes as long as this one.
        with suppress(OSError):
            await template.keep(file, layout, client, at_rest.entries(), since)
    return observed, client


async def _start_from_template(
    kept: Template, wanted: WantedControlPlane, report: Reporter, claims: ports.Claims
) -> tuple[Observed, Client]:
    began, layout = time.monotonic(), Layout.of(wanted.home, wanted.name)
    directories.prepare_home(layout)
    try:
        layout.directory.mkdir(mode=0o700)
        layout.write_note({"owner": wanted.owner})
        await asyncio.to_thread(keys.make, layout.directory / "pki")
        own_ports = {key: claims.take() for key in configuration.port_keys({})}
        kept.write(layout, own_ports)
        launching.launch(layout, ["etcd"])
        await _wait_for_listener(layout, own_ports["etcdPort"])
        authority = (layout.directory / "pki" / "ca.crt").read_text()
        with EtcdKeys(layout) as etcd:
            await asyncio.to_thread(etcd.write, kept.fresh(authority, own_ports), watched=False)
        launching.launch(layout, ["kube-apiserver"])
        await _wait_for_listener(layout, own_ports["kubeApiserverPort"])
        client = apiserver.client(layout.kubeconfig, patience=SILENT_S)
        try:
            identity = await _wait_until_ready(layout, client, _NOT_AWAITED)
            await _warm_up(client)
        except BaseException:
            await client.close()
            raise
        launching.launch(layout, _BEFORE_READY)
    except ports.NoFreePort as error:
        raise ProviderError(str(error)) from None
    except OSError as error:
        raise ProviderError(directories.os_error(error, layout)) from None
    report.status(f"control plane answers after {time.monotonic() - began:.1f} s", last=True)
    server = f"https://127.0.0.1:{own_ports['kubeApiserverPort']}"
    return Observed(identity, str(layout.kubeconfig), server, str(layout.directory), components={}), client


async def _warm_up(client: Client) -> None:
    """Have the API server make ready what kwok-controller watches first, before that has started.

    The first request for objects of a definition makes their storage. If that request is a watch, it is refused, and
    repeated after a second (v1.37.2 of k8s.io/apiserver, pkg/storage/cacher/cacher.go, Watch).
    """
    with suppress(ApiError, Unreachable):
        await client.get(STAGES, {"limit": "1"})


async def _complete(layout: Layout, client: Client) -> None:
    """Start what is still to be started, and wait until all is ready and listens."""
    await _wait_until_ready(layout, client, every=_LOOK_RARELY_S)
    if _WHEN_READY not in processes.running(layout.directory):
        launching.launch(layout, [_WHEN_READY])
        priority.lower(layout.directory)
    await asyncio.gather(*(_wait_for_listener(layout, port) for port in layout.ports().values()))


async def wait_until_filled(client: Client, namespaces: Sequence[str]) -> None:
    """Wait for what the controllers make in every new namespace: without a service account, pods are refused."""
    ends = time.monotonic() + SILENT_S
    paths = [
        f"/api/v1/namespaces/{namespace}/{what}"
        for namespace in namespaces
        for what in ("serviceaccounts/default", "configmaps/kube-root-ca.crt")
    ]
    while paths:
        try:
            await client.get(paths[-1])
            paths.pop()
        except ApiError as error:
            if error.status != 404 or time.monotonic() > ends:
                raise
            await asyncio.sleep(_LOOK_EVERY_S)


async def _wait_for_listener(layout: Layout, port: int) -> None:
    """Wait until a component listens on a port."""
    ends = time.monotonic() + SILENT_S
    while True:
        with suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
            return
        await _pause_for_start(layout, ends)


async def _wait_until_ready(
    layout: Layout, client: Client, without: Query | None = None, every: float = _LOOK_EVERY_S
) -> str:
    """Wait until the API server is ready; returns the cluster's identity.

    Args:
        without: checks of the server that are not waited for, as parameters of its `/readyz`.
        every: seconds between two looks.
    """
    ends = time.monotonic() + SILENT_S
    while True:
        with suppress(ApiError, Unreachable):
            await client.get("/readyz", without, patience=0)
            return await objects.identity(client)
        await _pause_for_start(layout, ends, every)


async def _pause_for_start(layout: Layout, ends: float, pause: float = _LOOK_EVERY_S) -> None:
    """Let a moment pass for components that are starting.

    Raises:
        ProviderError: one of them has ended, or the time is over.
    """
    if ended := kwokctl.missing_component(layout.directory):
        raise ProviderError(api.explain(layout, f"{ended} of cluster {layout.name} ended"))
    if time.monotonic() > ends:
        raise ProviderError(api.explain(layout, f"cluster {layout.name} does not start within {SILENT_S:.0f} s"))
    await asyncio.sleep(pause)


@asynccontextmanager
async def _locked(file: Path) -> AsyncIterator[None]:
    lock, descriptor = file.with_suffix(".lock"), None
    # Where nothing can be written, nobody makes a template that is worth waiting for.
    with suppress(OSError):
        descriptor, _ = await files.take_lock(lock)
    try:
        yield
    finally:
        if descriptor is not None:
            lock.unlink(missing_ok=True)
            os.close(descriptor)

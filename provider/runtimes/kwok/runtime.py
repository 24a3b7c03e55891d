"""The kwok runtime: create, read, repair and delete a local control plane."""

from __future__ import annotations

import asyncio
import errno
import fcntl
import os
import shutil
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import toolchain
from kube import ApiError, KubeconfigError, Unreachable
from provider.engine import Reporter
from provider.errors import ProviderError
from provider.runtimes.base import Observed, Runtime, Wanted
from provider.runtimes.kwok import (
    additions,
    configuration,
    handover,
    hung,
    kwokctl,
    objects,
    ports,
    priority,
    processes,
)
from provider.runtimes.kwok.layout import Layout, dump

if TYPE_CHECKING:
    from kube import Client

_NEEDED_BYTES = 1 << 30
_START_TIMEOUT = 90.0


class KwokRuntime(Runtime):
    """Local processes by kwokctl's binary runtime: no Docker, no root."""

    name: ClassVar[str] = "kwok"
    replaced_by: ClassVar[frozenset[str]] = configuration.REPLACED_BY

    def problems(self, options: dict[str, Any]) -> dict[str, str]:
        """See :meth:`Runtime.problems`."""
        return configuration.problems(options)

    def default_version(self) -> str:
        """See :meth:`Runtime.default_version`."""
        return f"v{toolchain.kubernetes_versions()[0]}"

    def version_problem(self, version: str) -> str | None:
        """See :meth:`Runtime.version_problem`."""
        versions = [f"v{version}" for version in toolchain.kubernetes_versions()]
        if version in versions:
            return None
        return f"Kubernetes {version} is not among the pinned versions; write one of {', '.join(versions)}"

    def kubeconfig_path(self, wanted: Wanted) -> str:
        """See :meth:`Runtime.kubeconfig_path`."""
        return str(Layout.of(wanted.home, wanted.name).kubeconfig)

    def configuration(self, wanted: Wanted) -> str:
        """See :meth:`Runtime.configuration`."""
        return configuration.fingerprint(wanted.options)

    async def create(self, wanted: Wanted, report: Reporter, stop: asyncio.Event) -> Observed:
        """See :meth:`Runtime.create`."""
        layout = Layout.of(wanted.home, wanted.name)
        self._prepare_home(layout)
        async with _exclusive(layout):
            await self._clear_leftover(layout, wanted, report)
            try:
                return await self._create(layout, wanted, report)
            except BaseException:
                # Cancelled or failed: nothing half-made may stay, and the record knows nothing of it.
                self._remove(layout)
                raise

    async def _create(self, layout: Layout, wanted: Wanted, report: Reporter) -> Observed:
        started = time.monotonic()
        chosen = wanted.options.get("apiServerPort")
        if chosen and ports.in_use(int(chosen)):
            raise ProviderError(
                f"port {chosen} (kwok.apiServerPort) is in use by {processes.listener(int(chosen))}; "
                "choose another port, or leave apiServerPort out to have a free one picked"
            )
        taken = {port for other in layout.directory.parent.glob("*") for port in Layout(other).ports().values()}
        try:
            with ports.Claims(avoid=taken) as claims:
                allotted = {key: claims.take() for key in configuration.port_keys(wanted.options)}
                documents = configuration.documents(wanted, allotted)
                layout.directory.mkdir(mode=0o700)
                layout.write_note({"owner": wanted.owner, "configuration": self.configuration(wanted)})
                request = layout.directory / "create.yaml"
                request.write_text(dump(documents))
                report.status(f"starting Kubernetes {wanted.kubernetes_version}")
                await kwokctl.run(
                    layout, "create", "cluster", "--config", str(request), "--kubeconfig", "", "--timeout", "90s"
                )
                _keep_private(layout)
                priority.lower(layout.directory)
                identity = await self._answering(layout, report)
                if configuration.custom_resources(wanted.options):
                    await self._add(layout, wanted)
        except ports.NoFreePort as error:
            raise ProviderError(str(error)) from None
        except toolchain.ToolchainError as error:
            raise ProviderError(str(error)) from None
        except ProviderError as error:
            raise ProviderError(_explain(layout, str(error))) from None
        except (ApiError, Unreachable) as error:
            raise ProviderError(_explain(layout, f"the API server of cluster {layout.name} fails: {error}")) from None
        except OSError as error:
            raise ProviderError(_os_error(error, layout)) from None
        report.status(f"control plane answers after {time.monotonic() - started:.1f} s", last=True)
        return self._observed(layout, identity)

    def _prepare_home(self, layout: Layout) -> None:
        try:
            # A home that is there already, such as /srv, keeps its mode: each cluster's directory is private anyway.
            layout.home.mkdir(mode=0o700, parents=True, exist_ok=True)
            layout.directory.parent.mkdir(mode=0o700, exist_ok=True)
            free = kwokctl.free_bytes(layout.home)
        except OSError as error:
            raise ProviderError(_os_error(error, layout)) from None
        if free < _NEEDED_BYTES:
            raise ProviderError(
                f"no disk space: {free / 2**20:,.0f} MiB free at {layout.home}, a control plane needs "
                f"{_NEEDED_BYTES / 2**20:,.0f} MiB; free some, or set KUMULUS_HOME to a directory on another disk"
            )

    async def _clear_leftover(self, layout: Layout, wanted: Wanted, report: Reporter) -> None:
        """Remove what a killed create of ours left; refuse to touch anybody else's cluster."""
        if not layout.directory.exists():
            # Where only the directory was removed, what ran from it would be taken for the new cluster's.
            self._end(layout)
            return
        owner = layout.note().get("owner")
        if owner == wanted.owner or (owner is None and not layout.kwok_file.exists()):
            report.status("removing what an interrupted run left behind")
            self._remove(layout)
            return
        raise ProviderError(
            f"a cluster named {layout.name!r} that this stack did not make is at {layout.directory}"
            + (f" (made by {owner})" if owner else "")
            + "; set another `name:` in kumulus:cluster, or destroy that one where it was made"
        )

    async def read(self, directory: str, kubeconfig: str, identity: str) -> Observed | None:
        """See :meth:`Runtime.read`."""
        layout = Layout(Path(directory))
        if not layout.kwok_file.exists() or not layout.kubeconfig.exists():
            return None
        found = self._observed(layout, identity)
        if found.components.get("kube-apiserver") != "running":
            return found
        try:
            actual = await _identity(layout, patience=2.0)
        except (ApiError, Unreachable, KubeconfigError):
            components = dict(found.components)
            if components.get("etcd") == "running":
                components["kube-apiserver"] = "unhealthy"
            return Observed(identity, found.kubeconfig, found.server, found.directory, components, found.configuration)
        if identity and actual != identity:
            return None
        return found

    async def repair(self, wanted: Wanted, identity: str, report: Reporter) -> Observed:
        """See :meth:`Runtime.repair`."""
        layout = Layout.of(wanted.home, wanted.name)
        if not layout.kwok_file.exists():
            raise ProviderError(
                f"cluster {layout.name} is gone from {layout.directory}; `pulumi up --refresh` makes it again"
            )
        async with _exclusive(layout):
            processes.end(processes.setting_up(layout.home, layout.name))
            await hung.end_hung(layout, report)
            if changed := layout.note().get("configuration") != self.configuration(wanted):
                await self._reconfigure(layout, wanted, report)
            alive = processes.running(layout.directory)
            dead = [name for name in layout.components() if name not in alive]
            for component, port in layout.ports().items():
                if component.split(" ")[0] in dead and ports.in_use(port):
                    raise ProviderError(
                        f"{component} of cluster {layout.name} cannot start: its port {port} is in use by "
                        f"{processes.listener(port)}; end that process and run `pulumi up --refresh` again"
                    )
            if dead:
                report.status(f"starting {', '.join(dead)}")
            await self._start(layout, wanted, report, changed=changed, hand_over="kwok-controller" in dead)
            actual = await self._answering(layout, report)
            if changed:
                # Last, so that a run that is killed before has it all done again.
                layout.write_note({**layout.note(), "configuration": self.configuration(wanted)})
            return self._observed(layout, actual)

    async def _start(self, layout: Layout, wanted: Wanted, report: Reporter, *, changed: bool, hand_over: bool) -> None:
        """Start what is dead; a new kwok-controller takes the nodes and pods over at once."""
        try:
            handed = hand_over and await _released(layout, patience=1.0)
            await self._start_components(layout)
            if hand_over and not handed:
                await self._answering(layout, report)
                processes.end(processes.running(layout.directory).get("kwok-controller", []))
                await _released(layout, patience=30.0)
                await self._start_components(layout)
            if changed:
                await self._answering(layout, report)
                async with _client(layout) as client:
                    await additions.apply(client, layout, wanted)
            if hand_over:
                report.status("handing nodes and pods over to the new kwok-controller")
                async with _client(layout) as client:
                    await handover.resume(client, everything=bool(configuration.custom_resources(wanted.options)))
        except ProviderError as error:
            raise ProviderError(_explain(layout, str(error))) from None
        except (ApiError, Unreachable) as error:
            raise ProviderError(_explain(layout, f"the API server of cluster {layout.name} fails: {error}")) from None

    async def _start_components(self, layout: Layout) -> None:
        processes.correct_pid_files(layout.directory, processes.running(layout.directory))
        # On a cluster that is there, but not all of it, `create` starts the rest and adds KWOK's definitions.
        defining = objects.is_defining(layout.settings())
        command = ["create", "cluster", "--kubeconfig", ""] if defining else ["start", "cluster"]
        await kwokctl.run(layout, *command, "--timeout", "90s")
        priority.lower(layout.directory)
        additions.defined(layout)

    async def _add(self, layout: Layout, wanted: Wanted) -> None:
        """Complete a control plane that kwokctl has just made."""
        additions.defined(layout)
        if wanted.options.get("podUsage"):
            additions.configure(layout, wanted, [])
            await self._start_components(layout)
        async with _client(layout) as client:
            await additions.apply(client, layout, wanted)

    async def _reconfigure(self, layout: Layout, wanted: Wanted, report: Reporter) -> None:
        """Write the controller's settings anew and end it; the start that follows makes it read them."""
        report.status("applying changed stages")
        undefined = await self._undefined(layout, configuration.custom_resources(wanted.options), report)
        try:
            additions.configure(layout, wanted, undefined)
        except (toolchain.ToolchainError, ports.NoFreePort) as error:
            raise ProviderError(str(error)) from None

    async def _undefined(self, layout: Layout, kinds: Sequence[str], report: Reporter) -> list[str]:
        """Which of KWOK's kinds the cluster has no definition of: kwokctl fails on one that is there."""
        if not kinds:
            return []
        alive = processes.running(layout.directory)
        try:
            if "etcd" not in alive or "kube-apiserver" not in alive:
                await self._start_components(layout)
                await self._answering(layout, report)
            async with _client(layout) as client:
                return await objects.undefined(client, kinds)
        except (ApiError, Unreachable) as error:
            raise ProviderError(_explain(layout, f"the API server of cluster {layout.name} fails: {error}")) from None

    async def delete(self, directory: str, owner: str, report: Reporter) -> None:
        """See :meth:`Runtime.delete`."""
        layout = Layout(Path(directory))
        if not layout.directory.exists():
            self._end(layout)
            return
        recorded = layout.note().get("owner")
        if recorded is not None and recorded != owner:
            report.warn(f"{layout.directory} now belongs to {recorded}; it is left alone")
            return
        if recorded is None and not layout.kwok_file.exists() and layout.directory.parent.name != "clusters":
            raise ProviderError(
                f"{layout.directory} does not look like a cluster of ours; it is left alone: remove it by hand"
            )
        async with _exclusive(layout):
            self._remove(layout)
        for empty in (layout.directory.parent, layout.home):
            with suppress(OSError):
                empty.rmdir()

    def _remove(self, layout: Layout) -> None:
        """End every process of the cluster and remove its directory."""
        self._end(layout)
        try:
            shutil.rmtree(layout.directory)
        except FileNotFoundError:
            pass
        except OSError as error:
            raise ProviderError(f"{layout.directory} cannot be removed: {error.strerror}") from None

    def _end(self, layout: Layout) -> None:
        """End every process of the cluster."""
        processes.end(processes.setting_up(layout.home, layout.name))
        processes.end([pid for group in processes.running(layout.directory).values() for pid in group])

    def _observed(self, layout: Layout, identity: str) -> Observed:
        alive = processes.running(layout.directory)
        states = {name: "running" if name in alive else "stopped" for name in layout.components()}
        port = layout.ports().get("kube-apiserver")
        return Observed(
            identity=identity,
            kubeconfig=str(layout.kubeconfig),
            server=f"https://127.0.0.1:{port}",
            directory=str(layout.directory),
            components=states,
            configuration=layout.note().get("configuration", ""),
        )

    async def _answering(self, layout: Layout, report: Reporter) -> str:
        """Wait until the API server is ready and return the cluster's identity; give up when a component died."""
        deadline = time.monotonic() + _START_TIMEOUT
        while True:
            try:
                return await _identity(layout, patience=1.0)
            except (ApiError, Unreachable, KubeconfigError) as error:
                alive = processes.running(layout.directory)
                dead = [name for name in layout.components() if name not in alive]
                if dead:
                    raise ProviderError(_explain(layout, f"{dead[0]} of cluster {layout.name} ended")) from None
                if time.monotonic() > deadline:
                    raise ProviderError(_explain(layout, f"the API server is not ready: {error}")) from None
                report.status("waiting for the API server")


def _client(layout: Layout, *, patience: float = 60.0, request_timeout: float = 30.0) -> Client:
    # Imported here: a plugin that only compares properties needs no HTTP library.
    from kube import Client, load_kubeconfig

    return Client(load_kubeconfig(layout.kubeconfig), patience=patience, request_timeout=request_timeout)


async def _identity(layout: Layout, patience: float) -> str:
    """UID of the kube-system namespace, once the API server is ready and has made it."""
    async with _client(layout, patience=patience, request_timeout=5.0) as client:
        deadline = time.monotonic() + patience
        await client.get("/readyz", patience=patience)
        while True:
            try:
                namespace = await client.get("/api/v1/namespaces/kube-system")
                return str(namespace["metadata"]["uid"])
            except ApiError as error:
                if error.status != 404 or time.monotonic() > deadline:
                    raise
                await asyncio.sleep(0.05)


async def _released(layout: Layout, patience: float) -> bool:
    """Whether the leases of a kwok-controller that ended could be removed."""
    async with _client(layout, patience=patience) as client:
        return await handover.release(client)


@asynccontextmanager
async def _exclusive(layout: Layout) -> AsyncIterator[None]:
    """Let only one run at a time change a cluster; the kernel frees the lock when its holder ends.

    Asked for again and again rather than waited for: a wait in the kernel would stop the whole plugin, and the other
    run may be one of its own.
    """
    path = layout.home / "clusters" / f".{layout.name}.lock"
    while True:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        lock = os.open(path, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(lock)
            await asyncio.sleep(0.1)
            continue
        if path.exists() and os.stat(path).st_ino == os.fstat(lock).st_ino:
            break
        os.close(lock)  # its last holder removed the file: what was locked is no longer the lock
    try:
        yield
    finally:
        if not layout.directory.exists():
            path.unlink(missing_ok=True)
        os.close(lock)


def _keep_private(layout: Layout) -> None:
    """Keys and kubeconfigs are for their owner only, whatever kwokctl's own modes are."""
    for path in [layout.kubeconfig, layout.kwok_file, *(layout.directory / "pki").glob("*")]:
        path.chmod(0o600)
    layout.directory.chmod(0o700)


def _explain(layout: Layout, message: str) -> str:
    """Add the last log lines of components that are not running: that is where the reason stands."""
    if "log of" in message:
        return message
    alive = processes.running(layout.directory)
    for name in layout.components():
        if name not in alive and (tail := layout.log_tail(name)):
            return f"{message}\n  last lines of the log of {name}:\n{tail}"
    return message


def _os_error(error: OSError, layout: Layout) -> str:
    if error.errno == errno.ENOSPC:
        return f"no disk space left at {layout.home}; free some, or set KUMULUS_HOME to a directory on another disk"
    reason = error.strerror or str(error) or type(error).__name__
    return f"{error.filename or layout.directory}: {reason}; KUMULUS_HOME can name another directory"

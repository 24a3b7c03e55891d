"""One pod that is processes: from its beginning to its end."""

from __future__ import annotations

import asyncio
import contextlib
import shutil
import signal
import time
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kumulus.extras.processes import containers, probes
from kumulus.extras.processes.containers import Manifest, Missing
from kumulus.extras.processes.outside import Sandbox, SandboxError
from kumulus.extras.processes.status import PodStatus, RunningContainer
from kumulus.extras.processes.volumes import Volumes
from kumulus.kube import ApiError, Unreachable
from kumulus.kube.errors import tolerating
from kumulus.model.durations import timestamp

if TYPE_CHECKING:
    from kumulus.kube import Client

_REFRESHED_EVERY = 2.0
_SETTLED = 600.0
_LONGEST_BACKOFF = 300.0
_LOG_BYTES = 10 << 20


class ProcessPod:
    """A pod of the node `local`.

    Args:
        folder: for its files; made, and removed by :meth:`end`.
        programs: the programs' files, by image.
    """

    def __init__(
        self,
        client: Client,
        pod: Manifest,
        folder: Path,
        address: str,
        api: tuple[str, int],
        programs: Mapping[str, str],
    ) -> None:
        self._client = client
        self.pod = pod
        self.folder = folder
        self.address = address
        self._api = api
        self._programs = programs
        self._volumes = Volumes(client, pod, folder / "volumes", address)
        spec = pod["spec"]
        self._first = [self._container(each) for each in spec.get("initContainers") or []]
        self.containers = [self._container(each) for each in spec["containers"]]
        self._all = [*self._first, *self.containers]
        self.sandbox: Sandbox | None = None
        self._status = PodStatus(address, self._first, self.containers)
        self._published: dict[str, Any] = {}
        self._news = asyncio.Event()
        self._tasks = [asyncio.create_task(each) for each in (self._life(), self._publishing())]
        self._ending: asyncio.Task[None] | None = None

    def _container(self, spec: Manifest) -> RunningContainer:
        return RunningContainer(spec, self.folder / f"{spec['name']}.log")

    def log_of(self, name: str) -> Path | None:
        """The file with a container's output; None if there is no such container."""
        return next((each.log for each in self._all if each.name == name), None)

    def end(self, grace: float, *, delete: bool) -> asyncio.Task[None]:
        """End the pod's processes; begun once, whoever asks how often.

        SIGKILL comes ``grace`` seconds after SIGTERM; with ``delete``, the object waits to be deleted afterwards.
        """
        if self._ending is None:
            self._ending = asyncio.create_task(self._end(grace, delete))
        return self._ending

    async def _life(self) -> None:
        while True:
            await self._prepared()
            refreshing = asyncio.create_task(self._refreshing())
            try:
                await self._contents()
                return
            except* SandboxError as errors:
                self._waits("RunContainerError", str(errors.exceptions[0]))
            finally:
                refreshing.cancel()
                if self.sandbox:
                    self.sandbox.close()
                    self.sandbox = None
            await asyncio.sleep(_REFRESHED_EVERY)

    async def _contents(self) -> None:
        for each in self._first:
            if await self._supervise(each, always=False) != 0:
                return
        async with asyncio.TaskGroup() as group:
            for each in self.containers:
                group.create_task(self._supervise(each, always=True))

    def _waits(self, reason: str, why: str) -> None:
        for each in self._all:
            each.state, each.ready = {"waiting": {"reason": reason, "message": why}}, False
        self._news.set()

    async def _prepared(self) -> None:
        """Make the sandbox and the volumes, as soon as all that they need is there."""
        while True:
            try:
                containers.require(self.pod, self._programs)
                shutil.rmtree(self.folder, ignore_errors=True)
                (self.folder / "volumes").mkdir(parents=True, mode=0o700)
                await self._volumes.write()
                name = self.pod["metadata"]["name"]
                self.sandbox = await Sandbox.start(self.folder / "sandbox.log", self.address, self._api, name)
                return
            except (Missing, SandboxError, ApiError, Unreachable, OSError) as error:
                self._waits("CreateContainerConfigError", str(error))
                await asyncio.sleep(_REFRESHED_EVERY)

    async def _refreshing(self) -> None:
        while True:
            await asyncio.sleep(_REFRESHED_EVERY)
            with contextlib.suppress(Missing, ApiError, Unreachable, OSError):
                await self._volumes.write()
            for each in self._all:
                with contextlib.suppress(OSError):
                    if each.log.stat().st_size > _LOG_BYTES:
                        # Its program appends to it.
                        each.log.write_bytes(b"")

    async def _supervise(self, container: RunningContainer, *, always: bool) -> int:
        """Run a container, again and again if its pod asks for it; returns the last exit code."""
        policy = self.pod["spec"].get("restartPolicy", "Always")
        delay = 0.0
        while True:
            began, code = time.monotonic(), await self._once(container)
            if self._ending or policy == "Never" or (code == 0 and (policy == "OnFailure" or not always)):
                return code
            delay = 0.0 if time.monotonic() - began > _SETTLED else delay
            if delay:
                container.last = container.state
                message = f"back-off {delay:.0f}s restarting failed container={container.name}"
                container.state = {"waiting": {"reason": "CrashLoopBackOff", "message": message}}
                self._news.set()
                await asyncio.sleep(delay)
            # As a kubelet: at once, then after 10 s, and twice as long each time.
            delay = min(max(10.0, 2 * delay), _LONGEST_BACKOFF)
            container.restarts += 1

    async def _once(self, container: RunningContainer) -> int:
        assert self.sandbox
        asked = None
        while asked is None:
            try:
                asked = await self._process(container)
            except (Missing, ApiError, Unreachable) as error:
                container.state = {"waiting": {"reason": "CreateContainerConfigError", "message": str(error)}}
                self._news.set()
                await asyncio.sleep(_REFRESHED_EVERY)
        container.pid = await self.sandbox.run(asked)
        if "terminated" in container.state:
            container.last = container.state
        started = timestamp()
        container.state = {"running": {"startedAt": started}}
        probing = asyncio.create_task(self._probed(container, container.pid, asked))
        try:
            code = await self.sandbox.ended(container.pid)
        finally:
            probing.cancel()
        reason = "Completed" if code == 0 else "Error"
        container.state = {
            "terminated": {"exitCode": code, "reason": reason, "startedAt": started, "finishedAt": timestamp()}
        }
        container.ready = container.started = False
        self._news.set()
        return code

    async def _process(self, container: RunningContainer) -> dict[str, Any]:
        spec, found = container.spec, {}
        for source in [*(spec.get("envFrom") or []), *(each.get("valueFrom") or {} for each in spec.get("env") or [])]:
            for key, reference in source.items():
                kind = key.removesuffix("KeyRef").removesuffix("Ref")
                if kind in ("configMap", "secret"):
                    data = await self._volumes.referred(kind, reference)
                    found[kind, reference["name"]] = {name: value.decode() for name, value in data.items()}
        variables = containers.environment(
            self.pod, spec, self.address, self._api[1], lambda kind, reference: found[kind, reference["name"]]
        )
        line = containers.command(spec, variables)
        root = self.folder / "root" / container.name
        root.mkdir(parents=True, exist_ok=True)
        program = self._programs[containers.repository(spec["image"])]
        return {
            "name": container.name,
            "program": line[0],
            "arguments": line,
            "environment": variables,
            "root": str(root),
            "directory": containers.inside(spec.get("workingDir", "")),
            "log": str(container.log),
            "mounts": containers.mounts(spec, program, line[0], str(self._volumes.folder)),
        }

    async def _probed(self, container: RunningContainer, pid: int, asked: dict[str, Any]) -> None:
        """Ask the container's probes: first that of its start, then the others."""
        sandbox, spec = self.sandbox, container.spec
        assert sandbox

        async def execute(line: list[str]) -> int:
            return await sandbox.ended(await sandbox.run({**asked, "program": line[0], "arguments": line}))

        def kill(well: bool) -> None:
            if not well:
                asyncio.get_running_loop().create_task(self._killed(pid))

        def ready(well: bool) -> None:
            container.ready = well
            self._news.set()

        if "startupProbe" in spec:
            done = asyncio.Event()
            starting = asyncio.create_task(
                probes.follow(sandbox, spec, "startupProbe", execute, lambda well: done.set() if well else kill(well))
            )
            try:
                await done.wait()
            finally:
                starting.cancel()
        container.started = True
        ready("readinessProbe" not in spec)
        await asyncio.gather(
            *(
                probes.follow(sandbox, spec, kind, execute, heard)
                for kind, heard in (("livenessProbe", kill), ("readinessProbe", ready))
                if kind in spec
            )
        )

    async def _killed(self, pid: int, grace: float | None = None) -> None:
        # The pod's life may end, and its sandbox with it, while this waits.
        sandbox = self.sandbox
        if sandbox is None:
            return
        if grace is None:
            grace = self.pod["spec"].get("terminationGracePeriodSeconds", 30)
        with contextlib.suppress(SandboxError):
            sandbox.signal(pid, signal.SIGTERM)
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(sandbox.ended(pid), grace)
            sandbox.signal(pid, signal.SIGKILL)

    async def _end(self, grace: float, delete: bool) -> None:
        if self.sandbox and grace > 0:
            running = [each.pid for each in self.containers if "running" in each.state]
            await asyncio.gather(*(self._killed(pid, grace) for pid in running))
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        shutil.rmtree(self.folder, ignore_errors=True)
        if delete:
            metadata = self.pod["metadata"]
            gone = {"gracePeriodSeconds": 0, "preconditions": {"uid": metadata["uid"]}}
            with tolerating(404, 409):
                await self._client.delete(f"{_path(metadata)}", gone)

    async def _publishing(self) -> None:
        """Write the status whenever it has changed."""
        while True:
            self._news.clear()
            status = self._status.written(self.pod, has_sandbox=self.sandbox is not None)
            if status != self._published:
                try:
                    await self._client.merge_patch(f"{_path(self.pod['metadata'])}/status", {"status": status})
                    self._published = status
                except ApiError as error:
                    if error.status == 404:
                        return
                    await asyncio.sleep(_REFRESHED_EVERY)
                    continue
                except Unreachable:
                    continue
            await self._news.wait()


def _path(metadata: Manifest) -> str:
    return f"/api/v1/namespaces/{metadata['namespace']}/pods/{metadata['name']}"

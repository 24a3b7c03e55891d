"""``AsyncCluster``: an emulated cluster for as long as a block or a test runs, for programs with an event loop."""

import asyncio
import inspect
import os
import subprocess
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AbstractContextManager, asynccontextmanager
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar, overload

from kumulus.host import installation
from kumulus.kube import ApiError, Client, Unreachable
from kumulus.kube.objects import NODES, inside
from kumulus.nodes.errors import ProviderError
from kumulus.nodes.pools.result import explain
from kumulus.stackfile.model import ClusterSpec
from kumulus.testing import canaries, faults, programs, wanted
from kumulus.testing import manifests as applying
from kumulus.testing.errors import NOT_UP, ClusterError, NotInTime
from kumulus.testing.facts import ClusterFacts
from kumulus.testing.manifests import Manifests
from kumulus.testing.plane import EXPERIMENTS, Plane, PlaneReporter, provide, start
from kumulus.testing.points import START, Points
from kumulus.testing.reset import Reset
from kumulus.testing.views import Event, Node, Pod, events_of, last_events
from kumulus.testing.wanted import Nodes, Spec, resized

T = TypeVar("T")
_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 0.02, 0.25
_SHOWN_EVENTS = 12
_THIS_PROCESS = -1


def _silent(line: str) -> None:
    pass


class AsyncCluster(ClusterFacts):
    """An emulated cluster: etcd, the Kubernetes control plane, and nodes by KWOK, as processes on this machine.

    ::

        async with AsyncCluster(nodes={"h100": 100}) as cluster:
            await cluster.apply("operator.yaml")

    It ends with its block, and with this process however that ends. All that it keeps is in a temporary folder.

    Args:
        spec: what a stack file has below `kumulus:cluster`, as a mapping; or the path of a stack file.
        nodes: how many plain nodes; or how many of each instance type or GPU.
        cluster: which of a stack file's clusters, if it has several.
        say: takes lines of progress.
        ends_with: the id of another process that it ends with, instead of this one; None for none.
        sections: further sections of the spec, such as `kubernetesVersion="1.36.4"`.

    Raises:
        ClusterError: something of it is wrong; the message lists every problem, its place and the remedy.
    """

    namespace = "default"
    """Where objects go that name no namespace."""
    # The namespace to which resets, marks, pods and events are limited; empty for the whole cluster.
    _within = ""

    def __init__(
        self,
        spec: Spec | None = None,
        *,
        nodes: Nodes | None = None,
        cluster: str = "",
        say: Callable[[str], None] = _silent,
        ends_with: int | None = _THIS_PROCESS,
        **sections: Any,
    ) -> None:
        self._loaded = wanted.loaded(spec, nodes, cluster, sections)
        self._ends_with = os.getpid() if ends_with == _THIS_PROCESS else ends_with
        self._report = PlaneReporter(say)
        self._plane: Plane | None = None
        self._points: Points | None = None
        self._faults_begun = 0
        self._programs: list[programs.Program] = []

    async def __aenter__(self) -> Self:
        return await self.start()

    async def __aexit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        await self.stop()

    async def start(self) -> Self:
        """Start it, and wait until every node is Ready and takes pods; nothing happens when it is up.

        Raises:
            ClusterError: it does not start; nothing of it is left.
        """
        if self._plane is not None:
            return self
        self._plane = await self._start_plane()
        try:
            self._points = Points(self._plane, self._within)
            await self._answer_of(self._points.mark(START))
        except BaseException:
            await self.stop()
            raise
        return self

    async def _start_plane(self) -> Plane:
        return await start(self._loaded, self._ends_with, self._report)

    def provide(self) -> None:
        """Get the programs that it needs, if they are missing, as its start does."""
        provide(self._loaded)

    async def stop(self) -> None:
        """End its processes and remove its folder; nothing happens when it is not up, or is kept."""
        plane, self._plane = self._plane, None
        if self._points is not None:
            self._points.close()
            self._points = None
        if plane is not None:
            await plane.stop()

    @property
    def spec(self) -> ClusterSpec:
        """What it was asked to be like."""
        return self._loaded.spec

    @property
    def _up(self) -> Plane:
        if self._plane is None:
            raise ClusterError(NOT_UP)
        return self._plane

    @property
    def client(self) -> Client:
        """A client of its API server, to be used on the event loop that started it."""
        return self._up.client

    def run(self, *command: str) -> AbstractContextManager[subprocess.Popen[bytes]]:
        """A program, such as an operator, with the cluster's kubeconfig as KUBECONFIG, for as long as the block runs.

        It also ends with the thread that started it, and with this process, however that ends.

        Args:
            command: its name or path, and its arguments.

        Raises:
            ClusterError: there is no such program; or at the end of a block that has no error itself, the program has
                ended by itself with another exit code than 0.
        """
        return programs.running(command, {**os.environ, **self.env}, self._programs)

    async def apply(self, manifests: Manifests, *, namespace: str = "") -> list[dict[str, Any]]:
        """Apply manifests on the server's side, in their order; returns the objects as they are stored.

        Args:
            manifests: a mapping, several, the text of a YAML file, or the path of one or of a folder of them.
            namespace: for namespaced objects that name none; by default the cluster's `namespace`.

        Raises:
            ClusterError: one is none, cannot be read, is of an unknown kind, or is refused.
        """
        return await self._answer_of(applying.apply(self.client, manifests, namespace or self.namespace))

    @overload
    async def wait(self, condition: Callable[[], Awaitable[T]], *, timeout: float = ..., what: str = ...) -> T: ...

    @overload
    async def wait(self, condition: Callable[[], T], *, timeout: float = ..., what: str = ...) -> T: ...

    async def wait(self, condition: Callable[[], Any], *, timeout: float = 30.0, what: str = "") -> Any:
        """Wait until a condition is true; returns what it came to.

        Args:
            condition: called again and again; one that fails an assertion is not true yet.
            timeout: seconds.
            what: what is waited for, for the error.

        Raises:
            NotInTime: it was not true in time; the message has the last assertion and the cluster's last events.
            ClusterError: it was not true, and a program of `run` has ended by itself with an error.
        """
        name = what or getattr(condition, "__name__", "the condition")
        ends = time.monotonic() + timeout
        pause = _FIRST_PAUSE_S
        last_assertion = ""
        while True:
            try:
                answer = condition()
                found = await answer if inspect.isawaitable(answer) else answer
                if found:
                    return found
            except AssertionError as error:
                last_assertion = f": {error}" if str(error) else ""
            for program in list(self._programs):
                program.raise_if_failed(f", while {name} was waited for")
            if time.monotonic() > ends:
                break
            await asyncio.sleep(pause)
            # A condition that reads thousands of pods should not keep the cluster busy.
            pause = min(_LONGEST_PAUSE_S, pause * 1.2)
        events = "".join(f"\n  {each}" for each in last_events(await self.events(), _SHOWN_EVENTS)) or " none"
        raise NotInTime(f"{name} was not true within {timeout:g} s{last_assertion}; the last events:{events}")

    async def nodes(self, selector: str = "") -> list[Node]:
        """Its nodes, or those that a label selector selects."""
        return [Node(each) for each in await self._list(NODES, selector)]

    async def pods(self, namespace: str = "", selector: str = "") -> list[Pod]:
        """Its pods, or those of a namespace or that a label selector selects."""
        return [Pod(each) for each in await self._list(_path("pods", namespace or self._within), selector)]

    async def events(self) -> list[Event]:
        """Its events, the latest last; those about a reset's own objects are left out."""
        found = events_of(await self._list(_path("events", self._within), ""))
        return [each for each in found if not each.name.startswith(canaries.NAME)]

    @asynccontextmanager
    async def fault(
        self, kind: str = "", *, nodes: faults.Target = None, **fields: Any
    ) -> AsyncIterator[faults.AsyncFaultHandle]:
        """A fault for as long as the block runs.

        Args:
            kind: an entry of the catalog (docs/faults.md); empty for effects of its own.
            nodes: how many nodes, which ones by name, or a `target` as in a stack file; all nodes if left out.
            fields: the other fields of a fault in a stack file, such as `conditions`, `pods` or `delay`.

        Raises:
            ClusterError: there is no such kind, or it contradicts a fault that is active.
        """
        self._faults_begun += 1
        name = f"{kind or 'fault'}-{self._faults_begun}"
        names = await self._answer_of(faults.begin(self._up, faults.fault_item(name, kind, nodes, fields)))
        try:
            yield faults.AsyncFaultHandle(name, names, self.nodes)
        finally:
            if self._plane is not None:
                await self._answer_of(faults.end(self._plane, name))

    async def resize(self, nodes: int | Mapping[str, int]) -> None:
        """Change how many nodes there are; `reset` takes that back.

        Args:
            nodes: the number for the only pool, or numbers by node group or pool.

        Raises:
            ClusterError: there is no such group or pool, or the nodes could not all be made or removed.
        """
        plane = self._up
        for pool in resized(plane.pools, nodes):
            await self._answer_of(plane.converge(pool))

    async def experiment(self, description: str | Path | Mapping[str, Any]) -> dict[str, Any]:
        """Run an experiment on it; returns its report (docs/experiments.md).

        Args:
            description: an experiment file, or the contents of one.

        Raises:
            ClusterError: it is wrong, or cannot be run; or what experiments need is not installed.
        """
        try:
            from kumulus.extras.lab.experiment import Experiment
        except ImportError as error:
            way = installation.way_to_add("lab")
            raise ClusterError(f"experiments need more packages ({error}); to get them: {way}") from None
        results, kubeconfig = self._up.folder / EXPERIMENTS, self.kubeconfig
        try:
            run = Experiment(description).run
            return await asyncio.to_thread(run, kubeconfig, results=results, stack=self._loaded.cluster_name)
        except (ValueError, RuntimeError, OSError) as error:
            raise ClusterError(str(error)) from None

    async def mark(self, name: str) -> None:
        """Remember it as it is now, for `reset(to=name)`; waits until nothing in it changes any more.

        Raises:
            ClusterError: there is a point of that name; or something is changed again and again.
        """
        await self._answer_of(self._marks.mark(name))

    async def reset(self, to: str = START) -> Reset:
        """Put everything back to what it was when the cluster had started: all objects, nodes and faults.

        What a webhook or a finalizer would hold back is removed all the same, and named in the result.

        Args:
            to: a point that was marked, if not the start.

        Raises:
            ClusterError: there is no such point; something is changed again and again by a program outside; or the
                cluster does not answer.
        """
        return await self._answer_of(self._marks.reset(to))

    @property
    def _marks(self) -> Points:
        if self._points is None:
            raise ClusterError(NOT_UP)
        return self._points

    async def _list(self, path: str, selector: str) -> list[dict[str, Any]]:
        params = {"labelSelector": selector} if selector else None
        return await self._answer_of(_pages(self.client, path, params))

    async def _answer_of(self, request: Awaitable[T]) -> T:
        """What the cluster answers to a request; whatever goes wrong is a ClusterError."""
        try:
            return await request
        except ProviderError as error:
            raise ClusterError(str(error)) from None
        except ApiError as error:
            raise ClusterError(explain(error)) from None
        except Unreachable as error:
            logs = f"\n{self.logs(lines=3)}" if self._plane else ""
            raise ClusterError(f"{error}; start another cluster{logs}") from None


def _path(plural: str, namespace: str) -> str:
    return f"/api/v1{inside(namespace)}/{plural}"


async def _pages(client: Client, path: str, params: Mapping[str, str] | None) -> list[dict[str, Any]]:
    return [each async for page in client.pages(path, params) for each in page]

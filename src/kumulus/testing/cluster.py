"""``Cluster``: an emulated cluster for as long as a block or a test runs."""

from __future__ import annotations

import asyncio
import subprocess
from collections.abc import Callable, Coroutine, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar

from kumulus.kube import Client
from kumulus.kube.codecs import MERGE_PATCH
from kumulus.testing import faults
from kumulus.testing.asynchronous import AsyncCluster
from kumulus.testing.errors import NOT_UP, ClusterError
from kumulus.testing.facts import ClusterFacts
from kumulus.testing.loop import Loop
from kumulus.testing.manifests import Manifests
from kumulus.testing.plane import Plane
from kumulus.testing.points import START
from kumulus.testing.reset import Reset
from kumulus.testing.views import Event, Node, Pod
from kumulus.testing.wanted import Nodes, Spec

T = TypeVar("T")


class Cluster(ClusterFacts):
    """An emulated cluster: etcd, the Kubernetes control plane, and nodes by KWOK, as processes on this machine.

    ::

        with Cluster(nodes={"h100": 100}) as cluster:
            cluster.apply("operator.yaml")
            with cluster.fault("gpu-fell-off-bus", nodes=3) as broken:
                cluster.wait(lambda: all(node.unschedulable for node in broken.nodes))

    Arguments and errors are those of :class:`kumulus.testing.AsyncCluster`, whose methods wait here for their results.
    """

    def __init__(self, spec: Spec | None = None, *, nodes: Nodes | None = None, cluster: str = "", **more: Any) -> None:
        self._async_cluster = AsyncCluster(spec, nodes=nodes, cluster=cluster, **more)
        self._loop: Loop | None = None

    @classmethod
    def of(cls, cluster: AsyncCluster) -> Self:
        """A cluster that is not up yet, for callers without an event loop."""
        made = cls.__new__(cls)
        made._async_cluster, made._loop = cluster, None
        return made

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        self.stop()

    def start(self) -> Self:
        """See :meth:`AsyncCluster.start`."""
        # Ctrl-C ends a download or a build in this thread; one in a thread of the loop would go on.
        self._async_cluster.provide()
        self._loop = self._loop or Loop()
        try:
            self._loop.run(self._async_cluster.start())
        except BaseException:
            self.stop()
            raise
        return self

    def stop(self) -> None:
        """See :meth:`AsyncCluster.stop`."""
        if self._loop is not None:
            loop, self._loop = self._loop, None
            try:
                loop.run(self._async_cluster.stop())
            finally:
                loop.close()

    @property
    def _up(self) -> Plane:
        return self._async_cluster._up

    @property
    def client(self) -> Api:
        """A client of its API server."""
        return Api(self._async_cluster.client, self._run)

    @property
    def namespace(self) -> str:
        """See :attr:`AsyncCluster.namespace`."""
        return self._async_cluster.namespace

    def run(self, *command: str) -> AbstractContextManager[subprocess.Popen[bytes]]:
        """See :meth:`AsyncCluster.run`."""
        return self._async_cluster.run(*command)

    def apply(self, manifests: Manifests, *, namespace: str = "") -> list[dict[str, Any]]:
        """See :meth:`AsyncCluster.apply`."""
        return self._run(self._async_cluster.apply(manifests, namespace=namespace))

    def wait(self, condition: Callable[[], T], *, timeout: float = 30.0, what: str = "") -> T:
        """See :meth:`AsyncCluster.wait`."""

        async def in_thread() -> T:
            # The condition itself uses this cluster, so it needs another thread than the event loop's.
            return await asyncio.to_thread(condition)

        return self._run(self._async_cluster.wait(in_thread, timeout=timeout, what=what or _name_of(condition)))

    def nodes(self, selector: str = "") -> list[Node]:
        """See :meth:`AsyncCluster.nodes`."""
        return self._run(self._async_cluster.nodes(selector))

    def pods(self, namespace: str = "", selector: str = "") -> list[Pod]:
        """See :meth:`AsyncCluster.pods`."""
        return self._run(self._async_cluster.pods(namespace, selector))

    def events(self) -> list[Event]:
        """See :meth:`AsyncCluster.events`."""
        return self._run(self._async_cluster.events())

    @contextmanager
    def fault(self, kind: str = "", *, nodes: faults.Target = None, **fields: Any) -> Iterator[FaultHandle]:
        """See :meth:`AsyncCluster.fault`."""
        active = self._async_cluster.fault(kind, nodes=nodes, **fields)
        handle = self._run(active.__aenter__())
        try:
            yield FaultHandle(handle, self._run)
        finally:
            self._run(active.__aexit__(None, None, None))

    def resize(self, nodes: int | Mapping[str, int]) -> None:
        """See :meth:`AsyncCluster.resize`."""
        self._run(self._async_cluster.resize(nodes))

    def experiment(self, description: str | Path | Mapping[str, Any]) -> dict[str, Any]:
        """See :meth:`AsyncCluster.experiment`."""
        return self._run(self._async_cluster.experiment(description))

    def mark(self, name: str) -> None:
        """See :meth:`AsyncCluster.mark`."""
        self._run(self._async_cluster.mark(name))

    def reset(self, to: str = START) -> Reset:
        """See :meth:`AsyncCluster.reset`."""
        return self._run(self._async_cluster.reset(to))

    def _run(self, work: Coroutine[Any, Any, T]) -> T:
        if self._loop is None:
            work.close()
            raise ClusterError(NOT_UP)
        return self._loop.run(work)


class FaultHandle:
    """A fault that is active.

    Attributes:
        name: its name.
        names: of its nodes.
    """

    def __init__(self, of: faults.AsyncFaultHandle, run: Callable[[Any], Any]) -> None:
        self._async_handle, self._run = of, run
        self.name, self.names = of.name, of.names

    @property
    def nodes(self) -> list[Node]:
        """Its nodes, as they are now."""
        found: list[Node] = self._run(self._async_handle.nodes())
        return found


class Api:
    """A client of an API server by paths, such as `/api/v1/nodes`; its answers are the decoded JSON.

    A refusal is raised as :class:`kumulus.kube.ApiError`, which has `status`, `reason` and `message`.
    """

    def __init__(self, client: Client, run: Callable[[Any], Any]) -> None:
        self._client, self._run = client, run

    def get(self, path: str, params: Mapping[str, str] | None = None) -> Any:
        """GET an object or a list."""
        return self._run(self._client.get(path, params))

    def create(self, path: str, body: Mapping[str, Any]) -> Any:
        """POST an object; returns it as stored."""
        return self._run(self._client.create(path, body))

    def patch(self, path: str, body: Mapping[str, Any], content_type: str = MERGE_PATCH) -> Any:
        """PATCH an object, by a JSON merge patch unless said otherwise."""
        return self._run(self._client.request("PATCH", path, body=body, content_type=content_type))

    def put(self, path: str, body: Mapping[str, Any]) -> Any:
        """PUT an object in the place of another."""
        return self._run(self._client.request("PUT", path, body=body))

    def delete(self, path: str, body: Mapping[str, Any] | None = None) -> None:
        """DELETE an object; the body is its DeleteOptions."""
        self._run(self._client.delete(path, body))


def _name_of(condition: Callable[[], object]) -> str:
    name = getattr(condition, "__name__", "")
    return "the condition" if name in ("", "<lambda>") else name

"""``Pool``: clusters that are kept warm, for those who need one after the other at once."""

import queue
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from types import TracebackType
from typing import Any, Self

from kumulus.testing.cluster import Cluster
from kumulus.testing.errors import ClusterError


class Pool:
    """Several clusters that are all alike; each is put back to what it was before it is leased again.

    ::

        with Pool(size=4, nodes=30) as pool, pool.lease() as cluster:
            cluster.apply("operator.yaml")

    Args:
        size: how many.
        asked: what they are like, as arguments of :class:`Cluster`.

    Raises:
        ClusterError: something of it is wrong.
    """

    def __init__(self, size: int, **asked: Any) -> None:
        if size < 1:
            raise ClusterError(f"size is {size}; write 1 or more")
        self._clusters = [Cluster(**asked) for _ in range(size)]
        # With what kept it from being put back.
        self._ready: queue.SimpleQueue[tuple[Cluster, Exception | None]] = queue.SimpleQueue()
        self._workers = ThreadPoolExecutor(size, thread_name_prefix="kumulus-pool")

    def __enter__(self) -> Self:
        """Start all of them, and wait until they are up.

        Raises:
            ClusterError: one does not start; none is left.
        """
        try:
            for started in [self._workers.submit(each.start) for each in self._clusters]:
                self._ready.put((started.result(), None))
        except BaseException:
            self._end()
            raise
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        self._end()

    @contextmanager
    def lease(self, timeout: float | None = None) -> Iterator[Cluster]:
        """A cluster for as long as the block runs, as new; waits for one while all are leased.

        Args:
            timeout: seconds after which it gives up; None for never.

        Raises:
            ClusterError: none became free in time, or the next one could not be put back.
        """
        try:
            cluster, failure = self._ready.get(timeout=timeout)
        except queue.Empty:
            raise ClusterError(f"no cluster became free within {timeout:g} s; make the pool larger") from None
        if failure is not None:
            # It is tried again for whoever comes next.
            self._workers.submit(self._put_back, cluster)
            raise failure
        try:
            yield cluster
        finally:
            # Put back in the background: whoever leases next need not wait for it while another one is free.
            self._workers.submit(self._put_back, cluster)

    def _put_back(self, cluster: Cluster) -> None:
        failure = None
        try:
            try:
                cluster.reset()
            except ClusterError:
                cluster.stop()
                cluster.start()
        except Exception as error:
            failure = error
        self._ready.put((cluster, failure))

    def _end(self) -> None:
        self._workers.shutdown(wait=True)
        with ThreadPoolExecutor(len(self._clusters)) as workers:
            list(workers.map(Cluster.stop, self._clusters))

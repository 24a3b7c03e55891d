"""Do one thing to many objects at once: bounded, countable, and stoppable between two requests."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence, Sized
from contextlib import nullcontext
from dataclasses import dataclass, field
from typing import Generic, TypeVar

T = TypeVar("T")
# What is under way when an operation is stopped has this long to finish.
_GRACE_S = 0.5


class Interrupted(Exception):
    """An item that was under way when the operation was stopped; whether it took effect is not known."""


@dataclass
class BulkOutcome(Generic[T]):
    """The result of a bulk operation."""

    done: list[T] = field(default_factory=list)
    """The items that succeeded."""
    failed: list[tuple[T, Exception]] = field(default_factory=list)
    """The items that failed, each with its error."""
    skipped: int = 0
    """How many items were not begun, because the operation was stopped or had failed too often."""

    @property
    def complete(self) -> bool:
        """Whether every item succeeded."""
        return not self.failed and not self.skipped


async def for_each(
    items: Iterable[T],
    action: Callable[[T], Awaitable[object]],
    *,
    workers: int,
    stop: asyncio.Event | None = None,
    lanes: asyncio.Semaphore | None = None,
    most_failures: int = 10,
    progress: Callable[[int], None] | None = None,
) -> BulkOutcome[T]:
    """Run ``action`` on every item with a fixed number of workers.

    A failing item does not stop the others, until ``most_failures`` have failed: then something is wrong with all of
    them, and continuing would only repeat it.

    Args:
        items: what to act upon; may be lazy.
        action: the operation; its exceptions (not cancellation) are collected.
        workers: how many run at once; no more than there are items.
        stop: when set, no further item is begun; those under way get a moment to finish and are then abandoned (a
            request that is being tried again could otherwise hold up the user's Ctrl-C for its whole patience).
        lanes: shared by several such operations, to limit how many items they have under way together; an item that
            waits for it has not been begun.
        most_failures: after this many failures, no further item is begun.
        progress: called after each success with the number of successes so far.
    """
    outcome: BulkOutcome[T] = BulkOutcome()
    not_taken = iter(items)

    def may_begin() -> bool:
        stopped = stop is not None and stop.is_set()
        return not stopped and len(outcome.failed) < most_failures

    async def work() -> None:
        for item in not_taken:
            begun = False
            try:
                async with lanes or nullcontext():
                    begun = may_begin()
                    if begun:
                        await action(item)
            except asyncio.CancelledError:
                if begun:
                    outcome.failed.append((item, Interrupted("given up after the stop")))
                else:
                    outcome.skipped += 1
                raise
            except Exception as error:
                outcome.failed.append((item, error))
                continue
            if not begun:
                outcome.skipped += 1
                continue
            outcome.done.append(item)
            if progress is not None:
                progress(len(outcome.done))

    most = min(workers, len(items)) if isinstance(items, Sized) else workers
    await _all_end([asyncio.ensure_future(work()) for _ in range(max(1, most))], stop)
    outcome.skipped += sum(1 for _ in not_taken)
    return outcome


async def for_all(
    items: Iterable[T], action: Callable[[T], Awaitable[object]], *, workers: int, most_failures: int = 10
) -> None:
    """Run ``action`` on every item as :func:`for_each` does, and raise the first error, if there is one."""
    outcome = await for_each(items, action, workers=workers, most_failures=most_failures)
    if outcome.failed:
        raise outcome.failed[0][1]


async def _all_end(workers: Sequence[asyncio.Future[None]], stop: asyncio.Event | None) -> None:
    """Wait until all workers have ended; once stopped, for a moment only."""
    guard = [asyncio.ensure_future(_abandon(workers, stop))] if stop is not None else []
    try:
        # With exceptions for results, a cancelled worker is distinguished from a cancellation of this whole operation.
        results = await asyncio.gather(*workers, return_exceptions=True)
    finally:
        for task in (*workers, *guard):
            task.cancel()
    for result in results:
        if isinstance(result, BaseException) and not isinstance(result, asyncio.CancelledError):
            raise result


async def _abandon(workers: Sequence[asyncio.Future[None]], stop: asyncio.Event) -> None:
    """Once stopped, cancel the workers that do not end by themselves."""
    await stop.wait()
    await asyncio.sleep(_GRACE_S)
    for worker in workers:
        worker.cancel()

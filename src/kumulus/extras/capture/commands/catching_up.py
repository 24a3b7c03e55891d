"""A clone made to be as its source is now. What an interruption has cut off is finished first, so none is lost.

A capture's directory says what its clone is. A newer capture lies in a directory within it until the clone is that.
"""

from __future__ import annotations

import asyncio
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

from kumulus.cli import project, stack, which
from kumulus.cli.errors import UserError
from kumulus.extras.capture.commands import capture, clone_file

if TYPE_CHECKING:
    from kumulus.extras.capture.putting import Put
    from kumulus.kube import Connection

_FRESH, _BEGUN = ".following", ".begun"
_PATIENCE = 10.0


def catch_up(directory: Path, source: Connection, clone: which.Which) -> list[str]:
    """Capture the source, and apply to the clone what has changed since the last capture.

    Args:
        directory: the capture from which the clone was made.
        source: the cluster that was captured.
        clone: its clone.

    Returns:
        What the clone refuses, a line for each kind.

    Raises:
        UserError: the clone's stack file has been changed by hand, or the update of its nodes failed.
        Expired: the source does not accept the credentials.
        ApiError, Unreachable: a request to the source or the clone failed.
        Refused: a file is not a file of a capture.
        OSError: a file cannot be read or written.
    """
    from kumulus.extras.capture import writing
    from kumulus.extras.capture.live import read_cluster
    from kumulus.extras.capture.spool import Spool

    fresh, begun = directory / _FRESH, directory / _BEGUN
    if begun.is_dir():
        _finish(directory, begun, clone)
    shutil.rmtree(fresh, ignore_errors=True)
    try:
        fresh.mkdir(mode=0o700)
        spool = Spool(fresh, source.server)
        asyncio.run(read_cluster(source, spool, capture.RATE, _PATIENCE, lambda kind, count: None))
        writing.write(spool, fresh, None)
        spool.remove()
        _prepare(directory, fresh)
        fresh.rename(begun)
    finally:
        shutil.rmtree(fresh, ignore_errors=True)
    return _finish(directory, begun, clone)


def _prepare(directory: Path, fresh: Path) -> None:
    """Give the groups the names that they have in the clone; if the source is the wrong cluster, change nothing."""
    from kumulus.extras.capture.regrouping import named_as_before, nodes
    from kumulus.extras.capture.writing import STACK

    before, now = ((each / STACK).read_text(encoding="utf-8") for each in (directory, fresh))
    known = nodes(before).keys()
    if known and not known & nodes(now).keys():
        raise UserError(
            f"the source has no node of those in {directory}: it is another cluster, or they have words for names\n"
            "  Capture the source again, without --anonymise"
        )
    (fresh / STACK).write_text(named_as_before(now, before), encoding="utf-8")


def _finish(directory: Path, begun: Path, clone: which.Which) -> list[str]:
    """Apply a newer capture; each of its files replaces the old one once the clone matches it."""
    from kumulus.extras.capture.writing import LEFT_OUT, STACK, WORKLOAD

    lines: list[str] = []
    if (begun / STACK).exists():
        _follow_nodes(directory, begun, clone.stack)
        (begun / STACK).replace(directory / STACK)
    if (begun / WORKLOAD).exists():
        put = asyncio.run(_follow_objects(directory, begun, clone))
        lines = [f"the clone refuses {len(each):,} {kind}, such as {each[0]}" for kind, each in put.refused.items()]
        (begun / WORKLOAD).replace(directory / WORKLOAD)
    if (begun / LEFT_OUT).exists():
        (begun / LEFT_OUT).replace(directory / LEFT_OUT)
    shutil.rmtree(begun)
    return lines


def _follow_nodes(directory: Path, begun: Path, name: str) -> None:
    """Give the stack the source's nodes, by an update like any other.

    If nodes have moved to another group, an extra update removes them first: groups are updated in parallel, and the
    old group might remove what the new one has created.
    """
    from kumulus.extras.capture.regrouping import moved, without
    from kumulus.extras.capture.writing import STACK
    from kumulus.kube import yaml_writing

    now, before = ((each / STACK).read_text(encoding="utf-8") for each in (begun, directory))
    if now == before:
        return
    file, moving = project.current().stack_file(name), moved(now, before)
    between = without(clone_file.config_of(before), moving)
    # Not from the cache that other commands use: the file changes while this command runs.
    there, known = clone_file.read(file), (clone_file.config_of(before), between, clone_file.config_of(now))
    if not any(clone_file.same(there, each) for each in known):
        raise UserError(
            f"{project.current().shown(file)} has been changed since it was cloned from {directory}\n"
            "  Undo that, or delete it and clone again"
        )
    for text in [yaml_writing.written({"config": between})] * bool(moving) + [now]:
        clone_file.write(file, text)
        code, output = stack.run_quietly(["up", "-s", name, "--yes", "--skip-preview", "--non-interactive"])
        if code != 0:
            raise UserError(f"{name} did not get the source's nodes:\n{output[-2000:]}")


async def _follow_objects(directory: Path, begun: Path, clone: which.Which) -> Put:
    from kumulus.extras.capture.following import contents, difference, follow
    from kumulus.extras.capture.writing import WORKLOAD
    from kumulus.kube import Client, load_kubeconfig

    now = contents(begun / WORKLOAD)
    changes = difference(contents(directory / WORKLOAD), now)
    async with Client(load_kubeconfig(clone.kubeconfig), patience=_PATIENCE) as client:
        return await follow(client, changes, now)

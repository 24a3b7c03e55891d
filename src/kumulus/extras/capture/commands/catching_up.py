"""A clone made to be as its source is now. What an interruption has cut off is finished first, so none is lost.

A capture's directory says what its clone is. A newer capture lies in a directory within it until the clone is that. The
clone's mark has the digests of the files that it is like, so that no other cluster is taken for it.

A capture names groups by their nodes' labels, and adds numbers where several would have the same name. A single node
that changes may thus rename all of them: groups keep their names, and nodes that have changed groups are found.
"""

from __future__ import annotations

import asyncio
import copy
import re
import secrets
import shlex
import shutil
import sys
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from itertools import chain, count
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from kumulus.cli import project, stack, which
from kumulus.cli.errors import UserError
from kumulus.extras.capture.commands import capture, clone_file
from kumulus.host import installation

if TYPE_CHECKING:
    from kumulus.extras.capture.putting import Put
    from kumulus.kube import Client, Connection


_FRESH, _BEGUN = ".following", ".begun"
_PATIENCE = 10.0
T = TypeVar("T")
# In the layout of `writing`: parsing a large file as YAML takes seconds.
_GROUP = re.compile(r'^      - name: "(?P<name>[^"]+)"$', re.MULTILINE)
_LINE = re.compile(r'^      - name: "(?P<group>[^"]+)"$|^ +- \{"name": "(?P<node>[^"]+)"', re.MULTILINE)


def catch_up(directory: Path, source: Connection, clone: which.StackCluster) -> list[str]:
    """Capture the source, and apply to the clone what has changed since; returns what it refuses, by kind.

    Raises:
        UserError: the source is the clone, the clone's stack file has been changed by hand, or the update of its nodes
            failed.
        NotTheClone: the cluster is not marked as the capture's clone.
        Expired: the source does not accept the credentials.
        JournalError: another run is under way on the clone.
    """
    from kumulus.extras.capture import writing
    from kumulus.extras.capture.live import read_cluster
    from kumulus.extras.capture.spool import Spool

    _require_another(source, clone)
    finish(directory, clone)
    fresh = directory / _FRESH
    shutil.rmtree(fresh, ignore_errors=True)
    try:
        fresh.mkdir(mode=0o700)
        spool = Spool(fresh, source.server)
        asyncio.run(read_cluster(source, spool, capture.RATE, _PATIENCE, lambda kind, count: None))
        writing.write(spool, fresh, None)
        spool.remove()
        _prepare(directory, fresh)
        fresh.rename(directory / _BEGUN)
    finally:
        shutil.rmtree(fresh, ignore_errors=True)
    return finish(directory, clone)


@contextmanager
def changing(directory: Path, clone: which.StackCluster) -> Iterator[None]:
    """A block in which a clone is changed: alone; and if it is cut off, the next commands say which one finishes it."""
    from kumulus.extras.journal import recover

    line = f"{installation.command()} clone {shlex.quote(str(directory.absolute()))} -s {clone.stack}"
    run = f"clone-{secrets.token_hex(4)}"
    journal, lines = ask(clone, lambda client: recover.begin(client, run, clone.stack, command="clone", finish=line))
    for each in lines:
        print(each, file=sys.stderr)
    try:
        yield
        journal.drop(finish=None)
    finally:
        asyncio.run(recover.end(journal))


def finish(directory: Path, clone: which.StackCluster) -> list[str]:
    """Apply a newer capture, if there is one; each of its files replaces the old one once the clone matches it.

    Returns and raises the same as `catch_up`.
    """
    from kumulus.extras.capture import mark
    from kumulus.extras.capture.writing import STACK

    begun = directory / _BEGUN
    ask(clone, lambda client: mark.require(client, *captures(directory)))
    if not begun.is_dir():
        return []
    if (begun / STACK).exists():
        clone_file.require(project.current().stack_file(clone.stack), written(directory), directory)
    with changing(directory, clone):
        return _follow(directory, begun, clone)


def _follow(directory: Path, begun: Path, clone: which.StackCluster) -> list[str]:
    from kumulus.extras.capture import mark
    from kumulus.extras.capture.writing import LEFT_OUT, STACK, WORKLOAD

    lines: list[str] = []
    if (begun / STACK).exists():
        _follow_nodes(directory, begun, clone.stack)
        ask(clone, lambda client: mark.write(client, begun, STACK))
        (begun / STACK).replace(directory / STACK)
    if (begun / WORKLOAD).exists():
        put = ask(clone, lambda client: _follow_objects(directory, begun, client))
        lines = [f"the clone refuses {len(each):,} {kind}, such as {each[0]}" for kind, each in put.refused.items()]
        lines += put.about_claims()
        ask(clone, lambda client: mark.write(client, begun, WORKLOAD))
        (begun / WORKLOAD).replace(directory / WORKLOAD)
    if (begun / LEFT_OUT).exists():
        (begun / LEFT_OUT).replace(directory / LEFT_OUT)
    shutil.rmtree(begun)
    return lines


def captures(directory: Path) -> tuple[Path, Path]:
    """A capture's directory; and within it that of a newer one, if the clone is being made like that."""
    return directory, directory / _BEGUN


def written(directory: Path) -> list[dict[str, Any]]:
    """The configurations that the stack file of a capture's clone may have.

    The capture's; while the clone is being made like a newer one, also that one's, and between them the one without
    nodes that move to another group: groups are updated in parallel, and the old group might remove what the new one
    has created.
    """
    from kumulus.extras.capture.writing import STACK

    files = [each / STACK for each in captures(directory) if (each / STACK).exists()]
    before, *newer = (each.read_text(encoding="utf-8") for each in files)
    known = [clone_file.config_of(before)]
    for now in newer:
        known += [without(known[0], moved(now, before)), clone_file.config_of(now)]
    return known


def ask(clone: which.StackCluster, question: Callable[[Client], Awaitable[T]], patience: float = _PATIENCE) -> T:
    """The answer to a question to a clone."""
    from kumulus.kube import Client, load_kubeconfig

    async def asked() -> T:
        async with Client(load_kubeconfig(clone.kubeconfig), patience=patience) as client:
            return await question(client)

    return asyncio.run(asked())


def _require_another(source: Connection, clone: which.StackCluster) -> None:
    """Refuse a source that is the clone itself, which would be changed to what it was."""
    from kumulus.extras.capture.live import identity
    from kumulus.kube import objects

    own = ask(clone, objects.identity)
    if asyncio.run(identity(source, _PATIENCE)) == own:
        raise UserError(
            f"the source is {clone.label} itself, at {source.server}\n"
            "  Name the cluster that was captured: --context, or --kubeconfig"
        )


def _prepare(directory: Path, fresh: Path) -> None:
    """Give the groups the names that they have in the clone; if the source is the wrong cluster, change nothing."""
    from kumulus.extras.capture.writing import STACK

    before, now = ((each / STACK).read_text(encoding="utf-8") for each in (directory, fresh))
    known = nodes(before).keys()
    if known and not known & nodes(now).keys():
        raise UserError(
            f"the source has no node of those in {directory}: it is another cluster, or they have words for names\n"
            "  Capture the source again, without --anonymise"
        )
    (fresh / STACK).write_text(named_as_before(now, before), encoding="utf-8")


def _follow_nodes(directory: Path, begun: Path, name: str) -> None:
    """Give the stack the source's nodes, by an update like any other, or by two if nodes have moved between groups."""
    from kumulus.extras.capture.writing import STACK
    from kumulus.kube import safe_yaml

    now = (begun / STACK).read_text(encoding="utf-8")
    if now == (directory / STACK).read_text(encoding="utf-8"):
        return
    before, between, _ = written(directory)
    for text in [safe_yaml.written({"config": between})] * (between != before) + [now]:
        clone_file.write(project.current().stack_file(name), text)
        code, output = stack.run_quietly(["up", "-s", name, "--yes", "--skip-preview", "--non-interactive"])
        if code != 0:
            raise UserError(f"{name} did not get the source's nodes:\n{output[-2000:]}")


async def _follow_objects(directory: Path, begun: Path, client: Client) -> Put:
    from kumulus.extras.capture.following import contents, difference, follow
    from kumulus.extras.capture.writing import WORKLOAD

    now = contents(begun / WORKLOAD)
    return await follow(client, difference(contents(directory / WORKLOAD), now), now)


def nodes(stack_file: str) -> dict[str, str]:
    """Each node of a captured stack file, with its group."""
    found, group = {}, ""
    for line in _LINE.finditer(stack_file):
        if line["group"]:
            group = line["group"]
        else:
            found[line["node"]] = group
    return found


def named_as_before(now: str, before: str) -> str:
    """The newer stack file, in which each group has the name of the earlier one with which it shares most nodes."""
    earlier = nodes(before)
    shared = Counter((group, earlier[node]) for node, group in nodes(now).items() if node in earlier)
    names: dict[str, str] = {}
    for (group, name), _ in sorted(shared.items(), key=lambda item: (-item[1], item[0])):
        if group not in names and name not in names.values():
            names[group] = name
    taken = {*names.values(), *earlier.values()}
    for group in _GROUP.findall(now):
        if group not in names:
            tries = chain([group], (f"{group}-{number}" for number in count(2)))
            names[group] = next(each for each in tries if each not in taken)
            taken.add(names[group])
    return _GROUP.sub(lambda line: f'      - name: "{names[line["name"]]}"', now)


def moved(now: str, before: str) -> set[str]:
    """The nodes that are in another group than before."""
    earlier = nodes(before)
    return {node for node, group in nodes(now).items() if earlier.get(node, group) != group}


def without(config: Mapping[str, Any], names: set[str]) -> dict[str, Any]:
    """The configuration of a captured stack without some of its nodes."""
    left = copy.deepcopy(dict(config))
    cluster = left["kumulus:cluster"]
    for group in cluster["nodeGroups"]:
        for placement in group["placement"]:
            placement["nodes"] = [node for node in placement["nodes"] if node["name"] not in names]
            placement["replicas"] = len(placement["nodes"])
    cluster["nodeGroups"] = [each for each in cluster["nodeGroups"] if each["placement"][0]["replicas"]]
    for fault in cluster.get("faults", ()):
        fault["target"]["names"] = [name for name in fault["target"]["names"] if name not in names]
    if faults := [each for each in cluster.get("faults", ()) if each["target"]["names"]]:
        cluster["faults"] = faults
    else:
        cluster.pop("faults", None)
    return left

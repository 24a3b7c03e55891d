"""List every cluster of Kumulus on this machine: its owner, whether it is up, and its size.

    kumulus ls
    kumulus ls --json       # for programs

Running clusters are found in the process table, whichever project they belong to. Clusters that are down, or that run
in Docker or elsewhere, are listed only if the command is run in their own project.
"""

import argparse
import asyncio
import json
from dataclasses import dataclass
from pathlib import Path

from kumulus.cli import project

_PATIENCE = 3.0


@dataclass(frozen=True)
class FoundCluster:
    """A cluster on this machine."""

    directory: Path
    """With its files."""
    stack: str
    """The stack that it is of, or what its tests called it; empty if that cannot be read."""
    program: str
    """The directory of the stack's program; empty if that cannot be read."""
    user: str
    """Who runs it; empty if no process of it runs here."""
    processes: int
    """How many run here."""
    memory: int
    """What these take, in bytes."""
    nodes: int | None
    """How many it has; None if it does not answer."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("--json", action="store_true", help="for programs")


def run(args: argparse.Namespace) -> int:
    """List them."""
    from kumulus.model.words import aligned

    found = clusters()
    if args.json:
        print(json.dumps([_plain(each) for each in found], indent=2))
    elif not found:
        print("no cluster is on this machine")
    else:
        rows = [("CLUSTER", "STACK", "NODES", "MEMORY", "USER", "DIRECTORY")]
        print(aligned([*rows, *(_row(each) for each in found)]))
    return 0


def clusters() -> list[FoundCluster]:
    """The clusters, by their directories."""
    from kumulus.host import processes
    from kumulus.runtimes.place import Place

    running = processes.with_directories("clusters")
    here = project.clusters_directory()
    kept = [each.resolve() for each in here.iterdir() if each.is_dir()] if here.is_dir() else []
    folders = sorted({*running, *kept})
    sizes = asyncio.run(_sizes(folders))
    found = []
    for folder, nodes in zip(folders, sizes, strict=True):
        pids = running.get(folder, [])
        user, memory = processes.user_and_memory(pids)
        stack, program = Place(folder).made_by()
        found.append(FoundCluster(folder, stack, program, user, len(pids), memory, nodes))
    return found


async def _sizes(folders: list[Path]) -> list[int | None]:
    """How many nodes each cluster has; None for one that does not answer."""
    from kumulus.kube import ApiError, Client, KubeconfigError, Unreachable, load_kubeconfig
    from kumulus.kube.objects import NODES

    async def size(folder: Path) -> int | None:
        try:
            async with Client(load_kubeconfig(project.kubeconfig_in(folder)), patience=_PATIENCE) as client:
                page = await client.get(NODES, {"limit": "1"})
        except (ApiError, KubeconfigError, Unreachable, OSError):
            return None
        return len(page["items"]) + int(page["metadata"].get("remainingItemCount") or 0)

    return await asyncio.gather(*(size(each) for each in folders))


def _row(found: FoundCluster) -> tuple[str, ...]:
    nodes = f"{found.nodes:,}" if found.nodes is not None else "no answer" if found.processes else "not up"
    memory = f"{found.memory / 2**20:,.0f} MiB" if found.processes else "–"
    stack = f"{found.stack} of {found.program}" if found.stack else "not readable"
    return found.directory.name, stack, nodes, memory, found.user or "–", str(found.directory)


def _plain(found: FoundCluster) -> dict[str, object]:
    return {
        "cluster": found.directory.name,
        "stack": found.stack,
        "program": found.program,
        "directory": str(found.directory),
        "user": found.user,
        "processes": found.processes,
        "memoryBytes": found.memory,
        "nodes": found.nodes,
    }

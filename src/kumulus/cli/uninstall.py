"""List what is left of Kumulus on this machine outside of projects, and remove it after a question.

    kumulus uninstall           # lists it, and asks
    kumulus uninstall --yes     # does not ask

These are the tools and charts, the journals of runs, this machine's number, and the plugin where Pulumi looks for it.
It is refused while a cluster of yours is up, or tools are being got. What is in a project stays: clusters' directories,
results and the stacks' state.
"""

import argparse
import shutil
import sys
from pathlib import Path

from kumulus.cli import ls, project
from kumulus.cli.errors import UserError
from kumulus.host import installation
from kumulus.model.words import aligned
from kumulus.toolchain import cache

_PLUGINS = "plugins"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("--yes", action="store_true", help="do not ask")


def run(args: argparse.Namespace) -> int:
    """Remove it; 1 if the user does not agree."""
    if up := [f"{each.stack or each.directory.name} ({each.directory})" for each in ls.clusters() if _is_up(each)]:
        raise UserError(
            f"clusters are up: {', '.join(up)}\n  First, in the project of each: {installation.command()} down"
        )
    if holder := cache.holder(cache.root() / "lock"):
        raise UserError(f"process {holder} is getting the tools\n  End it first, or wait for it")
    if running := cache.running(cache.root()):
        raise UserError(f"tools are in use by processes {', '.join(map(str, sorted(running)))}\n  End them first")
    left = _left()
    if left:
        print(aligned([(f"{_size(each) / 2**20:,.1f} MiB", str(each)) for each in left]))
    else:
        print("nothing of Kumulus is left on this machine outside of projects")
    if left and not args.yes and not _agreed():
        print("nothing was removed")
        return 1
    for each in left:
        try:
            shutil.rmtree(each)
            # The engine's own notes of a plugin: when it was used, and a lock.
            for note in each.parent.glob(f"{each.name}.*") if each.parent.name == _PLUGINS else ():
                note.unlink()
        except OSError as error:
            raise UserError(f"{error.filename or each} cannot be removed: {error.strerror}") from None
    checkout = installation.checkout()
    last = f"{installation.command()} clean, then rm -r {checkout}" if checkout else "pip uninstall kumulus"
    print(f"in projects, .kumulus and .pulumi-state stay; the last step: {last}")
    return 0


def _is_up(cluster: ls.FoundCluster) -> bool:
    """Whether a cluster of this user is up: its processes run here, or, as with kind's containers, its server answers.

    One that no stack makes or removes does not count.
    """
    import psutil

    from kumulus.runtimes.existing.source import outlives_by_note

    if cluster.processes > 0:
        return cluster.user == psutil.Process().username()
    return cluster.nodes is not None and not outlives_by_note(project.kubeconfig_in(cluster.directory))


def _left() -> list[Path]:
    from kumulus.host import machine

    places = [
        cache.root().parent,
        machine.state_home() / "kumulus",
        *sorted((installation.pulumi_home() / _PLUGINS).glob("resource-kumulus-v*")),
    ]
    return [each for each in places if each.is_dir() and not each.is_symlink()]


def _size(folder: Path) -> int:
    return sum(file.lstat().st_size for file in folder.rglob("*") if not file.is_dir() or file.is_symlink())


def _agreed() -> bool:
    if not sys.stdin.isatty():
        raise UserError("nobody can be asked whether to remove this\n  If that is meant: --yes")
    try:
        return input("Remove it? [y/N] ").strip().lower() in ("y", "yes")
    except EOFError:
        return False

"""Remove .venv and this project's caches. The stacks' state stays.

It is refused while a cluster is up, or a command, such as an experiment, runs in .venv.
"""

import argparse
import os
import shutil
from pathlib import Path

from kumulus.cli.errors import UserError
from kumulus.host import installation
from kumulus.runtimes import place
from kumulus.toolchain import cache

_CACHES = (".mypy_cache", ".ruff_cache", ".pytest_cache", ".import_linter_cache", ".hypothesis")
_REMOVED = (".venv", "src/kumulus/extras/policy/.venv", *_CACHES, "build")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.add_argument(
        "--tools",
        action="store_true",
        help="also the tools of every project, which have to be downloaded or built again, and charts",
    )


def run(args: argparse.Namespace) -> int:
    """Remove them."""
    checkout = installation.checkout()
    assert checkout is not None
    home = os.environ.get("KUMULUS_HOME") or ".kumulus"
    folder = checkout / home / "clusters"
    up = sorted(entry.name for entry in folder.iterdir() if entry.is_dir()) if folder.is_dir() else []
    if up:
        # A cluster's directory has its own name, not its stack's.
        stacks = dict.fromkeys(place.cluster_owner(folder / name / "kubeconfig.yaml").stack or name for name in up)
        commands = ", ".join(f"{installation.command()} down {stack}" for stack in stacks)
        raise UserError(f"clusters are up: {', '.join(up)}\n  First: {commands}")
    if at_work := _at_work(installation.scripts()):
        commands = ", ".join(f"{command} (process {pid})" for pid, command in at_work.items())
        raise UserError(
            f"commands run in .venv: {commands}\n  Wait for them, or end them in order: kill {' '.join(at_work)}"
        )
    if args.tools and (running := cache.running(cache.root())):
        programs = ", ".join(f"{command} (process {pid})" for pid, command in sorted(running.items()))
        raise UserError(
            f"tools are in use: {programs}\n  First, in the projects of these clusters: {installation.command()} down"
        )
    for name in _REMOVED:
        shutil.rmtree(checkout / name, ignore_errors=True)
    for egg in checkout.glob("*.egg-info"):
        shutil.rmtree(egg, ignore_errors=True)
    for cached in list(checkout.rglob("__pycache__")):
        shutil.rmtree(cached, ignore_errors=True)
    if args.tools:
        for kept in (cache.root(), cache.charts()):
            shutil.rmtree(kept, ignore_errors=True)
    return 0


def _at_work(scripts: Path) -> dict[str, str]:
    """The command lines of Kumulus that run with the Python of a directory, by process id; without psutil."""
    found = {}
    for process in Path("/proc").glob("[0-9]*"):
        if process.name == str(os.getpid()):
            continue
        try:
            line = (process / "cmdline").read_bytes().decode(errors="replace").rstrip("\0").split("\0")
            ours = os.path.samefile((process / "cwd").readlink() / Path(line[0]).parent, scripts)
        except OSError:
            # It has ended, or is another user's, or its program is gone.
            continue
        names = [Path(each).name for each in line]
        begins = next((at for at, name in enumerate(names) if name == "kumulus" or name.startswith("kumulus.")), 0)
        if ours and begins:
            found[process.name] = " ".join([names[begins], *line[begins + 1 :]])
    return found

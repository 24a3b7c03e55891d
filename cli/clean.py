"""Remove .venv and this project's caches. The stacks' state stays; it is refused while a cluster is up."""

from __future__ import annotations

import argparse
import shutil

from cli import project
from cli.errors import UserError

_CACHES = (".mypy_cache", ".ruff_cache", ".pytest_cache", ".import_linter_cache", ".hypothesis")
_REMOVED = (".venv", "policy/.venv", *_CACHES, "build")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.add_argument(
        "--tools", action="store_true", help="also the tools built for this user: about 15 minutes to get back"
    )


def run(args: argparse.Namespace) -> int:
    """Remove them."""
    folder = project.clusters_directory()
    up = sorted(entry.name for entry in folder.iterdir() if entry.is_dir()) if folder.is_dir() else []
    if up:
        commands = ", ".join(f"make down STACK={stack}" for stack in up)
        raise UserError(f"clusters are up: {', '.join(up)}\n  First: {commands}")
    for name in _REMOVED:
        shutil.rmtree(project.ROOT / name, ignore_errors=True)
    for egg in project.ROOT.glob("*.egg-info"):
        shutil.rmtree(egg, ignore_errors=True)
    for cached in list(project.ROOT.rglob("__pycache__")):
        shutil.rmtree(cached, ignore_errors=True)
    if args.tools:
        from toolchain import cache

        shutil.rmtree(cache.root(), ignore_errors=True)
    return 0

"""Remove .venv and this project's caches. The stacks' state stays; it is refused while a cluster is up."""

from __future__ import annotations

import argparse
import os
import shutil

from kumulus.cli.errors import UserError
from kumulus.host import installation
from kumulus.runtimes import owner

_CACHES = (".mypy_cache", ".ruff_cache", ".pytest_cache", ".import_linter_cache", ".hypothesis")
_REMOVED = (".venv", "src/kumulus/extras/policy/.venv", *_CACHES, "build")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.add_argument(
        "--tools", action="store_true", help="also the tools, which have to be downloaded or built again"
    )


def run(args: argparse.Namespace) -> int:
    """Remove them.

    Raises:
        UserError: clusters are up.
    """
    checkout = installation.checkout()
    assert checkout is not None
    home = os.environ.get("KUMULUS_HOME") or ".kumulus"
    folder = checkout / home / "clusters"
    up = sorted(entry.name for entry in folder.iterdir() if entry.is_dir()) if folder.is_dir() else []
    if up:
        # A cluster's directory has its own name, not its stack's.
        stacks = dict.fromkeys(owner.beside(folder / name / "kubeconfig.yaml").stack or name for name in up)
        commands = ", ".join(f"{installation.command()} down {stack}" for stack in stacks)
        raise UserError(f"clusters are up: {', '.join(up)}\n  First: {commands}")
    for name in _REMOVED:
        shutil.rmtree(checkout / name, ignore_errors=True)
    for egg in checkout.glob("*.egg-info"):
        shutil.rmtree(egg, ignore_errors=True)
    for cached in list(checkout.rglob("__pycache__")):
        shutil.rmtree(cached, ignore_errors=True)
    if args.tools:
        from kumulus.toolchain import cache

        shutil.rmtree(cache.root(), ignore_errors=True)
    return 0

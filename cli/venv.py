"""Make .venv with the pinned requirements, or bring it up to date; at once when nothing changed."""

from __future__ import annotations

import argparse

from cli.project import ROOT


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.add_argument("--dev", action="store_true", help="with requirements-dev.txt: what tests and lint need")
    parser.add_argument("--policy", action="store_true", help="also policy/.venv, for pulumi's --policy-pack policy")


def run(args: argparse.Namespace) -> int:
    """Make it."""
    from toolchain import venv

    venv.ensure(ROOT, development=args.dev)
    if args.policy:
        venv.ensure_policies(ROOT)
    return 0

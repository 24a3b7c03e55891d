"""Make .venv with the pinned requirements, or bring it up to date; at once when nothing changed."""

from __future__ import annotations

import argparse

from kumulus.host import installation


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.add_argument("--dev", action="store_true", help="with requirements-dev.txt: what tests and lint need")
    parser.add_argument(
        "--policy", action="store_true", help="also .venv of the policy pack in src/kumulus/extras/policy"
    )


def run(args: argparse.Namespace) -> int:
    """Make it."""
    from kumulus.toolchain import venv

    checkout = installation.checkout()
    assert checkout is not None
    venv.ensure(checkout, development=args.dev)
    if args.policy:
        venv.ensure_policies(checkout / "src" / "kumulus" / "extras" / "policy")
    return 0

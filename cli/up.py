"""Set everything up, then bring a stack up, without asking; `kumulus preview` shows beforehand what would change."""

from __future__ import annotations

import argparse

from cli import project, stack

add_arguments = stack.add_arguments


def run(args: argparse.Namespace) -> int:
    """Bring it up."""
    name = project.require_stack(args.stack)
    stack.make_ready(name)
    stack.create(name)
    stack.become(["up", "-s", name, "--yes", "--skip-preview", *args.passed_on])

"""Set everything up, then show what `kumulus up` would change."""

from __future__ import annotations

import argparse

from cli import project, stack

add_arguments = stack.add_arguments


def run(args: argparse.Namespace) -> int:
    """Show it."""
    name = project.require_stack(args.stack)
    stack.make_ready()
    stack.create(name)
    stack.become(["preview", "-s", name, *args.passed_on])

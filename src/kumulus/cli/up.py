"""Set everything up, then bring a stack up, without asking; `kumulus preview` shows beforehand what would change."""

from __future__ import annotations

import argparse

from kumulus.cli import beforehand, needs, project, stack

add_arguments = stack.add_arguments


def run(args: argparse.Namespace) -> int:
    """Bring it up."""
    name = project.require_stack(stack.chosen(args))
    stack.make_ready(needs.of_stack, name)
    stack.create(name)
    beforehand.of_update(name)
    shown = beforehand.shown_options(name, args.passed_on)
    stack.become(["up", "-s", name, "--yes", "--skip-preview", *shown, *args.passed_on])

"""Fetch what is missing, then show what `kumulus up` would change."""

from __future__ import annotations

import argparse

from kumulus.cli import beforehand, needs, project, stack

add_arguments = stack.add_arguments


def run(args: argparse.Namespace) -> int:
    """Show it."""
    name = project.require_stack(stack.chosen(args))
    stack.make_ready(needs.of_stack, name)
    stack.create(name)
    shown = beforehand.shown_options(name, args.passed_on)
    stack.become(["preview", "-s", name, *shown, *args.passed_on])

"""Fetch what is missing, then show what `kumulus up` would change."""

import argparse

from kumulus.cli import beforehand, project, stack

add_arguments = stack.add_arguments


def run(args: argparse.Namespace) -> int:
    """Show it."""
    name, further = stack.chosen(args)
    project.require_stack(name)
    stack.make_ready(beforehand.checked_needs, name)
    stack.check_options("preview", further)
    stack.create(name)
    quieting = beforehand.quieting_options(name, further)
    stack.become(["preview", "-s", name, *quieting, *further])

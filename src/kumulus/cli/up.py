"""Fetch what is missing, then bring a stack up without asking. `kumulus preview` shows the changes first."""

from __future__ import annotations

import argparse
import os

from kumulus.cli import beforehand, project, stack

add_arguments = stack.add_arguments


def run(args: argparse.Namespace) -> int:
    """Bring it up."""
    name, further = stack.chosen(args)
    project.require_stack(name)
    stack.make_ready(beforehand.check_declared, name)
    stack.create(name)
    beforehand.check_unlocked(name)
    # No preview is shown, so the plugin must not replace a cluster unless the stack allows it.
    os.environ["KUMULUS_UNSHOWN"] = "1"
    shown = beforehand.shown_options(name, further)
    stack.become(["up", "-s", name, "--yes", "--skip-preview", *shown, *further])

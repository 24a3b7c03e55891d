"""Destroy everything a stack made and forget its state; its file in stacks/ stays."""

from __future__ import annotations

import argparse

from cli import project, stack

add_arguments = stack.add_arguments


def run(args: argparse.Namespace) -> int:
    """Take it down."""
    # A stack whose file is gone can still be destroyed; one that has neither file nor state is a typing error.
    state = project.state_exists(args.stack)
    if not state:
        project.require_stack(args.stack)
    if state is False:
        return _nothing(args.stack)
    stack.make_ready()
    if not stack.exists(args.stack):
        return _nothing(args.stack)
    code = stack.run(["destroy", "-s", args.stack, "--yes", "--skip-preview", *args.passed_on])
    if code != 0:
        return code
    return stack.run(["stack", "rm", args.stack, "--yes", "--preserve-config"])


def _nothing(name: str) -> int:
    print(f"{name} is not up: nothing to destroy")
    return 0

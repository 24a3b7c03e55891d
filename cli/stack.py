"""What up, preview and down share: making everything ready and running pulumi on one stack."""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from collections.abc import Sequence
from typing import NoReturn

import toolchain
from cli import project
from cli.errors import UserError
from toolchain import environment, plugins, supply, venv
from toolchain.locate import pulumi_home

DEFAULT = "quickstart"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of a command that works on one stack."""
    parser.add_argument("stack", nargs="?", default=DEFAULT, help=f"which stack (default: {DEFAULT})")
    parser.epilog = "Further options go to pulumi, such as --refresh or --diff."


def make_ready(to_run: str | None = None) -> None:
    """The virtual environment, the tools, the plugin and the directory for the state; at once when they are there.

    Args:
        to_run: a stack that is to run, with the optional tools its file asks for.
    """
    venv.ensure(project.ROOT)
    supply.ensure(extra=project.optional_tools(to_run) if to_run else [])
    plugins.install(pulumi_home())
    if to_run and project.runs_host_commands(to_run):
        plugins.install_command(pulumi_home())
    backend = project.local_backend()
    if backend is not None:
        backend.mkdir(parents=True, exist_ok=True, mode=0o700)


def create(stack: str) -> None:
    """Make the backend know the stack, without selecting it.

    Raises:
        UserError: pulumi refused; with what it said.
    """
    if project.state_exists(stack):
        return
    answer = _pulumi(["stack", "init", stack, "--no-select", "--non-interactive"], capture=True)
    if answer.returncode != 0 and "already exists" not in answer.stderr:
        raise UserError(f"pulumi cannot create the stack {stack}:\n  {answer.stderr.strip()}")


def exists(stack: str) -> bool:
    """Whether the backend knows the stack."""
    known = project.state_exists(stack)
    if known is not None:
        return known
    return _pulumi(["stack", "tag", "ls", "-s", stack], capture=True).returncode == 0


def run(arguments: Sequence[str]) -> int:
    """Run pulumi in the project and wait for it; returns its exit code."""
    return _pulumi(arguments).returncode


def become(arguments: Sequence[str]) -> NoReturn:
    """Run pulumi in the project in place of this process, so that signals and the exit code are its own."""
    sys.stdout.flush()
    os.chdir(project.ROOT)
    os.execve(toolchain.find("pulumi"), ["pulumi", *arguments], environment.complete(os.environ))


def _pulumi(arguments: Sequence[str], capture: bool = False) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [toolchain.find("pulumi"), *arguments],
        cwd=project.ROOT,
        env=environment.complete(os.environ),
        capture_output=capture,
        text=True,
        check=False,
    )

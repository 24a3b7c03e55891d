"""Which subcommands there are: each is a module with two functions.

    def add_arguments(parser: argparse.ArgumentParser) -> None
    def run(args: argparse.Namespace) -> int        # the exit code

Its docstring is the text of `kumulus <command> -h`. It raises `cli.errors.UserError` for the user's mistakes.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from typing import Protocol


class Module(Protocol):
    """What a subcommand's module has."""

    __doc__: str | None

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Declare the command's arguments."""

    def run(self, args: argparse.Namespace) -> int:
        """Do it; returns the exit code."""


@dataclass(frozen=True)
class Command:
    """A line of the list that `kumulus -h` prints.

    `venv`: it needs the packages of .venv, so it is run there. `passes_on`: arguments it does not know go to the
    program that it starts.
    """

    module: str
    summary: str
    venv: bool = False
    passes_on: bool = False


COMMANDS: dict[str, Command] = {
    "up": Command("cli.up", "set everything up, then bring a stack up", passes_on=True),
    "preview": Command("cli.preview", "set everything up, then show what `up` would change", passes_on=True),
    "down": Command("cli.down", "destroy what a stack made; calm when there is nothing", passes_on=True),
    "topology": Command("cli.topology", "show where a stack's nodes stand, as a tree or a picture", venv=True),
    "watch": Command("cli.watch", "watch a stack's fleet in the terminal: allocation, pods, control plane", venv=True),
    "ui": Command("cli.ui", "show a stack's fleet as a live map, on a page of this machine", venv=True),
    "fault": Command("cli.fault", "inject a fault into a live cluster, clear it, list those that hold", venv=True),
    "experiment": Command("cli.experiment", "run workloads against a scheduler, measure and report", venv=True),
    "convert": Command("cli.convert", "print a KEMU ClusterConfig as a stack file", venv=True),
    "doctor": Command("cli.doctor", "say what is there, what is missing and how to get it"),
    "plan": Command("cli.plan", "say what a fleet of a size costs its control plane", venv=True),
    "env": Command("cli.env", 'print what `eval "$(./kumulus env)"` needs for plain pulumi and kubectl'),
    "kind": Command("cli.kind", "run kind itself, as Kumulus does", passes_on=True),
    "kind-image": Command("cli.kind_image", "make a node image for kind, where no registry is in reach"),
    "tools": Command("cli.tools", "build the tools that are missing"),
    "venv": Command("cli.venv", "make or update .venv"),
    "clean": Command("cli.clean", "remove .venv and caches"),
}

"""Which subcommands there are: each is a module with two functions.

    def add_arguments(parser: argparse.ArgumentParser) -> None
    def run(args: argparse.Namespace) -> int        # the exit code

Its docstring is the text of `kumulus <command> -h`. It raises `kumulus.cli.errors.UserError` for the user's mistakes.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from typing import Protocol


class Module(Protocol):
    """The interface of a subcommand's module."""

    __doc__: str | None

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Declare the command's arguments."""

    def run(self, args: argparse.Namespace) -> int:
        """Run the command; returns the exit code."""


@dataclass(frozen=True)
class Command:
    """A line of the list that `kumulus -h` prints.

    `venv`: it needs the packages that Kumulus needs, so in a checkout it runs in .venv. `parses`: it reads the
    project's files, so it runs in .venv too if there is one. `passes_on`: unknown arguments go to the program that it
    starts. `checkout`: it makes sense only in a checkout.
    """

    module: str
    summary: str
    venv: bool = False
    parses: bool = False
    passes_on: bool = False
    checkout: bool = False


COMMANDS: dict[str, Command] = {
    "new": Command("kumulus.cli.new", "create a project: a stack of 30 nodes, and a program of five lines", venv=True),
    "up": Command("kumulus.cli.up", "fetch what is missing, then bring a stack up", parses=True, passes_on=True),
    "preview": Command(
        "kumulus.cli.preview", "fetch what is missing, then show the changes of `up`", parses=True, passes_on=True
    ),
    "down": Command(
        "kumulus.cli.down", "destroy what a stack created; no error if there is nothing", parses=True, passes_on=True
    ),
    "topology": Command("kumulus.cli.topology", "show where a stack's nodes are, as a tree or a picture", venv=True),
    "watch": Command(
        "kumulus.extras.watch.commands.watch",
        "watch a stack's fleet in the terminal: allocation, pods, control plane",
        venv=True,
    ),
    "ui": Command("kumulus.extras.watch.commands.ui", "show a stack's fleet as a live map in the browser", venv=True),
    "fault": Command(
        "kumulus.cli.fault", "inject a fault into a live cluster, clear it, list active faults", venv=True
    ),
    "experiment": Command(
        "kumulus.extras.lab.commands.experiment", "run workloads against a scheduler, measure, and report", venv=True
    ),
    "capture": Command(
        "kumulus.extras.capture.commands.capture",
        "save your own cluster as files: its nodes, its pods, no secrets",
        venv=True,
    ),
    "clone": Command(
        "kumulus.extras.capture.commands.clone",
        "create a stack from a capture, with its pods on the same nodes",
        venv=True,
    ),
    "fit": Command(
        "kumulus.extras.capture.commands.fit",
        "check whether a workload fits, where, and what would make all of it fit",
        venv=True,
    ),
    "advise": Command(
        "kumulus.extras.advise.commands.advise",
        "say which machines run a workload for the least, and for how much",
        venv=True,
    ),
    "snapshot": Command(
        "kumulus.extras.snapshots.commands.snapshot", "save everything in a stack's cluster, and restore it", venv=True
    ),
    "translate": Command(
        "kumulus.extras.capture.commands.translate", "turn an anonymised capture's words back into names", venv=True
    ),
    "replay": Command(
        "kumulus.extras.capture.commands.replay", "replay a recorded day of a cluster, from its audit log", venv=True
    ),
    "trace": Command(
        "kumulus.extras.lab.commands.trace", "import a published trace of a production cluster", venv=True
    ),
    "schema": Command(
        "kumulus.cli.schema", "print the JSON schema of a stack or experiment file, for editors", venv=True
    ),
    "convert": Command("kumulus.cli.convert", "print a KEMU ClusterConfig as a stack file", venv=True),
    "policy": Command(
        "kumulus.extras.policy.command", "create a policy pack: limits on nodes, GPUs and chart repositories"
    ),
    "doctor": Command(
        "kumulus.cli.doctor", "list the tools: what is installed, what is missing, how to get it", parses=True
    ),
    "plan": Command("kumulus.cli.plan", "show what a fleet of a size costs its control plane", venv=True),
    "env": Command(
        "kumulus.cli.env", 'print what `eval "$(kumulus env)"` needs for plain pulumi and kubectl', parses=True
    ),
    "completion": Command(
        "kumulus.cli.completion", "print a script that completes commands and stacks in a shell", venv=True
    ),
    "kind": Command("kumulus.cli.kind", "run kind the way Kumulus does", passes_on=True, venv=True),
    "kind-image": Command("kumulus.cli.kind_image", "build a node image for kind, for use without a registry"),
    "image": Command("kumulus.cli.image", "make an image of an autoscaler, for clusters whose nodes run containers"),
    "tools": Command("kumulus.cli.tools", "fetch missing tools: download or build them, or list them"),
    "venv": Command("kumulus.cli.venv", "create or update .venv", checkout=True),
    "clean": Command("kumulus.cli.clean", "remove .venv and caches", checkout=True),
}

"""Run kind as Kumulus does: the same program, and a `docker` that this machine's engine understands.

Everything after the command's name goes to kind, such as
kumulus kind load docker-image my:tag --name gcp-small-kind
"""

import argparse
import os
import sys
from typing import NoReturn

from kumulus import toolchain
from kumulus.runtimes.kind.commands import environment


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.add_argument("arguments", nargs=argparse.REMAINDER, help="kind's own")


def run(args: argparse.Namespace) -> NoReturn:
    """Replace this process by kind."""
    kind = toolchain.find("kind")
    wanted = environment(os.environ)
    if wanted.notice:
        print(wanted.notice, file=sys.stderr, flush=True)
    os.execve(kind, ["kind", *args.passed_on, *args.arguments], dict(wanted.variables))

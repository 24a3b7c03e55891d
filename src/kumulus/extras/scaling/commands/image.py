"""Make an archive of a container image with a program that has no published one, and nothing else in it.

    kumulus image karpenter                     # karpenter.tar, of kumulus/karpenter-kwok:<version>
    docker load --input karpenter.tar           # and docker push, for a cluster that pulls from a registry

docs/autoscalers.md says how a kind cluster gets it, and what the stack file names.
"""

import argparse
import os
import tempfile
from pathlib import Path

from kumulus.cli.errors import UserError
from kumulus.extras.kind_image import containers
from kumulus.toolchain import ToolMissing, find, pins

# Programs that run in a cluster and have no published image, and what their images are called.
_IMAGES = {"karpenter": "kumulus/karpenter-kwok"}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.add_argument("program", choices=sorted(_IMAGES), help="which program")
    parser.add_argument("--to", metavar="FILE", help="the archive to write; by default PROGRAM.tar")
    parser.add_argument("--name", metavar="REF", help="its name and tag; by default kumulus/PROGRAM-kwok:VERSION")


def run(args: argparse.Namespace) -> int:
    """Write the archive, atomically."""
    try:
        executable = find(args.program)
    except ToolMissing as error:
        raise UserError(str(error)) from None
    name = args.name or f"{_IMAGES[args.program]}:{pins.load().tool(args.program).version}"
    archive = Path(args.to or f"{args.program}.tar")
    try:
        with tempfile.TemporaryDirectory(dir=archive.parent, prefix=f".{archive.name}.") as scratch:
            made = Path(scratch, "image.tar")
            containers.write(made, [containers.program(name, executable)], Path(scratch))
            made.replace(archive)
    except OSError as error:
        raise UserError(f"{archive} cannot be written: {os.strerror(error.errno or 0)}") from None
    print(f"{archive}: {name}, {archive.stat().st_size >> 20} MiB")
    return 0

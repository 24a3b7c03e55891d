"""Print a KEMU ClusterConfig as a stack file of Kumulus' own format, which gives the same cluster.

    ./kumulus convert gcp-large.yaml > stacks/Pulumi.mine.yaml
    ./kumulus convert https://example.com/cluster.yaml --runtime kind

The file works as it is too: `kumulus:clusterConfig` in a stack file names it (docs/from-kemu.md). What was corrected in
it stands in comments.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from cli.errors import UserError


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("file", help="path or URL of a KEMU ClusterConfig")
    parser.add_argument(
        "--runtime",
        choices=("kwok", "kind", "existing"),
        default="kwok",
        help="where its control plane is to run (default: kwok; KEMU's own is kind)",
    )


def run(args: argparse.Namespace) -> int:
    """Print it.

    Raises:
        UserError: the file cannot be read, or no cluster can be made of it.
    """
    from spec.errors import SpecError
    from spec.kemu import read_kemu
    from spec.kemu_stack import stack_file_of

    try:
        file = read_kemu(args.file, Path.cwd(), args.runtime)
    except SpecError as error:
        raise UserError(str(error)) from None
    print(stack_file_of(file), end="")
    return 0

"""Print a KEMU ClusterConfig as a stack file, which gives the same cluster.

    kumulus convert gcp-large.yaml > stacks/Pulumi.mine.yaml
    kumulus convert https://example.com/cluster.yaml --runtime kind

The file also works unchanged: `kumulus:clusterConfig` in a stack file names it (docs/stacks.md). Comments list what
was corrected. KEMU itself runs every file in kind: a file with a `kindConfig` keeps the runtime kind.
"""

import argparse
import sys
from pathlib import Path

from kumulus.cli.errors import UserError
from kumulus.runtimes import registry


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("file", help="path or URL of a KEMU ClusterConfig")
    parser.add_argument(
        "--runtime",
        choices=registry.NAMES,
        help="where its control plane is to run (default: kind where the file has a kindConfig, else kwok)",
    )


def run(args: argparse.Namespace) -> int:
    """Print it."""
    from kumulus.model.errors import SpecError
    from kumulus.stackfile.kemu import convert, meant_runtime, stack_file_of
    from kumulus.stackfile.location import read_text

    try:
        source, text = read_text(args.file, Path.cwd(), "clusterConfig", "")
        file = convert(text, source, args.runtime or meant_runtime(text, source))
    except SpecError as error:
        raise UserError(str(error)) from None
    if args.runtime is None and (runtime := file.plain["runtime"]) != registry.DEFAULT:
        why = f"as the file has a kindConfig; --runtime {registry.DEFAULT} leaves that out"
        print(f"note: the runtime is {runtime}, {why} and needs no container engine", file=sys.stderr)
    print(stack_file_of(file), end="")
    return 0

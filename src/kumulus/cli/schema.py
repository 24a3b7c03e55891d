"""Print the JSON schema of a stack file or an experiment file, for editors, or the reference page.

    kumulus schema stack > stack.schema.json
    kumulus schema experiment --reference

An editor with a YAML language server uses the schema that the file's first line names:

    # yaml-language-server: $schema=../docs/schema/stack.schema.json
"""

from __future__ import annotations

import argparse


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    from kumulus.stackfile.schema.published import files

    parser.add_argument("file", choices=list(files()), help="which file")
    parser.add_argument("--reference", action="store_true", help="the reference page, in Markdown")


def run(args: argparse.Namespace) -> int:
    """Print it."""
    from kumulus.stackfile.schema.published import files

    file = files()[args.file]
    print(file.page() if args.reference else file.text(), end="")
    return 0

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
    parser.add_argument("file", choices=("stack", "experiment"), help="which of the two files")
    parser.add_argument("--reference", action="store_true", help="the reference page, in Markdown")


def run(args: argparse.Namespace) -> int:
    """Print it."""
    from kumulus.extras.lab.file.published import page, schema_text

    print(page(args.file) if args.reference else schema_text(args.file), end="")
    return 0

"""Print the JSON schema of a stack file or an experiment file, for editors, or the reference page.

    kumulus schema stack > stack.schema.json
    kumulus schema experiment --reference

An editor with a YAML language server uses the schema that the file's first line names:

    # yaml-language-server: $schema=../docs/schema/stack.schema.json
"""

import argparse

from kumulus.cli.errors import UserError


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("file", metavar="FILE", help="which file: stack, experiment")
    parser.add_argument("--reference", action="store_true", help="the reference page, in Markdown")


def run(args: argparse.Namespace) -> int:
    """Print it."""
    from kumulus.stackfile.schema.published import files

    if (file := files().get(args.file)) is None:
        raise UserError(f"there is no schema of a file {args.file!r}: there are {', '.join(files())}")
    print(file.page() if args.reference else file.text(), end="")
    return 0

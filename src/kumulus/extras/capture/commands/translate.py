"""Print a text with the words of an anonymised capture replaced by the names they stand for.

    kumulus translate report.md --table capture-translation.json
    kubectl describe pod amber-otter-3f2c | kumulus translate --table capture-translation.json

The table is what `kumulus capture --anonymise` wrote next to the capture.
"""

import argparse
import sys
from pathlib import Path

from kumulus.cli.errors import UserError


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.add_argument("file", nargs="?", help="the text (default: standard input)")
    parser.add_argument("--table", metavar="FILE", type=Path, required=True, help="the capture's translation table")


def run(args: argparse.Namespace) -> int:
    """Translate."""
    from kumulus.extras.capture.words import Words, WrongTable

    try:
        words = Words.read(args.table)
        text = Path(args.file).read_text(encoding="utf-8") if args.file else sys.stdin.read()
    except WrongTable as error:
        raise UserError(str(error)) from None
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"cannot be read: {error}") from None
    print(words.back(text), end="")
    return 0

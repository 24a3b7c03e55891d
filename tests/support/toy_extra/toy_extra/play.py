"""Play with something."""

import argparse


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Say what with."""
    parser.add_argument("with_what")


def run(args: argparse.Namespace) -> int:
    """Play."""
    print(f"playing with {args.with_what}")
    return 0

"""Build the tools that are neither on PATH nor built yet, and install Pulumi's Kubernetes provider.

The first time takes about 15 minutes on two cores; an interrupted run goes on where it was.
"""

from __future__ import annotations

import argparse

from cli.errors import UserError


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.add_argument(
        "--kubernetes", metavar="VERSION", help="also the control plane of this Kubernetes version, such as v1.35.4"
    )
    parser.add_argument(
        "--with", dest="extra", metavar="TOOL", action="append", default=[], help="also this optional tool"
    )


def run(args: argparse.Namespace) -> int:
    """Build them."""
    from toolchain import plugins, supply, versions
    from toolchain.locate import pulumi_home

    if args.kubernetes is not None:
        try:
            versions.numbers(args.kubernetes)
        except ValueError as error:
            raise UserError(str(error)) from error
    supply.ensure(args.kubernetes, args.extra)
    plugins.install(pulumi_home())
    return 0

"""Fetch the tools that a cluster needs and that are neither on PATH nor in the cache.

    kumulus tools                    # what every stack of the runtime kwok needs
    kumulus tools -s gcp-large       # what that stack needs
    kumulus tools --with kubectl     # that one too, or a set of tools
    kumulus tools --with kai --accept-digest    # one without a published checksum
    kumulus tools --list             # list all tools, and where they come from

They are downloaded, or built if that is not possible: docs/tools.md. An interrupted run continues where it
was.
"""

import argparse

from kumulus.cli import needs, stack
from kumulus.cli.doctor_stack import how
from kumulus.cli.errors import UserError
from kumulus.model.words import aligned
from kumulus.toolchain import images, pins, releases, supply, versions
from kumulus.toolchain.locate import Location, locate
from kumulus.toolchain.pins import Pins
from kumulus.toolchain.venv import enter_venv


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    add = parser.add_argument
    add("--kubernetes", metavar="VERSION", help="also the control plane of this Kubernetes version, such as v1.35.4")
    add("-s", "--stack", help="what this stack needs, instead of what every one does")
    add("--with", dest="extra", metavar="TOOL", action="append", default=[], help="also this tool, or set of tools")
    add(
        "--accept-digest",
        action="store_true",
        help="where no checksum is known, take what the registry has now, and remember its digest",
    )
    add = parser.add_mutually_exclusive_group().add_argument
    add("--list", action="store_true", help="only list the tools, their sizes, and what needs them")
    add("--urls", action="store_true", help="only say which files are downloaded, to fill a mirror with")


def run(args: argparse.Namespace) -> int:
    """Fetch the tools."""
    known = pins.load()
    if args.kubernetes is not None:
        try:
            versions.numbers(args.kubernetes)
        except ValueError as error:
            raise UserError(str(error)) from error
    if args.list:
        print(_table(known))
        return 0
    if args.urls:
        print(_urls(known))
        return 0
    if args.accept_digest and not args.extra and args.stack is None:
        raise UserError("--accept-digest is of tools that you name; write --with TOOL or -s STACK, too")
    names = [tool.name for each in args.extra for tool in known.named(each)]
    wanted = None
    if args.stack is not None:
        enter_venv()
        wanted = needs.of_stack(args.stack)
        names += [name for name in wanted.tools if name not in names]
    if args.accept_digest:
        images.accept([tool for name in names for tool in known.named(name)])
        pins.load.cache_clear()
    tools = stack.without_command_plugin(names)
    if wanted is not None:
        # Exactly what the stack needs, for each version of its control planes.
        also = [args.kubernetes] if args.kubernetes is not None else []
        for version in dict.fromkeys((*wanted.versions, *also)):
            supply.provide(tools, version)
    else:
        # What every stack of the runtime kwok needs, and what was asked for in addition.
        supply.ensure(args.kubernetes, tools)
    stack.install_plugins(names)
    return 0


def _table(known: Pins) -> str:
    """A line for each tool."""
    others = [tool for version in known.other_kubernetes for tool in known.control_plane(version)]
    rows = [("TOOL", "VERSION", "FROM", "SIZE", "NEEDED BY")]
    rows += [_row(known, locate(known, tool)) for tool in (*known.tools, *others)]
    widest = max(len(size) for *_, size, _ in rows)
    return aligned([(*row, size.rjust(widest), who) for *row, size, who in rows])


def _urls(known: Pins) -> str:
    """The URLs of this platform's release files, one a line.

    Without images' layers: a registry wants a token for them.
    """
    files = (release for release in known.releases.values() if not release.image)
    return "\n".join(dict.fromkeys(releases.address(release.url) for release in files))


def _row(known: Pins, location: Location) -> tuple[str, str, str, str, str]:
    tool = location.tool
    who = ", ".join(needs.needed_by(tool.name)) or f"--with {tool.name}"
    if tool.version in known.other_kubernetes:
        who = f"kubernetesVersion: v{tool.version}"
    if location.path is None:
        return tool.name, tool.version, f"not there ({how([tool])})", "-", who
    source = "Pulumi's plugins" if location.source == "plugins" else location.source
    return tool.name, location.version, source, f"{supply.size(location.path) / 1e6:,.0f} MB", who

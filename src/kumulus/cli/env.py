"""Print the shell commands that make plain `pulumi` and `kubectl` work here.

    eval "$(kumulus env)"               # the tools
    eval "$(kumulus env quickstart)"    # the tools; and pulumi, kubectl and kumulus use this stack
    eval "$(kumulus env many --cluster west)"   # the same; and kubectl uses its cluster west

Running it again changes nothing. Your own choices stay: a passphrase, proxies, and whether Pulumi may fetch plugins.
With a stack, PULUMI_STACK and KUBECONFIG are set in any case.
It also creates for plain pulumi a local backend's directory and a launcher by which the engine finds the plugin.
"""

import argparse
import os
import shlex
import sys

from kumulus.cli import project, stack, which
from kumulus.cli.errors import UserError
from kumulus.host import installation


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.add_argument("stack", nargs="?", help="also set PULUMI_STACK to this stack, and KUBECONFIG to its cluster")
    which.add_option(parser)


def run(args: argparse.Namespace) -> int:
    """Print them."""
    from kumulus.toolchain import environment, pins, supply
    from kumulus.toolchain.locate import locate

    if args.cluster is not None and args.stack is None:
        raise UserError(f"--cluster {args.cluster} is one of which stack? Name it first: env STACK --cluster NAME")
    variables = environment.changes(os.environ)
    # PATH is not exported as a whole: _path_line adds each directory to the shell's own.
    del variables["PATH"]
    here = project.found()
    if args.stack is not None:
        found = which.chosen(args.stack, args.cluster)
        kubeconfig = found.kubeconfig
        if not kubeconfig.exists():
            print(f"note: {found.not_up()}", file=sys.stderr)
        # Set even if it does not exist: a previous value, of another cluster, must not be used for this stack.
        variables |= {"PULUMI_STACK": args.stack, "KUBECONFIG": str(kubeconfig)}
    if here is not None:
        stack.prepare_project(here)
    if not installation.python().exists():
        print(f"note: .venv is not there yet\n  To make it: {installation.command()} venv", file=sys.stderr)
    known = pins.load()
    lacking = supply.missing(known, known.required)
    if lacking:
        names = ", ".join(tool.name for tool in lacking)
        print(f"note: not there yet: {names}\n  To get them: {installation.command()} tools", file=sys.stderr)
    elif lacking := supply.missing(known, known.named("kubectl")):
        why = locate(known, lacking[0]).note or "kubectl is not there"
        print(f"note: {why}\n  To get one that fits: {installation.command()} tools --with kubectl", file=sys.stderr)
    for directory in reversed(environment.directories()):
        print(_path_line(directory))
    for name, value in variables.items():
        print(f"export {name}={shlex.quote(value)}")
    return 0


def _path_line(directory: str) -> str:
    # The shell checks its own PATH: a version manager that started this Python, such as pyenv, may have put more on
    # ours than the shell has.
    quoted = shlex.quote(directory)
    return f'case ":${{PATH}}:" in *:{quoted}:*) ;; *) export PATH={quoted}:"${{PATH}}" ;; esac'

"""Print the shell commands that make plain `pulumi` and `kubectl` work here.

    eval "$(./kumulus env)"               # the tools
    eval "$(./kumulus env quickstart)"    # and KUBECONFIG of that stack's cluster

Doing so again changes nothing. What is set already stays, such as a passphrase of your own.
"""

from __future__ import annotations

import argparse
import os
import shlex
import sys

from cli import project


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.add_argument("stack", nargs="?", help="also set KUBECONFIG to this stack's cluster")


def run(args: argparse.Namespace) -> int:
    """Print them."""
    from toolchain import environment, pins, supply

    variables = environment.changes(os.environ)
    del variables["PATH"]
    if args.stack is not None:
        kubeconfig = project.kubeconfig(args.stack)
        if kubeconfig.exists():
            variables["KUBECONFIG"] = str(kubeconfig)
        else:
            project.require_stack(args.stack)
            print(f"note: {args.stack} has no local cluster that is up; KUBECONFIG stays as it is", file=sys.stderr)
    known = pins.load()
    lacking = supply.missing(known, known.required)
    if lacking:
        names = ", ".join(tool.name for tool in lacking)
        print(f"note: not built yet: {names}\n  To get them: ./kumulus tools", file=sys.stderr)
    for directory in reversed(environment.directories()):
        print(_path_line(directory))
    for name, value in variables.items():
        print(f"export {name}={shlex.quote(value)}")
    return 0


def _path_line(directory: str) -> str:
    # Left to the shell: a version manager that started this Python, such as pyenv, may have put more on our PATH than
    # the shell has.
    quoted = shlex.quote(directory)
    return f'case ":${{PATH}}:" in *:{quoted}:*) ;; *) export PATH={quoted}:"${{PATH}}" ;; esac'

"""Destroy everything a stack created and forget its state; its file stays."""

import argparse
from pathlib import Path

from kumulus.cli import beforehand, needs, project, stack
from kumulus.cli.errors import UserError
from kumulus.host import installation
from kumulus.runtimes import place, registry


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    stack.add_arguments(parser)
    parser.add_argument(
        beforehand.ALL_THE_SAME,
        dest="with_tenants",
        action="store_true",
        help="even if teams' stacks still have something in the cluster",
    )


def run(args: argparse.Namespace) -> int:
    """Take it down."""
    # A stack whose file is gone can still be destroyed; one with neither file nor state is a typo.
    name, further = stack.chosen(args)
    state = project.state_exists(name)
    if not state:
        project.require_stack(name)
    if state is False:
        return _nothing(name)
    stack.make_ready(needs.to_remove, name)
    stack.check_options("destroy", further)
    beforehand.check_state()
    if not stack.exists(name):
        return _nothing(name)
    beforehand.check_unlocked(name)
    beforehand.check_runs(name)
    beforehand.check_tenants(name, args.with_tenants)
    file = project.current().stack_file(name)
    had_file = file.exists()
    try:
        code = stack.run(["destroy", "-s", name, "--yes", "--skip-preview", *further])
    finally:
        beforehand.without_salt_only(file, had_file)
    # pulumi leaves the removal of the stack to the user; we do it here, and say so.
    return stack.forget(name) if code == 0 else code


def _nothing(name: str) -> int:
    """Say that there is nothing to take down; a cluster of which the state is gone is an error."""
    folder = project.clusters_directory()
    root = project.current().root.resolve()
    for directory in sorted(folder.iterdir()) if folder.is_dir() else ():
        owner = place.Place(directory).note().get("owner", "")
        stack_of, program = place.stack_and_program(owner)
        if stack_of == name and Path(program).resolve() == root:
            given_up = registry.of_directory(directory).given_up.format(
                directory="that directory",
                name=directory.name,
                up=f"{installation.command()} up {name}",
                identity=place.identity_of(owner),
            )
            raise UserError(
                f"{name} has a cluster in {directory}, and its state is gone\n"
                "  Bring the state back, or import the cluster (docs/installation-configuration.md); "
                f"or give it up: {given_up}"
            )
    print(f"{name} is not up: nothing to destroy")
    return 0

"""Create a cluster from a capture: its nodes as a stack, its pods on the same nodes.

    kumulus clone capture/ -s mine      # writes the stack's file, brings it up, creates the pods
    kumulus clone capture/ -s mine      # again: creates what is missing, and finishes what was cut off

The stack is like any other: `kumulus watch`, `fault`, `experiment`, `down`. More: docs/your-cluster.md.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from kumulus.cli import beforehand, needs, project, stack, stack_file, which
from kumulus.cli.errors import UserError
from kumulus.extras.capture.commands import catching_up, clone_file
from kumulus.extras.capture.commands.capture import show
from kumulus.host import interrupts

if TYPE_CHECKING:
    from kumulus.extras.capture.putting import Put
    from kumulus.kube import Client

# Seconds without an answer: creating tens of thousands of pods keeps a small machine busy.
_LONGER = 60.0


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.add_argument("capture", metavar="DIRECTORY", type=Path, help="what `kumulus capture` wrote")
    parser.add_argument("-s", "--stack", required=True, help="the stack to create from it")


def run(args: argparse.Namespace) -> int:
    """Clone."""
    with interrupts.like_ctrl_c():
        made = clone(args.capture, args.stack)
    pods = made.made.get("Pod", 0)
    print(f"{args.stack} has the capture's nodes and {pods:,} of its pods")
    for kind, number in made.unserved.items():
        print(f"  not there: {number:,} {kind}: {made.undefined.get(kind, 'the cluster has no such kind')}")
    for line in made.about_claims():
        print(f"  {line}")
    for kind, messages in made.refused.items():
        print(f"  refused: {len(messages):,} {kind}, such as {messages[0]}", file=sys.stderr)
    return 1 if made.refused else 0


def whole(capture: Path, name: str) -> which.StackCluster:
    """The clone of a capture; made or finished first, if that is necessary."""
    _require_capture(capture)
    found = which.chosen(name)
    if _state(capture, found) == "whole":
        return found
    clone(capture, name)
    return which.chosen(name)


def clone(capture: Path, name: str) -> Put:
    """Bring a capture up as a stack."""
    from kumulus.extras.capture.dumps import FileRefused
    from kumulus.extras.capture.mark import NotTheClone
    from kumulus.extras.journal.errors import JournalError
    from kumulus.kube import ApiError, KubeconfigError, Unreachable

    _require_capture(capture)
    try:
        _bring_up(capture, name)
        found = which.chosen(name)
        with catching_up.changing(capture, found):
            made = catching_up.ask(found, lambda client: _put(client, capture), _LONGER)
        catching_up.finish(capture, found)
    except (JournalError, KubeconfigError, NotTheClone, FileRefused) as error:
        raise UserError(str(error)) from None
    except (ApiError, Unreachable) as error:
        raise UserError(f"{error}\n  Run the same command again to continue") from None
    except KeyboardInterrupt:
        print(f"{name} is not the whole clone yet\n  Run the same command again to continue", file=sys.stderr)
        raise
    return made


def _require_capture(capture: Path) -> None:
    from kumulus.extras.capture.writing import STACK, WORKLOAD
    from kumulus.stackfile.location import other_path

    for file in (STACK, WORKLOAD):
        if not (capture / file).is_file():
            remedy = other_path(capture, lambda each: (each / STACK).is_file())
            raise UserError(f"{capture} is no capture: it has no {file}; {remedy}")


def _bring_up(capture: Path, name: str) -> None:
    """Bring up the clone's stack, unless its cluster is marked as the clone, which it is once it has come up."""
    found = which.chosen(name)
    state = _state(capture, found)
    if not state and found.kubeconfig.exists() and not project.current().stack_file(name).exists():
        raise _not_this_one(name, "its cluster is there already, and no clone")
    _declare(capture, name)
    if not state:
        bring_up(name)


def _state(capture: Path, found: which.StackCluster) -> str:
    """Whether a cluster is the `whole` clone of a capture, or `begun`; empty if it does not say so, or is not up."""
    from kumulus.extras.capture import mark
    from kumulus.extras.journal import book
    from kumulus.kube import KubeconfigError, Unreachable, objects

    async def read(client: Client) -> tuple[Mapping[str, str] | None, str]:
        marked = await mark.read(client)
        # A cluster that is starting is not marked, and may have no identity yet.
        return marked, "" if marked is None else await objects.identity(client)

    if not found.kubeconfig.exists():
        return ""
    try:
        marked, identity = catching_up.ask(found, read)
    except (KubeconfigError, Unreachable):
        # An update repairs whatever keeps it from answering, or says why not.
        return ""
    if marked is None:
        return ""
    if not mark.is_of(marked, *catching_up.captures(capture)):
        raise _not_this_one(
            found.stack, f"it is the clone of another capture than {capture}, or of an earlier one there"
        )
    return "begun" if any(each.changes.finish for each in book.unrestored(identity)) else "whole"


def _not_this_one(name: str, why: str) -> UserError:
    return UserError(f"{name}: {why}\n  Name another stack with -s, or take this one down first: kumulus down {name}")


def _declare(capture: Path, name: str) -> None:
    """Write the stack's file; an existing one has to be as a clone of this capture has it."""
    from kumulus.extras.capture.writing import STACK

    beforehand.check_name(name)
    file, source = project.current().stack_file(name), capture / STACK
    _check(source, name)
    if file.exists():
        clone_file.require(file, catching_up.written(capture), capture)
    else:
        clone_file.write(file, source.read_text(encoding="utf-8"))


def _check(source: Path, name: str) -> None:
    """Check a capture's stack file, which may be larger than a stack's file: all nodes' names are in it."""
    import yaml

    try:
        config = clone_file.config_of(source.read_text(encoding="utf-8"))
    except (ValueError, yaml.YAMLError) as error:
        raise UserError(f"{source} cannot be read: {' '.join(str(error).split())}") from None
    described = stack_file.StackFile(name, source.parent, str(source), config).described
    if described is None or described.only is None:
        raise UserError(f"{source} does not describe a cluster\n  Capture it again")


def bring_up(name: str) -> None:
    """Create a stack whose file exists, and bring it up."""
    stack.make_ready(needs.of_stack, name)
    stack.create(name)
    beforehand.check_unlocked(name)
    if stack.run(["up", "-s", name, "--yes", "--skip-preview"]) != 0:
        raise UserError(f"{name} did not come up; what went wrong is said above")


async def _put(client: Client, capture: Path) -> Put:
    """Create what is missing in a clone, which is marked as the capture's before anything is in it."""
    from kumulus.extras.capture import mark
    from kumulus.extras.capture.putting import put
    from kumulus.extras.capture.writing import STACK, WORKLOAD

    def progress(kind: str, count: int) -> None:
        if count % 100 == 0:
            show(f"{count:,} {kind}")

    if await mark.read(client) is None:
        await mark.write(client, capture, STACK, WORKLOAD)
    found = await put(client, capture / WORKLOAD, progress)
    show("")
    return found

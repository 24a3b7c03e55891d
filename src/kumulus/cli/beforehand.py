"""What is looked at before pulumi changes a stack, and said while nothing is changed yet.

By the time these are called the command runs where the packages are, and the directory of the backend is there.
"""

from __future__ import annotations

import re
import shlex
import sys
from pathlib import Path

from kumulus.cli import backend, project, stack_file, tenants_first, which
from kumulus.cli.errors import UserError

# As Pulumi has it, which shows other letters wrongly in its own error.
_NAME = re.compile(r"[A-Za-z0-9_.-]{1,100}")
# Of more node groups the outputs fill the screen, six lines for each.
_GROUPS_SHOWN = 20


def of_any(stack: str) -> None:
    """Before any command on a stack: its name, its file, and whether pulumi can read its state.

    Raises:
        UserError: pulumi takes no stack of that name, the file is no YAML, or the state's files are half written; with
            the place.
    """
    if not _NAME.fullmatch(stack):
        file = project.current().shown(project.current().stack_file(stack))
        raise UserError(
            f"{stack!r} cannot be a stack's name: Pulumi takes letters a to z, digits, -, _ and ., 100 at most\n"
            f"  Rename {file}"
        )
    stack_file.read(stack)
    of_state()


def of_state() -> None:
    """Before the state is read: whether pulumi was killed as it wrote what it cannot do without.

    Raises:
        UserError: it was; with the files to remove.
    """
    current = project.current()
    directory = current.backend_directory()
    if directory is not None and (cut := backend.half_written(directory)):
        names = " ".join(shlex.quote(current.shown(each)) for each in cut)
        raise UserError(
            f"pulumi was killed while it wrote {current.shown(cut[0])}, and reads no stack until that is removed\n"
            f"  It only describes the state; nothing is lost without it: rm {names}"
        )


def of_update(stack: str) -> None:
    """Before an update, or a destroy: who else works on the stack.

    Raises:
        UserError: a running process of this machine does.
    """
    directory = project.current().backend_directory()
    if directory is None:
        return
    if who := backend.at_work(directory, project.current().name, stack):
        raise UserError(
            f"{stack} is being worked on by {who}\n  Wait for its end, or press Ctrl-C where it runs; "
            "`pulumi cancel` would let two work on it at once"
        )


def of_first(stack: str) -> None:
    """Before a stack is made known to Pulumi: whether it is one that is up, under another name.

    A note names stacks that have a cluster and no file any more.
    """
    current = project.current()
    directory = current.backend_directory()
    if directory is None:
        return
    for other, cluster in backend.with_cluster(directory, current.name, but=current.stacks()).items():
        here = current.shown(current.stack_file(stack))
        gone = current.shown(current.stack_file(other))
        print(
            f"note: {other} has a cluster in {current.shown(cluster)}, and no {gone} any more; {stack} gets another\n"
            f"  Where {here} is the same file, renamed: name it {gone} again, or take {other} down",
            file=sys.stderr,
        )


def of_destroy(stack: str, all_the_same: bool) -> None:
    """Before a destroy: whether teams have something in the cluster.

    Args:
        stack: the stack.
        all_the_same: whether that is to be lost.

    Raises:
        UserError: they have.
    """
    for each in which.every(stack):
        if not all_the_same and each.kubeconfig.exists() and _has_tenants(stack, each.cluster):
            tenants_first.require_empty(each.label, each.kubeconfig)


def of_removal(stack: str) -> None:
    """Before a destroy: whether the stack's cluster is here. Pulumi forgets what is in a cluster before it asks that.

    Raises:
        UserError: it is not; with where it is, and the ways out.
    """
    current = project.current()
    directory = current.backend_directory()
    if directory is None:
        return
    from kumulus.host import machine
    from kumulus.runtimes import registry
    from kumulus.runtimes.whereabouts import Here, away

    here = Here.of(machine.this(), current.root)
    for outputs in backend.clusters(directory, current.name, stack):
        if not registry.outlives_stack(outputs.get("runtime")) and (found := away(outputs, here)):
            raise UserError(found.refusal())


def shown_options(stack: str, options: list[str]) -> list[str]:
    """Options for pulumi with which a fleet of many groups does not fill the screen with its outputs.

    Args:
        stack: the stack.
        options: options that the user wrote, which stay as they are.
    """
    described = stack_file.described(stack)
    groups = sum(len(each.spec.nodeGroups) for each in described.clusters.values()) if described else 0
    if groups <= _GROUPS_SHOWN or any("outputs" in each for each in options):
        return []
    print(f"{stack} has {groups} node groups: to see its outputs, pulumi stack output -s {stack}", flush=True)
    return ["--suppress-outputs"]


def without_salt_only(file: Path, there_before: bool) -> None:
    """Remove a stack file that pulumi made for its salt, where there was none.

    Args:
        file: the stack's file.
        there_before: whether it was there before the command.
    """
    if there_before or not file.exists():
        return
    lines = [line for line in file.read_text().splitlines() if line.strip()]
    if all(line.startswith(("encryptionsalt:", "secretsprovider:", "encryptedkey:")) for line in lines):
        file.unlink()


def _has_tenants(stack: str, cluster: str) -> bool:
    try:
        described = stack_file.described(stack)
        return described is not None and bool(described.clusters[cluster].spec.tenants)
    except UserError:
        # A stack without a file, or with mistakes in it, may have some.
        return True

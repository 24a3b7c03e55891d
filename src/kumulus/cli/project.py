"""The Pulumi project that the command works on: its stacks, where their state is, where their clusters are.

It is the user's: the one that the current directory is in. The `./kumulus` of a checkout works on the checkout where
there is no other.
"""

import difflib
import os
import shlex
import sys
from pathlib import Path

from kumulus.cli.errors import UserError
from kumulus.host import installation, pulumi_project
from kumulus.host.installation import pulumi_home
from kumulus.host.pulumi_project import PulumiProject
from kumulus.runtimes import registry
from kumulus.runtimes.descriptor import KUBECONFIG_FILE
from kumulus.runtimes.place import Place

_QUICKSTART = "quickstart"


def found() -> PulumiProject | None:
    """The project, or None if there is none."""
    nearest = pulumi_project.find(_here())
    checkout = installation.checkout()
    if nearest is None and checkout is not None and Path(sys.argv[0]).resolve() == checkout / "kumulus":
        return pulumi_project.find(checkout)
    return nearest


def current() -> PulumiProject:
    """The project."""
    project = found()
    if project is None:
        raise UserError(
            f"there is no Pulumi.yaml in {Path.cwd()} or above it\n"
            f"  To make a project: {installation.command()} new my-fleet"
        )
    return project


def chosen(stack: str | None) -> str:
    """The stack to work on: the one named, or else the current one.

    The current one is Pulumi's: PULUMI_STACK, or else the one that `pulumi stack select` chose. If neither is set, it
    is the only stack that has a file, or the quickstart.
    """
    if stack:
        return stack
    project = current()
    if selected := os.environ.get("PULUMI_STACK") or project.selected_stack(pulumi_home()):
        return selected.rpartition("/")[2]
    known = project.stacks()
    if len(known) == 1:
        return known[0]
    if _QUICKSTART in known:
        return _QUICKSTART
    if not known:
        raise UserError(f"{project.root} has no stack: there is no {project.shown(project.stack_file('NAME'))}")
    raise UserError(f"which stack? There are {', '.join(known)}\n  To choose one: pulumi stack select {known[0]}")


def require_stack(stack: str) -> str:
    """Return the stack's name if the stack has a file."""
    project = current()
    known = project.stacks()
    if stack in known:
        return stack
    near = difflib.get_close_matches(stack, known, n=1)
    hint = f" (did you mean {near[0]}?)" if near else ""
    file = project.shown(project.stack_file(stack))
    # As after `eval "$(kumulus env quickstart)"`, in a shell that went to another project since.
    named = os.environ.get("PULUMI_STACK", "").rpartition("/")[2] == stack
    why = f"\n  PULUMI_STACK is {stack} in this shell: name another by -s, or unset PULUMI_STACK" if named else ""
    if not known and not project.describes_clusters:
        why = f"\n  To make it: pulumi stack init {stack}"
    why += _elsewhere(stack, project)
    raise UserError(f"there is no {file}{hint}; the stacks are: {', '.join(known) or 'none'}{why}")


def _elsewhere(name: str, project: PulumiProject) -> str:
    """A line on a cluster of another project that is up and has this name, or its stack has; empty if none is."""
    from kumulus.host import processes

    for directory in sorted(processes.with_directories("clusters")):
        stack, program = Place(directory).made_by()
        if name in (directory.name, stack) and stack and Path(program).resolve() != project.root.resolve():
            command = installation.command()
            absolute = command if command == "kumulus" else Path(command).absolute()
            down = f"cd {shlex.quote(program)} && {absolute} down {stack}"
            return f"\n  A cluster {directory.name} of another project is up; to take it down: {down}"
    return ""


def home() -> Path:
    """Where the files of clusters and experiments are: KUMULUS_HOME, or .kumulus in the project.

    Outside of any project, .kumulus is in the current directory.
    """
    project = found()
    # A relative path is relative to the program, as in the provider.
    return (project.root if project else Path.cwd()) / (os.environ.get("KUMULUS_HOME") or ".kumulus")


def clusters_directory() -> Path:
    """Where the files of local clusters are, a directory for each."""
    return home() / "clusters"


def kubeconfig(cluster: str) -> Path:
    """Where a cluster's kubeconfig is while it is up: its own, or the copy of an existing cluster's."""
    return kubeconfig_in(clusters_directory() / cluster)


def kubeconfig_in(directory: Path) -> Path:
    """As :func:`kubeconfig`, by the cluster's directory."""
    for name in {each.kubeconfig_file for each in registry.every()} - {KUBECONFIG_FILE}:
        if (directory / name).exists():
            return directory / name
    return directory / KUBECONFIG_FILE


def state_exists(stack: str) -> bool | None:
    """Whether the backend knows the stack; None when only Pulumi can tell."""
    project = current()
    backend = project.backend_directory()
    if backend is None:
        return None
    folder = backend / ".pulumi" / "stacks" / project.name
    return any((folder / f"{stack}.json{packed}").exists() for packed in ("", ".gz", ".zst"))


def expanded(path: Path) -> Path:
    """A path on the command line, with ``~`` and ``~user`` replaced where the shell did not."""
    try:
        return path.expanduser()
    except RuntimeError:
        raise UserError(f"{path}: there is no home directory of {path.parts[0]}") from None


def _here() -> Path:
    # As Pulumi sees it: the shell's logical path in PWD, if that leads here.
    seen = os.environ.get("PWD", "")
    return Path(seen) if os.path.isabs(seen) and os.path.realpath(seen) == os.getcwd() else Path.cwd()

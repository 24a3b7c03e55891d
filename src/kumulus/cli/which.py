"""Which cluster of a stack a command means: the only one, the one named by `--cluster`, or the hub."""

import argparse
import difflib
import re
from dataclasses import dataclass
from pathlib import Path

from kumulus.cli import project, stack_file
from kumulus.cli.errors import UserError
from kumulus.host import installation, pulumi_project
from kumulus.host.pulumi_project import PulumiProject
from kumulus.model.names import default_cluster_name
from kumulus.model.words import listed
from kumulus.runtimes.place import Place
from kumulus.toolchain.venv import enter_venv

_SHOWN = 12
# A `name:` that is not the first key of a list item, as the name of a group or an add-on usually is. The second half is
# for flow style and JSON, where quotes are escaped if all of it is one string.
_NAME = re.compile(r"""(?m)^[ \t]+["']?name["']?:|[{,][\s\\]*["']?name\\?["']?:""")


@dataclass(frozen=True)
class StackCluster:
    """A cluster of a stack."""

    stack: str
    """The stack's name."""
    cluster: str
    """What its file, or a program of the user's own, calls the cluster among several; empty for the only one."""
    folder: str
    """The name of the cluster's directory, which is its own name."""

    @property
    def label(self) -> str:
        """What to call it: `many/worker-0`, or the stack's name if it has one cluster."""
        return f"{self.stack}/{self.cluster}" if self.cluster else self.stack

    @property
    def options(self) -> str:
        """The options that name it on the command line of another command."""
        return f"-s {self.stack} --cluster {self.cluster}" if self.cluster else f"-s {self.stack}"

    @property
    def kubeconfig(self) -> Path:
        """Where its kubeconfig is while it is up."""
        return project.kubeconfig(self.folder)

    @property
    def snapshots(self) -> Path:
        """Where its snapshots are."""
        return project.home() / "snapshots" / (f"{self.stack}-{self.cluster}" if self.cluster else self.stack)

    def require_up(self) -> Path:
        """Its kubeconfig; raises :meth:`not_up` if it is not up."""
        if self.kubeconfig.exists():
            return self.kubeconfig
        raise self.not_up()

    def not_up(self) -> UserError:
        """The error for a cluster that is not up; raises the one for a stack without a file if there is none."""
        name = project.require_stack(self.stack)
        what = f"local cluster {self.cluster}" if self.cluster else "local cluster"
        return UserError(f"{name} has no {what} that is up\n  To start it: {installation.command()} up {name}")


def add_option(parser: argparse.ArgumentParser) -> None:
    """Declare the option that says which of a stack's clusters is meant."""
    parser.add_argument("--cluster", metavar="NAME", help="which of its clusters, where it has several (default: hub)")


def chosen(stack: str, cluster: str | None = None) -> StackCluster:
    """The cluster of a stack that a command means.

    Args:
        cluster: what the stack's file calls it; None where the command names none.
    """
    found = {each.cluster: each for each in every(stack)}
    own = default_cluster_name(stack)
    if only := found.get(""):
        if cluster and cluster != only.folder:
            called = "" if only.folder == own else f", {only.folder}"
            raise UserError(f"{stack} has one cluster{called}, and --cluster is for stacks with several; leave it out")
        return only
    if cluster is None:
        # A user's program: clusters are called as their folders are; the one of the stack's name is meant.
        hub = own if own in {each.folder for each in found.values()} else _hub(stack)
        if hub in found:
            return found[hub]
    choices = listed(list(found), _SHOWN)
    if cluster is None:
        first = next(iter(found))
        raise UserError(
            f"which cluster of {stack}? There are {choices}\n"
            f"  To choose one: --cluster {first}; to choose one for every command: kumulus:hub in its file"
        )
    if cluster not in found:
        near = difflib.get_close_matches(cluster, found, n=1)
        hint = f" (did you mean {near[0]}?)" if near else ""
        raise UserError(f"{stack} has no cluster {cluster}{hint}; there are {choices}")
    return found[cluster]


def every(stack: str) -> list[StackCluster]:
    """The clusters of a stack: by its file, or as a program of the user's own made them; else one of its own name."""
    here = project.found()
    name = default_cluster_name(stack)
    if here is None:
        return [StackCluster(stack, "", name)]
    text = _text(here.stack_file(stack))
    if not here.describes_clusters and "kumulus:cluster" not in text and (made := _made(here, stack)):
        return [StackCluster(stack, each if len(made) > 1 else "", each) for each in made]
    if "kumulus:clusters" not in text and _NAME.search(text) is None:
        return [StackCluster(stack, "", name)]
    # Reading a file needs the packages in .venv; most stacks of one cluster never get here.
    enter_venv()
    read = stack_file.read(stack)
    return [StackCluster(stack, each, f"{name}-{each}") for each in read.members] or [
        StackCluster(stack, "", read.cluster_name or name)
    ]


def _hub(stack: str) -> str:
    """Which of its clusters a stack's file calls the hub; empty if it names none or is not there."""
    if not project.current().stack_file(stack).exists():
        return ""
    enter_venv()
    return str(stack_file.read(stack).config.get("kumulus:hub") or "")


def _text(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


def _made(here: PulumiProject, stack: str) -> list[str]:
    """The names of the clusters that are there and, by their notes, are of a stack of a project."""
    found = []
    folder = project.clusters_directory()
    for place in map(Place, sorted(folder.iterdir()) if folder.is_dir() else []):
        owner, program = place.made_by()
        if owner != stack.rpartition("/")[2] or not program or place.removed():
            continue
        its_project = pulumi_project.find(Path(program))
        if its_project is not None and its_project.root.resolve() == here.root.resolve():
            found.append(place.name)
    return found

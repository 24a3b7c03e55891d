"""Which cluster of a stack a command means: the only one, the one named by `--cluster`, or the hub."""

import argparse
import difflib
import re
from dataclasses import dataclass
from pathlib import Path

from kumulus.cli import project, stack_file
from kumulus.cli.entering import enter_venv
from kumulus.cli.errors import UserError
from kumulus.model.names import default_cluster_name
from kumulus.model.words import listed

_SHOWN = 12
# A `name:` that is not the first key of a list item, as the name of a group or an add-on usually is.
_NAME = re.compile(r"""(?m)^[ \t]+["']?name["']?:|[{,][\s\\]*["']?name\\?["']?:""")


@dataclass(frozen=True)
class Which:
    """A cluster of a stack."""

    stack: str
    """The stack's name."""
    cluster: str
    """What its file calls the cluster among several; empty for the only one."""
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
        """Its kubeconfig."""
        if self.kubeconfig.exists():
            return self.kubeconfig
        raise self.not_up()

    def not_up(self) -> UserError:
        """The error for a cluster that is not up."""
        return project.not_up(self.stack, self.cluster)


def add_option(parser: argparse.ArgumentParser) -> None:
    """Declare the option that says which of a stack's clusters is meant."""
    parser.add_argument("--cluster", metavar="NAME", help="which of its clusters, where it has several (default: hub)")


def chosen(stack: str, cluster: str | None = None) -> Which:
    """The cluster that is meant.

    Args:
        cluster: what its file calls the cluster; None if the command names none.
    """
    found = {each.cluster: each for each in every(stack)}
    if "" in found:
        if cluster:
            raise UserError(f"{stack} has one cluster, and --cluster is for stacks with several; leave it out")
        return found[""]
    if cluster is None and (hub := stack_file.hub(stack)) in found:
        return found[hub]
    choices = listed(list(found), _SHOWN)
    if cluster is None:
        first = next(iter(found))
        raise UserError(
            f"which cluster of {stack}? There are {choices}\n"
            f"  To choose one: --cluster {first}; to have one that is meant otherwise: kumulus:hub in its file"
        )
    if cluster not in found:
        near = difflib.get_close_matches(cluster, found, n=1)
        hint = f" (did you mean {near[0]}?)" if near else ""
        raise UserError(f"{stack} has no cluster {cluster}{hint}; there are {choices}")
    return found[cluster]


def every(stack: str) -> list[Which]:
    """The clusters of a stack, by its file; if that names none, the only one, with the stack's name."""
    here = project.found()
    file = here.stack_file(stack) if here else None
    name = default_cluster_name(stack)
    if file is None or not _names_some(file):
        return [Which(stack, "", name)]
    # Reading a file needs the packages in .venv; most stacks of one cluster never get here.
    enter_venv()
    read = stack_file.read(stack)
    return [Which(stack, each, f"{name}-{each}") for each in read.members] or [
        Which(stack, "", read.cluster_name or name)
    ]


def _names_some(file: Path) -> bool:
    """Whether a file may have several clusters, or name its only one, so that it has to be parsed."""
    try:
        text = file.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return False
    return "kumulus:clusters" in text or _NAME.search(text) is not None

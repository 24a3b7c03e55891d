"""A stack's file, read as the Pulumi program does: every command that wants to know something of it asks here."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kumulus.cli import project
from kumulus.cli.errors import UserError
from kumulus.host import installation, pulumi_project

if TYPE_CHECKING:
    from kumulus.stackfile.clusters import Stack
    from kumulus.stackfile.load import LoadedCluster

_CLUSTERS = "kumulus:clusters"
# The keys under which a stack's file describes its clusters.
_DESCRIPTIONS = ("kumulus:cluster", "kumulus:clusterConfig", _CLUSTERS)


@dataclass(frozen=True, eq=False)
class StackFile:
    """A stack's file as it was when the command first asked for it, read and checked once."""

    stack: str
    """The stack's name."""
    base: Path
    """The directory that its paths are relative to."""
    shown: str
    """What to call it in messages."""
    config: dict[str, Any]
    """Its configuration, unchanged."""
    describes_clusters: bool = False
    """Whether its program is Kumulus' own, which declares what is in this file and nothing else."""

    @cached_property
    def loaded(self) -> Stack:
        """What the stack is to become."""
        return _load(self.config, self.stack, self.base, self.shown)

    @cached_property
    def members(self) -> list[str]:
        """What it calls its clusters, if it has several; mistakes in the file are not reported."""
        if _CLUSTERS not in self.config:
            return []
        from kumulus.stackfile.clusters import names_in

        return names_in(self.config)

    @cached_property
    def cluster_name(self) -> str:
        """What it names its only cluster; empty if it gives no name, which means the stack's name."""
        from kumulus.stackfile.settings import parsed

        cluster = parsed(self.config.get("kumulus:cluster"))
        name = cluster.get("name") if isinstance(cluster, dict) else None
        return name if isinstance(name, str) else ""

    @property
    def declares(self) -> bool:
        """Whether it has the keys under which clusters are declared, even if what they say is secret."""
        return any(key in self.config for key in _DESCRIPTIONS)

    @cached_property
    def described(self) -> Stack | None:
        """As `loaded`, or None if the file does not say it: all is secret, or a program of the user's own has it."""
        from kumulus.stackfile.secrets import without_secrets

        known = without_secrets(self.config)
        assert isinstance(known, dict)
        # With a program of the user's own, the configuration is up to that program.
        if all(known.get(key) is None for key in _DESCRIPTIONS):
            return self.loaded if self.describes_clusters and not self.declares else None
        try:
            return self.loaded
        except UserError:
            if known == self.config:
                raise
        try:
            # A mapping may be secret as a whole; no placeholder text can stand for it.
            return _load(known, self.stack, self.base, self.shown)
        except UserError:
            return None


def read(stack: str) -> StackFile:
    """A stack's file."""
    current = project.current()
    file = current.stack_file(stack)
    return _read(file, stack, current.root, current.shown(file), current.describes_clusters)


def load(stack: str) -> Stack:
    """What a stack is to become."""
    found = read(project.require_stack(stack))
    if by_users_program(stack):
        raise UserError(
            f"what {stack} has is declared by your own program, and not in {found.shown}\n"
            f"  While it is up: {installation.command()} topology -s {stack}"
        )
    return found.loaded


def by_users_program(stack: str) -> bool:
    """Whether a program of the user's own declares what a stack has, and not its file."""
    found = read(project.require_stack(stack))
    return not found.describes_clusters and not found.declares and (project.current().root / "__main__.py").is_file()


def load_one(stack: str, cluster: str) -> LoadedCluster:
    """What one cluster of a stack is to become, by what its file calls it; "" is the only one."""
    return load(stack).clusters[cluster]


def described(stack: str) -> Stack | None:
    """What a stack is to become, or None if its file does not say: see :attr:`StackFile.described`."""
    return read(project.require_stack(stack)).described


def described_by(file: Path) -> Stack | None:
    """The same for any stack file; its paths are relative to its project, or to its own directory if it has none."""
    stack, folder = file.name.removeprefix("Pulumi.").partition(".")[0], file.absolute().parent
    owner = pulumi_project.find(folder)
    return _read(file, stack, owner.root if owner else folder, str(file)).described


def prices(stack: str) -> Path | None:
    """The price file that a stack names; None if it names none."""
    file = read(project.require_stack(stack))
    named = file.config.get("kumulus:prices")
    return file.base / named if isinstance(named, str) and named else None


def check(stack: str) -> None:
    """Check a stack's file for mistakes before the stack is created in Pulumi."""
    described(stack)
    from kumulus.stackfile.nodes_file import is_refused

    file = read(stack)
    if is_refused(file.config):
        raise UserError(
            f"{file.shown} is longer than Linux lets Pulumi hand to its program\n"
            "  Put its nodes' names into a file of their own: kumulus:nodes (docs/fleets.md)"
        )


def _read(file: Path, stack: str, base: Path, shown: str, describes_clusters: bool = False) -> StackFile:
    try:
        status = file.stat()
        version = status.st_mtime_ns, status.st_size
        return _kept(file.absolute(), stack, base, shown, describes_clusters, version)
    except OSError as error:
        raise UserError(f"{shown} cannot be read: {error}") from None


@lru_cache(maxsize=8)
def _kept(
    file: Path, stack: str, base: Path, shown: str, describes_clusters: bool, version: tuple[int, int]
) -> StackFile:
    """The file as it is kept from the last time; of another version, as after Pulumi wrote to it, it is read again."""
    return StackFile(stack, base, shown, _config(file, shown), describes_clusters)


def _load(values: dict[str, Any], stack: str, base: Path, shown: str) -> Stack:
    from kumulus.model.errors import SpecError
    from kumulus.stackfile.clusters import load_stack
    from kumulus.stackfile.secrets import with_placeholders

    config = {key: with_placeholders(value) for key, value in values.items() if str(key).startswith("kumulus:")}
    try:
        return load_stack(config, stack, base, source=shown)
    except SpecError as error:
        raise UserError(str(error)) from None


def _config(file: Path, shown: str) -> dict[str, Any]:
    """A stack file's configuration."""
    from kumulus.model.errors import SpecError
    from kumulus.stackfile.yamltext import read_stack_file

    try:
        document = read_stack_file(file, shown)
    except SpecError as error:
        raise UserError(str(error)) from None
    except UnicodeDecodeError:
        raise UserError(f"{shown} is not a text in UTF-8\n  Save it as one") from None
    for key in document if isinstance(document, dict) else ():
        if str(key).startswith("kumulus:"):
            raise UserError(f"{shown}: {key} is not below config:, where Pulumi reads it\n  Indent it below config:")
    config = document.get("config") if isinstance(document, dict) else None
    return config if isinstance(config, dict) else {}

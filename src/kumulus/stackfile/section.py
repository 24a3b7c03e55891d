"""What a section of `kumulus:cluster` is that an extra brings, and a key about all clusters of a stack."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, NoReturn

from pydantic import model_validator

from kumulus.host import extras
from kumulus.model.checks import problem
from kumulus.model.errors import Problem
from kumulus.model.fields import Section, malformed

if TYPE_CHECKING:
    import pulumi

    from kumulus.stackfile.load import LoadedCluster


class ClusterSection(Section):
    """A section of `kumulus:cluster`. Its fields are checked like all others; its docstring is its description."""

    about: ClassVar[str] = ""
    """What the schema says of the cluster's key for it; by default its description."""
    example: ClassVar[str] = "{}"
    """One that the schema shows."""
    after: ClassVar[str] = ""
    """The section behind which the schema and the page have it; by default behind all."""
    before_faults: ClassVar[bool] = False
    """Whether what it declares has to be there before faults begin; else only host commands come after it."""
    measures: ClassVar[bool] = False
    """Whether it reads what nodes and pods use; KWOK then reports that."""

    @classmethod
    def field(cls) -> Any:
        """The type of its field, for one that is checked as a whole; by default itself."""
        return cls

    @classmethod
    def forms(cls) -> Mapping[str, dict[str, Any]]:
        """What JSON schema says of types that its fields check themselves, by the names of these forms."""
        return {}

    @classmethod
    def rules(cls, raw: Mapping[str, object]) -> Iterable[Problem]:
        """What is wrong between it and other parts of a cluster's mapping, whether or not the mapping has it.

        Args:
            raw: the mapping as written; the models report values of the wrong type.
        """
        return ()

    def runtime_option(self, loaded: LoadedCluster, base: Path) -> tuple[Any, list[Problem]]:
        """The option that the runtime gets under the section's name, JSON-able or None for none; and its problems.

        Args:
            loaded: the stack, with its pools.
            base: the project's directory.
        """
        return None, []

    def ports(self) -> Mapping[str, int]:
        """The ports of this machine that it asks for, by their places in it."""
        return {}

    def parts(self, loaded: LoadedCluster) -> Sequence[str]:
        """Which parts the stack has, of those for which its :class:`~kumulus.host.extras.Extra` names tools."""
        return ()

    def declare(self, resource_name: str, cluster: Any, opts: pulumi.ResourceOptions) -> Sequence[pulumi.Resource]:
        """Declare what the section asks for; called only if the stack file has it.

        Args:
            resource_name: the name in the stack; further resources have names that begin with it.
            cluster: the :class:`kumulus.EmulatedCluster` that it is in.
            opts: the parent, and what has to be there first.

        Returns:
            the resources; a destroy asks before it forgets them.
        """
        return ()


class Joined:
    """What a key about all clusters of a stack means for each of them: a :class:`StackSection` that was checked."""

    def runtime_options(self, name: str, cluster: str) -> dict[str, Any]:
        """The options that a cluster's runtime gets, by name; none for one that does not take part.

        Args:
            name: the cluster's name in the file.
            cluster: its whole name.
        """
        return {}

    def declare(
        self, resource_name: str, clusters: Mapping[str, Any], loaded: Mapping[str, LoadedCluster]
    ) -> Mapping[str, Any]:
        """Declare what it asks for.

        Args:
            clusters: each :class:`kumulus.EmulatedCluster`, by its name in the file.
            loaded: likewise, what each is to be.

        Returns:
            what the stack exports of it.
        """
        return {}


class StackSection(Section):
    """A key of a stack of several clusters that is about all of them."""

    about: ClassVar[str] = ""
    """What the schema says of the key."""

    def joined(self, hub: str, entries: Mapping[str, Sequence[str]]) -> tuple[Joined, list[Problem]]:
        """What it means for the clusters, and what is wrong with it, by places in it.

        Args:
            hub: the name of the stack's hub; may be empty.
            entries: the names of the stack's clusters, by the name of their entry in `clusters`.
        """
        raise NotImplementedError


def of_stacks() -> dict[str, type[StackSection]]:
    """The keys about all clusters of a stack that extras bring, by name."""
    return {name: extras.named("stack_sections", name, StackSection) for name in extras.names("stack_sections")}


def of_extras(taken: Iterable[str]) -> dict[str, type[ClusterSection]]:
    """The sections that extras bring, by name; one whose packages are missing is refused where a file has it.

    Raises:
        BrokenExtra: one cannot be imported, is no section, or has a name that is taken.
    """
    return {name: _of_extra(name) for name in extras.names("sections", taken)}


def _of_extra(name: str) -> type[ClusterSection]:
    try:
        found: type[ClusterSection] = extras.named("sections", name, ClusterSection)
    except extras.BrokenExtra:
        extra = next(each for each in extras.every() if name in each.sections)
        if not extra.missing:
            raise
        return _missing(extra)
    return found


def _missing(extra: extras.Extra) -> type[ClusterSection]:
    class Missing(ClusterSection):
        """A section of an extra whose packages are missing; a file that has it is refused."""

        @model_validator(mode="before")
        @classmethod
        def _refuse(cls, data: object) -> NoReturn:
            needs = f"needs {', '.join(extra.missing)}, which the extra {extra.name} has"
            raise malformed([problem((), needs, f"run: {extra.way_to_install}")])

    return Missing

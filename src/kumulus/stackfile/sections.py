"""Sections of the stack file's cluster that an extra brings: a model, and what it declares in the cluster."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from pydantic import Field

from kumulus.host import extras
from kumulus.model.fields import Section

if TYPE_CHECKING:
    import pulumi


class ClusterSection(Section):
    """A section of `kumulus:cluster`. Its fields are checked like all others; its docstring is its description."""

    example: ClassVar[str] = "{}"
    """One that the schema shows."""

    def declare(self, resource_name: str, cluster: Any, opts: pulumi.ResourceOptions) -> Sequence[pulumi.Resource]:
        """Declare what the section asks for; called only if the stack file has it.

        Args:
            resource_name: the name in the stack; further resources have names that begin with it.
            cluster: the :class:`kumulus.EmulatedCluster` that it is in.
            opts: the parent, and what has to be there first.

        Returns:
            the resources; a destroy asks before it forgets them.
        """
        raise NotImplementedError


def of_extras(taken: Iterable[str]) -> dict[str, Any]:
    """The fields of the sections that extras bring, by name.

    Raises:
        BrokenExtra: one cannot be imported, is no section, or has a name that is taken.
    """
    models = {name: extras.named("sections", name, ClusterSection) for name in extras.names("sections", taken)}
    return {
        name: (each | None, Field(default=None, description=str(each.__doc__).strip(), examples=[each.example]))
        for name, each in models.items()
    }

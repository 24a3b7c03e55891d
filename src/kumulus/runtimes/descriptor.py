"""The description of a runtime: :class:`Descriptor`, one for each folder of this package."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from kumulus.host import extras
from kumulus.model.errors import Problem

if TYPE_CHECKING:
    from kumulus.runtimes.base import Runtime

KUBECONFIG_FILE = "kubeconfig.yaml"


@dataclass(frozen=True)
class Options:
    """A runtime's section of the stack file, which has the runtime's name.

    Attributes:
        model: its class, a :class:`~kumulus.runtimes.section.RuntimeSection`, as ``module:Class``, so that callers
            that do not need it do not import pydantic.
        about: a description for people.
        example: an example of its contents.
    """

    model: str
    about: str
    example: str

    def load(self) -> type[Any]:
        """The class."""
        found: type[Any] = extras.imported(self.model, "of its runtime")
        return found


@dataclass(frozen=True)
class Descriptor:
    """One way to get a control plane.

    Attributes:
        name: its name in a stack file, after ``runtime:``.
        short: what it is in two words, for the plugin's schema; may be empty.
        about: what it is, for docs/clusters.md; ``takes`` and ``ready_in`` are that table's other columns.
        takes: what it needs of the machine.
        ready_in: how long its first `up` takes.
        page: the page of docs that is about it alone; may be empty.
        implementation: the :class:`~kumulus.runtimes.base.Runtime`, as ``module:Class``.
        options: its section of the stack file.
        further_sections: other sections that have an effect with it alone.
        option_sections: the further sections that are options of the runtime too.
        tools: the tools of pins.toml that its stacks use.
        local: whether the control plane, KWOK and Prometheus are processes of this machine, in the version that the
            stack names; otherwise KWOK and Prometheus are installed in the cluster, by their charts.
        container_engine: whether Docker, or a similar engine, has to run.
        chooses_version: whether a stack chooses the Kubernetes version.
        outlives_stack: whether the cluster exists before and after its stack.
        kubeconfig_file: the kubeconfig's name in the cluster's directory.
        rules: finds contradictions between the parts of a cluster's mapping, as written in the file.
    """

    name: str
    about: str
    takes: str
    ready_in: str
    implementation: str
    options: Options
    short: str = ""
    page: str = ""
    further_sections: tuple[str, ...] = ()
    option_sections: tuple[str, ...] = ()
    tools: tuple[str, ...] = ()
    local: bool = False
    container_engine: bool = False
    chooses_version: bool = True
    outlives_stack: bool = False
    kubeconfig_file: str = KUBECONFIG_FILE
    rules: Callable[[Mapping[str, object]], Iterable[Problem]] = lambda raw: ()

    @property
    def sections(self) -> tuple[str, ...]:
        """All sections of the stack file that have an effect with it alone."""
        return (self.name, *self.further_sections)

    def make(self) -> Runtime:
        """The runtime itself."""
        made: Runtime = extras.imported(self.implementation, self.name)()
        return made

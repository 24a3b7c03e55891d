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
class RuntimeOptions:
    """A runtime's section of the stack file, which has the runtime's name."""

    model: str
    """Its class, a :class:`~kumulus.runtimes.section.RuntimeSection`, as ``module:Class``, so that callers that do not
    need it do not import pydantic."""
    about: str
    """A description for people."""
    example: str
    """An example of its contents."""

    def load(self) -> type[Any]:
        """The class."""
        found: type[Any] = extras.imported(self.model, "of its runtime")
        return found


@dataclass(frozen=True)
class Descriptor:
    """One way to get a control plane."""

    name: str
    """Its name in a stack file, after ``runtime:``."""
    about: str
    """What it is, for docs/clusters.md; ``takes`` and ``ready_in`` are that table's other columns."""
    takes: str
    """What it needs of the machine."""
    ready_in: str
    """How long its first `up` takes."""
    implementation: str
    """The :class:`~kumulus.runtimes.base.Runtime`, as ``module:Class``."""
    options: RuntimeOptions
    """Its section of the stack file."""
    short: str = ""
    """What it is in two words, for the plugin's schema; may be empty."""
    page: str = ""
    """The page of docs that is about it alone; may be empty."""
    further_sections: tuple[str, ...] = ()
    """Other sections that have an effect with it alone."""
    option_sections: tuple[str, ...] = ()
    """The further sections that are options of the runtime too."""
    tools: tuple[str, ...] = ()
    """The tools of pins.toml that its stacks use."""
    local: bool = False
    """Whether the control plane, KWOK and Prometheus are processes of this machine, in the version that the stack
    names; otherwise KWOK and Prometheus are installed in the cluster, by their charts."""
    container_engine: bool = False
    """Whether Docker, or a similar engine, has to run."""
    chooses_version: bool = True
    """Whether a stack chooses the Kubernetes version."""
    outlives_stack: bool = False
    """Whether the cluster exists before and after its stack."""
    kubeconfig_file: str = KUBECONFIG_FILE
    """The kubeconfig's name in the cluster's directory."""
    own_file: str = ""
    """The name of a file that only its clusters' directories have; may be empty."""
    given_up: str = "remove {directory}, then {up}, which ends what still runs there, and down again"
    """How a cluster is given up whose stack's state is gone: a text in which ``{directory}`` stands for the cluster's,
    ``{name}`` for its name, ``{up}`` for the command that brings it up, and ``{identity}`` for the stack's."""
    rules: Callable[[Mapping[str, object]], Iterable[Problem]] = lambda raw: ()
    """Finds contradictions between the parts of a cluster's mapping, as written in the file."""

    @property
    def sections(self) -> tuple[str, ...]:
        """All sections of the stack file that have an effect with it alone."""
        return (self.name, *self.further_sections)

    def make(self) -> Runtime:
        """The runtime itself."""
        made: Runtime = extras.imported(self.implementation, self.name)()
        return made

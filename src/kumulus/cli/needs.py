"""Which tools a stack needs, by the sections of its file."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from kumulus.cli import backend, project, stack_file
from kumulus.cli.errors import UserError
from kumulus.host import extras
from kumulus.model.errors import Problem, SpecError
from kumulus.runtimes import registry
from kumulus.toolchain import kubernetes_versions, pins
from kumulus.toolchain.plugins import COMMAND, PROVIDER

if TYPE_CHECKING:
    from kumulus.stackfile.load import LoadedCluster

ENGINE = ("pulumi", "pulumi-language-python", "pulumi-language-python-exec")


@dataclass(frozen=True)
class Need:
    """The tools that a part of a stack file needs."""

    part: str
    """Its name in the file and in `kumulus tools --list`."""
    tools: tuple[str, ...]
    """Names of tools, or of sets of them."""
    asked: Callable[[LoadedCluster], bool]
    """Whether a stack has that part."""


@dataclass(frozen=True)
class Needs:
    """The tools that one or several clusters need."""

    tools: tuple[str, ...]
    kubernetes: str | None = None
    """The version to use where none is named; None is the default one."""
    further: tuple[str, ...] = ()
    """The versions of the other control planes."""

    @property
    def versions(self) -> tuple[str | None, ...]:
        """The versions of all control planes; None is the default one."""
        return (self.kubernetes, *self.further)


def _of_runtime(name: str) -> Callable[[LoadedCluster], bool]:
    return lambda loaded: loaded.spec.runtime == name


def _with_part(part: str) -> Callable[[LoadedCluster], bool]:
    def asked(loaded: LoadedCluster) -> bool:
        # What joins several clusters, such as Kueue, is a tool only where the control plane runs here; elsewhere it is
        # a chart, or installed already.
        joined = loaded.joined if loaded.spec.runtime_descriptor.local else ()
        return part in joined or any(part in each.parts(loaded) for each in loaded.spec.sections_of_extras().values())

    return asked


NEEDS: tuple[Need, ...] = (
    Need("every stack", ENGINE, lambda _: True),
    *(Need(f"runtime: {each.name}", each.tools, _of_runtime(each.name)) for each in registry.every()),
    Need("clusterAddons", ("helm", PROVIDER), lambda loaded: bool(loaded.spec.clusterAddons)),
    *(Need(part, tools, _with_part(part)) for each in extras.every() for part, tools in each.tools.items()),
    Need("podUsage", ("metrics-server",), lambda loaded: bool(loaded.spec.podUsage)),
    # The user's commands usually begin with kubectl.
    Need("hostCommands", (COMMAND, "kubectl"), lambda loaded: bool(loaded.spec.hostCommands)),
    Need("loadImages", (COMMAND,), lambda loaded: bool(loaded.spec.loadImages)),
)
# Who needs a tool apart from stacks.
_OTHERS = {"kubectl": ["you"]}


def of_loaded(loaded: LoadedCluster) -> Needs:
    """What a cluster needs; a version of Kubernetes without a control plane here is an error."""
    names = [name for need in NEEDS if need.asked(loaded) for name in need.tools]
    versions = [f"v{each}" for each in kubernetes_versions()]
    version = loaded.spec.kubernetesVersion if loaded.spec.runtime_descriptor.local else None
    if version not in (None, *versions):
        wrong = f"is {version}, which has no control plane here"
        problem = Problem("kubernetesVersion", wrong, f"write one of {', '.join(versions)}")
        raise UserError(str(SpecError([problem], loaded.source)))
    return Needs(_ordered(names), None if version in (None, versions[0]) else version)


def of_all(clusters: Iterable[LoadedCluster]) -> Needs:
    """What several clusters need together."""
    every = [of_loaded(each) for each in clusters]
    # Sorted as texts, so that the order is always the same. The default version, None, comes first.
    first, *further = sorted({each.kubernetes for each in every}, key=lambda version: version or "")
    tools = _ordered([name for each in every for name in each.tools])
    return Needs(tools, first, tuple(version for version in further if version))


def of_stack(stack: str) -> Needs:
    """What a stack needs, by its file.

    If the stack has a program of the user's own, that is everything, but for the Kubernetes provider unless its file
    also declares clusters.
    """
    described = stack_file.described(stack)
    if described is not None:
        return of_all(described.clusters.values())
    found = everything()
    if stack_file.read(stack).declares:
        return found
    # Most programs of the user's own do not need the Kubernetes provider, which takes long to build: the components
    # that do need it say so.
    return Needs(tuple(tool for tool in found.tools if tool != PROVIDER))


def to_remove(stack: str) -> Needs:
    """What is needed to destroy a stack, even if its file is gone or has mistakes: its state has its runtimes."""
    try:
        return of_stack(stack)
    except UserError:
        current = project.current()
        directory = current.backend_directory()
        recorded = backend.clusters(directory, current.name, stack) if directory else []
        runtimes = {each.get("runtime") for each in recorded}
        of_runtimes = [name for each in registry.every() if each.name in runtimes for name in each.tools]
        return Needs(_ordered([*everything().tools, *of_runtimes]))


def everything() -> Needs:
    """All tools but the optional ones, such as kind, for a stack whose file does not say what it needs."""
    return Needs(tuple(tool.name for tool in pins.load().shared))


def needed_by(tool: str) -> Sequence[str]:
    """What needs a tool, as text for people; if nothing does, the options that ask for it."""
    known = pins.load()
    found = list(_OTHERS.get(tool, []))
    for need in NEEDS:
        if any(tool == each.name for name in need.tools for each in known.named(name)):
            found.append(need.part)
    return found or [f"--with {name}" for name, tools in known.sets.items() if tool in tools]


def _ordered(names: Sequence[str]) -> tuple[str, ...]:
    known = pins.load()
    wanted = {tool.name for name in names for tool in known.named(name)}
    return tuple(tool.name for tool in known.tools if tool.name in wanted)

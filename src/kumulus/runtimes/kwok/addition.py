"""What may run alongside a control plane of the runtime kwok: an extra's processes, and what they need in it."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from kumulus.host import extras
from kumulus.host.ports import Claims
from kumulus.model.errors import Problem
from kumulus.nodes.reporter import Reporter

if TYPE_CHECKING:
    from kumulus.kube import Client
    from kumulus.runtimes.kwok.layout import Layout

Options = Mapping[str, Any]
"""A cluster's options, as the stack has them."""


class Addition:
    """An addition to a control plane; an extra overrides what concerns it. All of it is changed in place.

    Methods that use the network raise ApiError and Unreachable, and ProviderError where somebody else has made an
    object of theirs; those that write files raise OSError.

    Attributes:
        names: its processes, as the control plane's components are called.
        measures: whether it reads what nodes and pods use.
    """

    names: frozenset[str] = frozenset()
    measures: bool = False

    def asked(self, options: Options) -> bool:
        """Whether the stack asks for it."""
        raise NotImplementedError

    def problems(self, options: Options) -> list[Problem]:
        """What is wrong with its options, if programs may write them."""
        return []

    def fingerprints(self, options: Options) -> dict[str, str]:
        """For each of its processes, a hash of everything that decides how it runs, except its place."""
        raise NotImplementedError

    def objects(self, options: Options) -> Any:
        """What else of the options is changed in the cluster, without a restart; comparable as JSON."""
        return None

    def stages(self, options: Options) -> list[dict[str, Any]]:
        """Stages of KWOK for its nodes or pods."""
        return []

    def announced(self, options: Options) -> list[str]:
        """What the preview of a new cluster says of it, for people."""
        return []

    def described(self, old: Options, new: Options) -> list[str]:
        """What a change of the options means for it, for people."""
        return []

    def endpoints(self, layout: Layout) -> dict[str, str]:
        """Where it answers users, by name."""
        return {}

    def port_problem(self, layout: Layout, options: Options) -> str | None:
        """Why a port that the stack asks for cannot be had."""
        return None

    def options_of(self, components: Collection[str]) -> dict[str, Any]:
        """The options that a start needs, where nothing is known of a cluster but the names of its components."""
        return {}

    def configured(self, settings: dict[str, Any], layout: Layout, options: Options, claims: Claims) -> dict[str, Any]:
        """Kwokctl's configuration with its processes, or without them if it is not asked for.

        Raises NoFreePort; the claims are for the ports that it takes.
        """
        raise NotImplementedError

    def write(self, layout: Layout, options: Options) -> None:
        """Write its files, or remove those that are there if it is not asked for."""

    def require_space(self, layout: Layout, dead: Sequence[str]) -> None:
        """Raise ProviderError if one of the processes that are to be started would have too little disk space."""

    def has_kinds(self, options: Options) -> bool:
        """Whether there are kinds without which its processes would not start."""
        return False

    async def define(self, client: Client, layout: Layout, options: Options) -> None:
        """Make the kinds of :meth:`has_kinds`."""

    async def apply(self, client: Client, layout: Layout, options: Options) -> None:
        """Apply its objects, or delete them if it is not asked for; its processes run."""

    def starts_after_api_server(self, options: Options) -> str | None:
        """The process that has to be started once the API server answers: started before, it would wait for ever."""
        return None

    def resumes(self, options: Options) -> str | None:
        """The process that must be down while :meth:`resume` is called, before it is started again."""
        return None

    async def resume(self, client: Client, options: Options, report: Reporter) -> None:
        """Put right what the end of the process of :meth:`resumes` has left."""

    async def answering(self, layout: Layout, started: Sequence[str], report: Reporter) -> None:
        """Wait until those of its processes that were started answer."""


def every() -> list[Addition]:
    """The additions of all extras."""
    return extras.brought("additions")


def asked(options: Options) -> list[Addition]:
    """The additions that the stack asks for."""
    return [each for each in every() if each.asked(options)]

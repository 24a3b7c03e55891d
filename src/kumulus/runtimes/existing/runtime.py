"""The existing runtime: checks a cluster, and refuses it if it is wrong; makes and removes nothing of it."""

import asyncio
from pathlib import Path
from typing import Any, ClassVar

from kumulus.kube import ApiError, KubeconfigError, Unreachable
from kumulus.nodes.errors import ProviderError
from kumulus.nodes.reporter import Reporter
from kumulus.runtimes import directories
from kumulus.runtimes.base import Foreseen, Observed, RecordedControlPlane, Runtime, WantedControlPlane
from kumulus.runtimes.existing import NEEDS, permissions, source
from kumulus.runtimes.existing.source import ContextSource, CopyPlace
from kumulus.runtimes.place import Place, same_owner

_OPTIONS = ("kubeconfig", "context", "needs")
_API_SERVER = "kube-apiserver"


class ExistingRuntime(Runtime):
    """A cluster by kubeconfig and context; the stack has its own copy of both (see :mod:`.source`).

    Options: ``kubeconfig`` (a path or a content), ``context``, and ``needs``: what the stack does there, some of
    :data:`kumulus.runtimes.existing.NEEDS`, whose permissions are checked.
    """

    name: ClassVar[str] = "existing"
    replaced_by: ClassVar[frozenset[str]] = frozenset()
    place_type: ClassVar[type[Place]] = CopyPlace
    on_one_machine: ClassVar[bool] = False

    def problems(self, options: dict[str, Any]) -> dict[str, str]:
        found = {key: f"unknown option; it takes: {', '.join(_OPTIONS)}" for key in options if key not in _OPTIONS}
        wanted = options.get("needs", [])
        if not isinstance(wanted, list) or not set(wanted) <= set(NEEDS):
            found["needs"] = f"is not a list of: {', '.join(NEEDS)}"
        return found | source.problems(options)

    def version_problem(self, version: str) -> str | None:
        return "an existing cluster has its own Kubernetes version; leave this out"

    async def examine(self, wanted: WantedControlPlane, identity: str | None, report: Reporter) -> Foreseen | None:
        """See :meth:`Runtime.examine`: another cluster behind the context, and missing permissions, are refused."""
        context = _source(wanted)
        actual = await self._look(context, wanted.options, identity)
        if identity is None:
            directories.require_free(CopyPlace.of(wanted.home, wanted.name), wanted.owner, preview=True)
            report.info(f"uses the cluster of {context}, at {context.server}")
            return Foreseen(actual, context.server, context.connection())
        # It is the same cluster, so later steps get its current credentials and address.
        _write(CopyPlace.of(wanted.home, wanted.name), context, wanted.owner)
        return None

    async def create(self, wanted: WantedControlPlane, report: Reporter, stop: asyncio.Event) -> Observed:
        place, context = CopyPlace.of(wanted.home, wanted.name), _source(wanted)
        directories.require_free(place, wanted.owner)
        identity = await self._look(context, wanted.options, None)
        _write(place, context, wanted.owner)
        return _observed(place, context, identity)

    async def read(self, recorded: RecordedControlPlane, report: Reporter) -> Observed | None:
        """See :meth:`Runtime.read`; this also writes the copy, which a new machine does not have yet."""
        context, place = _source(recorded), CopyPlace(Path(recorded.directory))
        identity = await self._look(context, {}, recorded.identity)
        _write(place, context, recorded.owner)
        return _observed(place, context, identity)

    async def repair(self, wanted: WantedControlPlane, identity: str, report: Reporter) -> Observed:
        """See :meth:`Runtime.repair`: the kubeconfig or context has changed, and leads to the same cluster."""
        place, context = CopyPlace.of(wanted.home, wanted.name), _source(wanted)
        actual = await self._look(context, wanted.options, identity)
        _write(place, context, wanted.owner, place.note().get("owner"))
        return _observed(place, context, actual)

    async def delete(self, recorded: RecordedControlPlane, report: Reporter) -> None:
        """See :meth:`Runtime.delete`: the copy of the kubeconfig, and nothing else."""
        place = CopyPlace(Path(recorded.directory))
        owner = place.note().get("owner", recorded.owner)
        if not same_owner(owner, recorded.owner):
            report.warn(directories.not_ours(place, owner))
            return
        directories.clear_up(place, directories.remove(place), report)

    async def _look(self, context: ContextSource, options: dict[str, Any], identity: str | None) -> str:
        """The identity of the cluster, once it is certain that the stack may and can use it."""
        from kumulus.kube import objects

        try:
            async with context.client() as client:
                actual = await objects.identity(client)
                if identity and actual != identity:
                    raise source.another_cluster(context, identity, actual)
                if lacking := await permissions.missing(client, options.get("needs") or []):
                    raise source.not_allowed(context, permissions.described(lacking))
        except KubeconfigError as error:
            raise ProviderError(str(error)) from None
        except (ApiError, Unreachable) as error:
            raise source.not_asked(context, error) from None
        return actual


def _source(wanted: WantedControlPlane | RecordedControlPlane) -> ContextSource:
    try:
        return ContextSource.of(wanted.options)
    except KubeconfigError as error:
        raise ProviderError(str(error)) from None


def _write(place: CopyPlace, context: ContextSource, owner: str, before: str | None = None) -> None:
    """Write the copy; `before` is its owner so far, if the stack has been given another identity since."""
    # An unreadable note is rewritten if there are no foreign files: the state says whose the place is.
    if not place.damaged() or place.foreign():
        directories.require_free(place, before or owner)
    try:
        source.write(place, context, owner)
    except OSError as error:
        raise ProviderError(directories.os_error(error, place)) from None


def _observed(place: CopyPlace, context: ContextSource, identity: str) -> Observed:
    return Observed(
        identity=identity,
        kubeconfig=str(place.kubeconfig),
        server=context.server,
        directory=str(place.directory),
        components={_API_SERVER: "running"},
    )

"""The kind runtime: create, read, repair and delete a kind cluster."""

import asyncio
import tempfile
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, ClassVar

from kumulus.host import processes
from kumulus.kube import ApiError, KubeconfigError, Unreachable, load_kubeconfig
from kumulus.nodes.errors import ProviderError
from kumulus.nodes.reporter import Reporter
from kumulus.runtimes import apiserver, directories
from kumulus.runtimes.base import MISSING, Foreseen, Observed, RecordedControlPlane, Runtime, WantedControlPlane
from kumulus.runtimes.directories import exclusive
from kumulus.runtimes.kind import creating, failures
from kumulus.runtimes.kind.containers import ContainerEngine, NodeContainer, components
from kumulus.runtimes.kind.place import KindPlace, forget_claim, making_alone
from kumulus.runtimes.place import Place, same

_API = "kube-apiserver"
_LOST = "lost"
# Seconds, as all times here.
_SETTLED = 0.5
# A stopped node has everything to start; one that was restarted because it did not answer will hardly ever answer.
_STARTING, _ANSWERING, _RESTARTED, _LOOKING = 45.0, 6.0, 30.0, 4.0


class KindRuntime(Runtime):
    """Containers by kind: add-ons run for real on its nodes."""

    name: ClassVar[str] = "kind"
    replaced_by: ClassVar[frozenset[str]] = frozenset({"kindConfig", "nodeImage", "provider"})
    files: ClassVar[type[Place]] = KindPlace

    def problems(self, options: dict[str, Any]) -> dict[str, str]:
        if not options:
            return {}
        # Imported here: most clusters have no options, and their previews need no pydantic.
        from kumulus.runtimes.kind.section import KindOptions
        from kumulus.runtimes.section import option_problems

        return option_problems(KindOptions, options)

    async def examine(self, wanted: WantedControlPlane, identity: str | None, report: Reporter) -> Foreseen | None:
        """See :meth:`Runtime.examine`: a new cluster's place has to be free."""
        if identity is None:
            directories.require_free(KindPlace.of(wanted.home, wanted.name), wanted.owner, preview=True)
        return None

    async def create(self, wanted: WantedControlPlane, report: Reporter, stop: asyncio.Event) -> Observed:
        place = KindPlace.of(wanted.home, wanted.name)
        engine = ContainerEngine.chosen(wanted.options)
        directories.require_free(place, wanted.owner)
        creating.executable()
        await engine.require()
        directories.prepare_home(place)
        async with exclusive(place, report), making_alone(place.name, report):
            found = await self._cleared(place, wanted, engine, report)
            try:
                if found:
                    return await self._adopt(place, wanted, engine, found, report)
                return await self._make(place, wanted, engine, report, stop)
            except OSError as error:
                raise ProviderError(directories.os_error(error, place)) from None

    async def _make(
        self,
        place: KindPlace,
        wanted: WantedControlPlane,
        engine: ContainerEngine,
        report: Reporter,
        stop: asyncio.Event,
    ) -> Observed:
        started = time.monotonic()
        try:
            place.begin(wanted.owner, engine, creating.configuration(wanted.options))
            await creating.make(place, wanted, engine, report, stop)
            identity = await creating.ready(place, wanted.options, report, stop)
            nodes = await engine.nodes(place.name)
            place.complete(wanted.owner, engine, nodes)
        except creating.NothingMade:
            # Somebody else may have made containers of that name since we looked.
            directories.remove(place)
            raise
        except BaseException as error:
            self._undo(place, engine, error)
            raise
        report.status(f"cluster of {len(nodes)} nodes ready after {time.monotonic() - started:.1f} s", last=True)
        return self._observed(place, nodes, identity, "running")

    async def _cleared(
        self, place: KindPlace, wanted: WantedControlPlane, engine: ContainerEngine, report: Reporter
    ) -> list[NodeContainer]:
        """Remove what a killed run of ours left, and return the containers to adopt; refuse all others."""
        directories.require_free(place, wanted.owner)
        owner = place.note().get("owner", "")
        self._end_kind(place)
        nodes = await engine.nodes(place.name)
        if same(owner, wanted.owner) and place.owns(nodes):
            report.status("removing what an interrupted run left behind")
            self._remove(place, engine, nodes)
            return []
        directories.remove(place)
        if nodes and not wanted.options.get("adopt"):
            raise ProviderError(failures.taken(place.name, [node.name for node in nodes]))
        return nodes

    async def _adopt(
        self,
        place: KindPlace,
        wanted: WantedControlPlane,
        engine: ContainerEngine,
        nodes: Sequence[NodeContainer],
        report: Reporter,
    ) -> Observed:
        """Take over an existing cluster; it is ours only once its note has been written."""
        await engine.start(nodes)
        try:
            place.directory.mkdir(mode=0o700)
            await creating.kubeconfig(engine, place, place.kubeconfig)
            identity = await _identity(place, _STARTING)
            nodes = await engine.nodes(place.name)
            place.complete(wanted.owner, engine, nodes)
        except BaseException:
            directories.remove(place)
            raise
        report.info(f"kind cluster {place.name} is taken over; it is the stack's from now on, and destroy deletes it")
        return self._observed(place, nodes, identity, "running")

    async def read(self, recorded: RecordedControlPlane, report: Reporter) -> Observed | None:
        place = KindPlace(Path(recorded.directory))
        engine = place.engine(recorded.options)
        nodes = await engine.nodes(place.name)
        if not nodes or not same(place.note().get("owner", recorded.owner), recorded.owner):
            return None
        if not place.containers():
            return await self._found_again(place, engine, nodes, recorded, report)
        if not place.owns(nodes):
            report.warn(
                f"another kind cluster named {place.name} stands in the place of this stack's; it is left alone"
            )
            return None
        if not place.kubeconfig.exists():
            return self._observed(place, nodes, recorded.identity, _LOST)
        try:
            actual = await apiserver.identity(place.kubeconfig, patience=_LOOKING)
        except (ApiError, Unreachable, KubeconfigError):
            return self._observed(place, nodes, recorded.identity, "unhealthy")
        return self._observed(place, nodes, actual, "running") if recorded.identity in ("", actual) else None

    async def _found_again(
        self,
        place: KindPlace,
        engine: ContainerEngine,
        nodes: Sequence[NodeContainer],
        recorded: RecordedControlPlane,
        report: Reporter,
    ) -> Observed | None:
        """A cluster whose files are gone; it is ours if it has the identity that is in the state."""
        found = await _identity_by_kind(place, engine)
        if found is not None and recorded.identity in ("", found):
            return self._observed(place, nodes, found, _LOST)
        report.warn(
            f"the files of cluster {place.name} are gone from {place.directory}, and the kind cluster of that name "
            "does not answer as this stack's; it is left alone"
        )
        return None

    async def repair(self, wanted: WantedControlPlane, identity: str, report: Reporter) -> Observed:
        place = KindPlace.of(wanted.home, wanted.name)
        engine = place.engine(wanted.options)
        await engine.require()
        directories.prepare_home(place)
        try:
            async with exclusive(place, report):
                return await self._repair(place, wanted, engine, identity, report)
        except OSError as error:
            raise ProviderError(directories.os_error(error, place, made=True)) from None

    async def _repair(
        self, place: KindPlace, wanted: WantedControlPlane, engine: ContainerEngine, identity: str, report: Reporter
    ) -> Observed:
        nodes = await engine.nodes(place.name)
        if not place.containers() and nodes and await _identity_by_kind(place, engine) == identity:
            self._restore(place, wanted, engine, nodes)
        missing = MISSING in components(nodes, place.containers()).values()
        if missing or not place.containers() or not place.owns(nodes):
            raise ProviderError(
                f"kind cluster {place.name}, or a part of it, is gone; `pulumi up --refresh` makes it again"
            )
        if not place.kubeconfig.exists():
            await creating.kubeconfig(engine, place, place.kubeconfig)
        await self._start(place, engine, nodes, report)
        actual = await _identity(place, _ANSWERING)
        if identity and actual != identity:
            raise ProviderError(f"another cluster (identity {actual}) answers in place of {place.name}")
        if place.note().get("owner") != wanted.owner:
            # Since then, the stack has been given its identity, or another name.
            place.write_note({**place.note(), "owner": wanted.owner})
        return self._observed(place, await engine.nodes(place.name), actual, "running")

    def _restore(
        self, place: KindPlace, wanted: WantedControlPlane, engine: ContainerEngine, nodes: Sequence[NodeContainer]
    ) -> None:
        directories.remove(place)
        place.begin(wanted.owner, engine, creating.configuration(wanted.options))
        place.complete(wanted.owner, engine, nodes)

    async def _start(
        self, place: KindPlace, engine: ContainerEngine, nodes: Sequence[NodeContainer], report: Reporter
    ) -> None:
        """Start the nodes that do not run; a control plane that runs but does not answer is restarted."""
        down = [node for node in nodes if node.health != "running"]
        if down:
            report.status(f"starting {', '.join(node.name for node in down)}")
            await engine.start(down)
            await _identity(place, _STARTING)
            return
        try:
            await _identity(place, _ANSWERING)
        except ProviderError:
            planes = [node for node in nodes if node.role != "worker"]
            report.status(f"restarting {', '.join(node.name for node in planes)}")
            await engine.restart(planes)
            await _identity(place, _RESTARTED)

    def removed(self, directory: str) -> bool:
        return KindPlace(Path(directory)).removed()

    async def delete(self, recorded: RecordedControlPlane, report: Reporter) -> None:
        place = KindPlace(Path(recorded.directory))
        engine = place.engine(recorded.options)
        nodes = await self._recorded_nodes(place, engine, recorded, report)
        if nodes is None or (not nodes and not place.directory.exists()):
            return
        directories.require_own(place)
        async with exclusive(place, report) as waited:
            # The run that was waited for may have removed the cluster, and another stack may have made one there since.
            nodes = await self._recorded_nodes(place, engine, recorded, report) if waited else nodes
            if nodes is None:
                return
            left = self._remove(place, engine, nodes)
        if left:
            report.warn(directories.left_alone(place, left))
        directories.remove_empty(place)

    async def _recorded_nodes(
        self, place: KindPlace, engine: ContainerEngine, recorded: RecordedControlPlane, report: Reporter
    ) -> list[NodeContainer] | None:
        """The containers of the recorded cluster that are there; None where its place is another owner's."""
        owner = place.note().get("owner", recorded.owner)
        if not same(owner, recorded.owner):
            report.warn(directories.not_ours(place, owner))
            return None
        try:
            nodes = await engine.nodes(place.name)
        except ProviderError as error:
            raise ProviderError(
                f"{error}\n  If its containers are gone for good, `pulumi state delete` forgets the cluster"
            ) from None
        if nodes and not await self._is_recorded(place, engine, nodes, recorded):
            report.warn(f"the kind cluster named {place.name} is not the one this stack made; it is left alone")
            return []
        return nodes

    async def _is_recorded(
        self, place: KindPlace, engine: ContainerEngine, nodes: Sequence[NodeContainer], recorded: RecordedControlPlane
    ) -> bool:
        if place.note():
            return place.owns(nodes)
        return await _identity_by_kind(place, engine) == recorded.identity

    def _remove(self, place: KindPlace, engine: ContainerEngine, nodes: Sequence[NodeContainer]) -> list[str]:
        """Remove a cluster's containers and files; returns the names of foreign files, which are left."""
        place.mark_removed()
        self._end_kind(place)
        if nodes:
            creating.discard(engine, place)
        forget_claim(place.directory)
        return directories.remove(place)

    def _undo(self, place: KindPlace, engine: ContainerEngine, error: BaseException) -> None:
        """Undo a creation that was cancelled or has failed: the state does not record it, so nothing may be left."""
        try:
            creating.discard(engine, place)
            # A container that kind was making when it was ended may have appeared since.
            time.sleep(_SETTLED)
            creating.discard(engine, place)
        except ProviderError as left:
            raise ProviderError(f"{error}\n  What there is of it stays until the next `pulumi up`: {left}") from None
        forget_claim(place.directory)
        directories.remove(place)

    def _end_kind(self, place: KindPlace) -> None:
        """End a kind process for this cluster that has outlived the plugin that started it."""
        processes.end(processes.naming("kind", str(place.kubeconfig)))

    def _observed(self, place: KindPlace, nodes: Sequence[NodeContainer], identity: str, api: str) -> Observed:
        states = components(nodes, place.containers())
        if "running" in states.values() or api == _LOST:
            states[_API if api != _LOST else "kubeconfig"] = api
        server = ""
        with suppress(KubeconfigError):
            server = load_kubeconfig(place.kubeconfig).server
        return Observed(identity, str(place.kubeconfig), server, str(place.directory), states)


async def _identity(place: KindPlace, patience: float) -> str:
    """The identity of the cluster, once it answers."""
    try:
        return await apiserver.identity(place.kubeconfig, patience)
    except (ApiError, Unreachable, KubeconfigError) as error:
        raise ProviderError(
            f"the API server of kind cluster {place.name} does not answer within {patience:.0f} s: {error}; "
            f"`docker logs {place.name}-control-plane` says more, and `pulumi destroy` removes the cluster"
        ) from None


async def _identity_by_kind(place: KindPlace, engine: ContainerEngine) -> str | None:
    """The identity of the cluster of that name, no matter who created it, read with kind's own kubeconfig for it."""
    with tempfile.TemporaryDirectory(prefix="kumulus-") as folder:
        file = Path(folder) / "kubeconfig.yaml"
        try:
            await creating.kubeconfig(engine, place, file)
            return await apiserver.identity(file, patience=_LOOKING)
        except (ProviderError, ApiError, Unreachable, KubeconfigError):
            return None

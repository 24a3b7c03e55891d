"""The kind runtime: create, read, repair and delete a kind cluster."""

import asyncio
import tempfile
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Self

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
from kumulus.runtimes.place import Place, same_owner

_API_SERVER = "kube-apiserver"
# How long an API server may take to answer: after a stopped node has started; while it should be running; after it was
# restarted because it did not answer, when it hardly ever will; and when it is only looked at.
_STARTED_S = 45.0
_RUNNING_S = 6.0
_RESTARTED_S = 30.0
_LOOK_S = 4.0
# A container that kind was making when it was ended appears within this time.
_APPEARS_S = 0.5


class KindRuntime(Runtime):
    """Containers by kind: add-ons run for real on its nodes."""

    name: ClassVar[str] = "kind"
    replaced_by: ClassVar[frozenset[str]] = frozenset({"kindConfig", "nodeImage", "provider"})
    place_type: ClassVar[type[Place]] = KindPlace

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
        cluster = _Cluster(place, ContainerEngine.chosen(wanted.options), report)
        directories.require_free(place, wanted.owner)
        creating.executable()
        await cluster.engine.require()
        directories.prepare_home(place)
        async with exclusive(place, report), making_alone(place.name, report):
            found = await cluster.clear(wanted)
            try:
                if found:
                    return await cluster.adopt(wanted, found)
                return await cluster.make(wanted, stop)
            except OSError as error:
                raise ProviderError(directories.os_error(error, place)) from None

    async def read(self, recorded: RecordedControlPlane, report: Reporter) -> Observed | None:
        cluster = _Cluster.at(KindPlace(Path(recorded.directory)), recorded.options, report)
        place = cluster.place
        nodes = await cluster.nodes()
        if not nodes or not same_owner(place.note().get("owner", recorded.owner), recorded.owner):
            return None
        if not place.containers():
            # The files are gone; the cluster is ours if it has the identity that is in the state.
            found = await cluster.identity_by_kind()
            if found is not None and recorded.identity in ("", found):
                return cluster.observed(nodes, found, kubeconfig_lost=True)
            report.warn(
                f"the files of cluster {place.name} are gone from {place.directory}, and the kind cluster of that name "
                "does not answer as this stack's; it is left alone"
            )
            return None
        if not place.owns(nodes):
            report.warn(
                f"another kind cluster named {place.name} stands in the place of this stack's; it is left alone"
            )
            return None
        if not place.kubeconfig.exists():
            return cluster.observed(nodes, recorded.identity, kubeconfig_lost=True)
        try:
            actual = await apiserver.identity(place.kubeconfig, patience=_LOOK_S)
        except (ApiError, Unreachable, KubeconfigError):
            return cluster.observed(nodes, recorded.identity, api_server="unhealthy")
        return cluster.observed(nodes, actual) if recorded.identity in ("", actual) else None

    async def repair(self, wanted: WantedControlPlane, identity: str, report: Reporter) -> Observed:
        place = KindPlace.of(wanted.home, wanted.name)
        cluster = _Cluster.at(place, wanted.options, report)
        await cluster.engine.require()
        directories.prepare_home(place)
        try:
            async with exclusive(place, report):
                return await cluster.repair(wanted, identity)
        except OSError as error:
            raise ProviderError(directories.os_error(error, place, made=True)) from None

    async def delete(self, recorded: RecordedControlPlane, report: Reporter) -> None:
        cluster = _Cluster.at(KindPlace(Path(recorded.directory)), recorded.options, report)
        place = cluster.place
        nodes = await cluster.nodes_of(recorded)
        if nodes is None or (not nodes and not place.directory.exists()):
            return
        directories.require_own(place)
        async with exclusive(place, report) as waited:
            # The run that was waited for may have removed the cluster, and another stack may have made one there since.
            nodes = await cluster.nodes_of(recorded) if waited else nodes
            if nodes is None:
                return
            left = cluster.remove(nodes)
            forget_claim(place.directory)
        directories.clear_up(place, left, report)


@dataclass(frozen=True)
class _Cluster:
    """A cluster's files, and the containers that have its name, no matter who made them."""

    place: KindPlace
    engine: ContainerEngine
    report: Reporter

    @classmethod
    def at(cls, place: KindPlace, options: dict[str, Any], report: Reporter) -> Self:
        """The cluster that was made there, with its engine."""
        return cls(place, place.engine(options), report)

    async def nodes(self) -> list[NodeContainer]:
        return await self.engine.nodes(self.place.name)

    async def make(self, wanted: WantedControlPlane, stop: asyncio.Event) -> Observed:
        started = time.monotonic()
        try:
            self.place.begin(wanted.owner, self.engine, creating.configuration(wanted.options))
            await creating.make(self.place, wanted, self.engine, self.report, stop)
            identity = await creating.ready(self.place, wanted.options, self.report, stop)
            nodes = await self.nodes()
            self.place.complete(wanted.owner, self.engine, nodes)
        except creating.NothingMade:
            # Somebody else may have made containers of that name since we looked.
            directories.remove(self.place)
            raise
        except BaseException as error:
            self._undo(error)
            raise
        self.report.status(f"cluster of {len(nodes)} nodes ready after {time.monotonic() - started:.1f} s", last=True)
        return self.observed(nodes, identity)

    async def clear(self, wanted: WantedControlPlane) -> list[NodeContainer]:
        """Remove what a killed run of ours left, and return the containers to adopt; refuse all others."""
        directories.require_free(self.place, wanted.owner)
        owner = self.place.note().get("owner", "")
        self._end_kind()
        nodes = await self.nodes()
        if same_owner(owner, wanted.owner) and self.place.owns(nodes):
            self.report.status("removing what an interrupted run left behind")
            # The claim stays: this run holds its lock.
            self.remove(nodes)
            return []
        directories.remove(self.place)
        if nodes and not wanted.options.get("adopt"):
            raise ProviderError(failures.taken(self.place.name, [node.name for node in nodes]))
        return nodes

    async def adopt(self, wanted: WantedControlPlane, nodes: Sequence[NodeContainer]) -> Observed:
        """Take over an existing cluster; it is ours only once its note has been written."""
        place = self.place
        await self.engine.start(nodes)
        try:
            place.directory.mkdir(mode=0o700)
            await creating.kubeconfig(self.engine, place, place.kubeconfig)
            identity = await self._identity(_STARTED_S)
            nodes = await self.nodes()
            place.complete(wanted.owner, self.engine, nodes)
        except BaseException:
            directories.remove(place)
            raise
        self.report.info(
            f"kind cluster {place.name} is taken over; it is the stack's from now on, and destroy deletes it"
        )
        return self.observed(nodes, identity)

    async def repair(self, wanted: WantedControlPlane, identity: str) -> Observed:
        """Start what does not run, and write again what is lost of the files; a node that is gone is refused."""
        place = self.place
        nodes = await self.nodes()
        if not place.containers() and nodes and await self.identity_by_kind() == identity:
            # The cluster is the recorded one, and its files are gone or damaged.
            directories.remove(place)
            place.begin(wanted.owner, self.engine, creating.configuration(wanted.options))
            place.complete(wanted.owner, self.engine, nodes)
        missing = MISSING in components(nodes, place.containers()).values()
        if missing or not place.containers() or not place.owns(nodes):
            raise ProviderError(
                f"kind cluster {place.name}, or a part of it, is gone; `pulumi up --refresh` makes it again"
            )
        if not place.kubeconfig.exists():
            await creating.kubeconfig(self.engine, place, place.kubeconfig)
        await self._start(nodes)
        actual = await self._identity(_RUNNING_S)
        if identity and actual != identity:
            raise ProviderError(f"another cluster (identity {actual}) answers in place of {place.name}")
        if place.note().get("owner") != wanted.owner:
            # The stack has got its identity, or another name, since the note was written.
            place.write_note({**place.note(), "owner": wanted.owner})
        return self.observed(await self.nodes(), actual)

    async def _start(self, nodes: Sequence[NodeContainer]) -> None:
        """Start the nodes that do not run; a control plane that runs but does not answer is restarted."""
        if down := [node for node in nodes if node.health != "running"]:
            self.report.status(f"starting {', '.join(node.name for node in down)}")
            await self.engine.start(down)
            await self._identity(_STARTED_S)
            return
        try:
            await self._identity(_RUNNING_S)
        except ProviderError:
            planes = [node for node in nodes if node.role != "worker"]
            self.report.status(f"restarting {', '.join(node.name for node in planes)}")
            await self.engine.restart(planes)
            await self._identity(_RESTARTED_S)

    async def nodes_of(self, recorded: RecordedControlPlane) -> list[NodeContainer] | None:
        """The containers of the recorded cluster that are there; None where its place is another owner's."""
        place = self.place
        owner = place.note().get("owner", recorded.owner)
        if not same_owner(owner, recorded.owner):
            self.report.warn(directories.not_ours(place, owner))
            return None
        try:
            nodes = await self.nodes()
        except ProviderError as error:
            raise ProviderError(
                f"{error}\n  If its containers are gone for good, `pulumi state delete` forgets the cluster"
            ) from None
        if not nodes:
            return []
        ours = place.owns(nodes) if place.note() else await self.identity_by_kind() == recorded.identity
        if not ours:
            self.report.warn(f"the kind cluster named {place.name} is not the one this stack made; it is left alone")
        return nodes if ours else []

    def remove(self, nodes: Sequence[NodeContainer]) -> list[str]:
        """Remove a cluster's containers and files; returns the names of foreign files, which are left."""
        self.place.mark_removed()
        self._end_kind()
        if nodes:
            creating.discard(self.engine, self.place)
        return directories.remove(self.place)

    def _undo(self, error: BaseException) -> None:
        """Undo a creation that was cancelled or has failed: the state does not record it, so nothing may be left."""
        try:
            creating.discard(self.engine, self.place)
            time.sleep(_APPEARS_S)
            creating.discard(self.engine, self.place)
        except ProviderError as left:
            raise ProviderError(f"{error}\n  What there is of it stays until the next `pulumi up`: {left}") from None
        forget_claim(self.place.directory)
        directories.remove(self.place)

    def _end_kind(self) -> None:
        """End a kind process for this cluster that has outlived the plugin that started it."""
        processes.end(processes.naming("kind", str(self.place.kubeconfig)))

    def observed(
        self,
        nodes: Sequence[NodeContainer],
        identity: str,
        *,
        api_server: str = "running",
        kubeconfig_lost: bool = False,
    ) -> Observed:
        place = self.place
        states = components(nodes, place.containers())
        if kubeconfig_lost:
            states["kubeconfig"] = "lost"
        elif "running" in states.values():
            states[_API_SERVER] = api_server
        server = ""
        with suppress(KubeconfigError):
            server = load_kubeconfig(place.kubeconfig).server
        return Observed(identity, str(place.kubeconfig), server, str(place.directory), states)

    async def _identity(self, patience: float) -> str:
        """The identity of the cluster, once it answers, within so many seconds."""
        try:
            return await apiserver.identity(self.place.kubeconfig, patience)
        except (ApiError, Unreachable, KubeconfigError) as error:
            name, engine = self.place.name, self.engine.provider
            raise ProviderError(
                f"the API server of kind cluster {name} does not answer within {patience:.0f} s: {error}; "
                f"`{engine} logs {name}-control-plane` says more, and `pulumi destroy` removes the cluster"
            ) from None

    async def identity_by_kind(self) -> str | None:
        """The identity of the cluster of that name, read with kind's own kubeconfig for it; None if it is not known."""
        with tempfile.TemporaryDirectory(prefix="kumulus-") as folder:
            file = Path(folder) / "kubeconfig.yaml"
            try:
                await creating.kubeconfig(self.engine, self.place, file)
                return await apiserver.identity(file, patience=_LOOK_S)
            except (ProviderError, ApiError, Unreachable, KubeconfigError):
                return None

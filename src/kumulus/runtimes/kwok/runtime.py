"""The kwok runtime: create, read, repair and delete a local control plane."""

import asyncio
import dataclasses
import time
from contextlib import suppress
from pathlib import Path
from typing import Any, ClassVar

from kumulus import toolchain
from kumulus.host import files, ports, processes
from kumulus.kube import ApiError, KubeconfigError, Unreachable
from kumulus.nodes.errors import ProviderError
from kumulus.nodes.reporter import Reporter
from kumulus.runtimes import apiserver, directories
from kumulus.runtimes.base import Foreseen, Observed, RecordedControlPlane, Runtime, WantedControlPlane
from kumulus.runtimes.directories import exclusive
from kumulus.runtimes.kwok import (
    addition,
    additions,
    api,
    configuration,
    etcd_space,
    gates,
    hung,
    kept,
    kwokctl,
    logs,
    moving,
    pod_logs,
    priority,
    starting,
    upgrade,
)
from kumulus.runtimes.kwok.layout import Layout, dump
from kumulus.runtimes.place import Place, same_owner


class KwokRuntime(Runtime):
    """Local processes by kwokctl's binary runtime: no Docker, no root."""

    name: ClassVar[str] = "kwok"
    replaced_by: ClassVar[frozenset[str]] = configuration.REPLACED_BY
    place_type: ClassVar[type[Place]] = Layout

    def problems(self, options: dict[str, Any]) -> dict[str, str]:
        if not options:
            return {}
        # Imported here: most clusters have no options, and their previews need no pydantic.
        from kumulus.runtimes.kwok.section import KwokOptions
        from kumulus.runtimes.section import option_problems

        found = option_problems(KwokOptions, options)
        added = [each for one in addition.every() for each in one.problems(options)]
        return found | {each.path: f"{each.message}; {each.remedy}" for each in added}

    def default_version(self) -> str:
        return f"v{toolchain.kubernetes_versions()[0]}"

    def version_problem(self, version: str) -> str | None:
        versions = [f"v{version}" for version in toolchain.kubernetes_versions()]
        if version in versions:
            return None
        return f"Kubernetes {version} is not among the pinned versions; write one of {', '.join(versions)}"

    def takes_version(self, old: str, new: str) -> bool:
        return upgrade.in_place(old, new)

    def configuration(self, wanted: WantedControlPlane) -> str:
        return configuration.fingerprint(wanted.options)

    def consequences(self, old: dict[str, Any], new: dict[str, Any]) -> list[str]:
        return [line for each in addition.every() for line in each.described(old, new)]

    async def examine(self, wanted: WantedControlPlane, identity: str | None, report: Reporter) -> Foreseen | None:
        """See :meth:`Runtime.examine`: a new cluster's place has to be free, and Kubernetes has to know its gates."""
        layout = Layout.of(wanted.home, wanted.name)
        if identity is None:
            directories.require_free(layout, wanted.owner, preview=True)
            for each in addition.asked(wanted.options):
                for line in each.announced(wanted.options):
                    report.info(line)
        await gates.require_known(layout, wanted)
        return None

    async def examine_update(self, wanted: WantedControlPlane, report: Reporter) -> None:
        """See :meth:`Runtime.examine_update`: another Kubernetes version has to be able to read what is there."""
        await upgrade.require_readable(Layout.of(wanted.home, wanted.name), wanted.kubernetes_version, report)

    async def create(self, wanted: WantedControlPlane, report: Reporter, stop: asyncio.Event) -> Observed:
        layout = Layout.of(wanted.home, wanted.name)
        directories.require_free(layout, wanted.owner)
        directories.prepare_home(layout)
        async with exclusive(layout, report):
            await self._clear_leftover(layout, wanted, report)
            try:
                return await self._create(layout, wanted, report)
            except BaseException:
                # Cancelled or failed: the state does not record the cluster, so nothing may be left.
                self._remove(layout)
                raise

    async def _create(self, layout: Layout, wanted: WantedControlPlane, report: Reporter) -> Observed:
        started = time.monotonic()
        chosen = wanted.options.get("apiServerPort")
        if chosen and ports.in_use(int(chosen)):
            raise ProviderError(
                f"port {chosen} (kwok.apiServerPort) is in use by {processes.listener(int(chosen))}; "
                "choose another port, or leave apiServerPort out to have a free one picked"
            )
        if problem := additions.port_problem(layout, wanted):
            raise ProviderError(problem)
        explained = api.explained(layout, made=False, starting=True)
        with explained, ports.Claims(avoid=layout.taken_ports()) as claims:
            allotted = {key: claims.take() for key in configuration.port_keys(wanted.options)}
            documents = configuration.documents(wanted, allotted)
            layout.directory.mkdir(mode=0o700)
            layout.write_note({"owner": wanted.owner, "configuration": self.configuration(wanted)})
            request = layout.directory / "create.yaml"
            files.write(request, dump(documents))
            pod_logs.write(layout)
            report.status(f"starting Kubernetes {wanted.kubernetes_version}")
            await starting.create_components(layout, request)
            directories.keep_private(layout, layout.private_files())
            priority.lower(layout.directory)
            identity = await starting.all_running(layout, report)
            if configuration.custom_resources(wanted.options) or configuration.has_additions(wanted.options):
                await starting.add(layout, wanted, claims, report)
            layout.write_note({**layout.note(), **additions.note(wanted)})
            kept.keep(layout)
            # kwokctl has written most of the files, and syncs none.
            kept.sync(layout)
        report.status(f"control plane answers after {time.monotonic() - started:.1f} s", last=True)
        return kept.observed(layout, identity)

    async def _clear_leftover(self, layout: Layout, wanted: WantedControlPlane, report: Reporter) -> None:
        """Remove what a killed create of ours left; refuse to touch anybody else's cluster."""
        if not layout.directory.exists():
            # If only the directory was removed, processes that run from it would count as the new cluster's.
            self._end(layout)
            return
        directories.require_free(layout, wanted.owner)
        report.status("removing what an interrupted run left behind")
        self._remove(layout)

    async def read(self, recorded: RecordedControlPlane, report: Reporter) -> Observed | None:
        layout, identity = Layout(Path(recorded.directory)), recorded.identity
        if not kept.there(layout):
            return None
        owner = layout.note().get("owner", recorded.owner)
        # An import changes the owner: if it was killed then, the cluster is still the recorded one.
        if not same_owner(owner, recorded.owner) and not await api.answers_as(layout, identity):
            report.warn(directories.not_ours(layout, owner))
            return None
        with suppress(OSError):
            kept.keep(layout)
        logs.rotate(layout)
        running = processes.running(layout.directory)
        found = kept.observed(layout, identity, running)
        if lost := kept.lost(layout):
            report.warn(kept.loss(layout, lost))
        if found.components.get("kube-apiserver") != "running":
            return found
        # All three at once: each waits for the answer of a process, and every `up` waits for all of them.
        renewing = asyncio.ensure_future(hung.stuck_since(layout, running))
        try:
            actual, full = await asyncio.gather(
                apiserver.identity(layout.kubeconfig, patience=hung.patience(layout, running)),
                etcd_space.is_full(layout),
            )
            if identity and actual != identity:
                return None
            components = dict(found.components)
            if full:
                components["etcd"] = "full"
            if components.get(hung.CONTROLLER) == "running" and await renewing:
                components[hung.CONTROLLER] = "unhealthy"
            return dataclasses.replace(found, identity=actual, components=components)
        except (ApiError, Unreachable, KubeconfigError):
            components = dict(found.components)
            if components.get("etcd") == "running":
                components["kube-apiserver"] = "unhealthy"
            return dataclasses.replace(found, components=components)
        finally:
            renewing.cancel()

    async def repair(self, wanted: WantedControlPlane, identity: str, report: Reporter) -> Observed:
        layout = Layout.of(wanted.home, wanted.name)
        if not kept.there(layout):
            raise ProviderError(
                f"cluster {layout.name} is gone from {layout.directory}; `pulumi up --refresh` makes it again"
            )
        with api.explained(layout):
            async with exclusive(layout, report):
                return await self._repair(layout, wanted, identity, report)

    async def _repair(self, layout: Layout, wanted: WantedControlPlane, identity: str, report: Reporter) -> Observed:
        self._mend(layout, wanted, report)
        hung.end_useless(layout, report)
        logs.rotate(layout)
        processes.end(kwokctl.setting_up(layout.home, layout.name))
        if not upgrade.exchange(layout, wanted.kubernetes_version, report):
            await hung.end_hung(layout, report)
        await hung.end_stuck(layout, report)
        with ports.Claims(avoid=layout.taken_ports()) as claims:
            moved = moving.move(layout, wanted, claims, report)
            changed = layout.note().get("configuration") != self.configuration(wanted)
            etcd_space.change_quota(layout, wanted.options)
            if changed:
                await starting.reconfigure(layout, wanted, report, claims)
            if moved:
                # The files of additions were written with the new ports: their processes may run by the old ones.
                starting.end(layout, [name for each in addition.every() for name in each.names])
            dead = starting.dead_components(layout)
            if dead:
                report.status(f"starting {', '.join(dead)}")
            await starting.start(layout, wanted, report, changed=changed, dead=dead)
        actual = await starting.all_running(layout, report)
        if identity and actual != identity:
            raise ProviderError(
                f"another cluster (identity {actual}) answers in place of {layout.name}; `pulumi up --refresh` "
                "replaces it, without the objects in it"
            )
        await etcd_space.relieve(layout, report)
        noted = layout.note()
        if changed or noted.get("owner") != wanted.owner:
            # Last, so that if this run is killed before, the next one does all of it again. The owner is another one if
            # the stack has got its identity, or another name; only now is it certain that this is its cluster.
            layout.write_note({**noted, "owner": wanted.owner, **(additions.note(wanted) if changed else {})})
        with suppress(OSError):
            kept.keep(layout)
        return kept.observed(layout, actual)

    def _mend(self, layout: Layout, wanted: WantedControlPlane, report: Reporter) -> None:
        """Repair what a full disk or a power failure has done to the files that say what the cluster is."""
        for file in kept.restore(layout):
            report.info(f"{file} was damaged and is restored from its copy")
        if "owner" not in layout.note():
            # Without a note, the settings are unknown, too: they count as changed, and are all applied again.
            layout.write_note({"owner": wanted.owner})
        if lost := kept.lost(layout):
            raise ProviderError(kept.loss(layout, lost))

    async def delete(self, recorded: RecordedControlPlane, report: Reporter) -> None:
        layout = Layout(Path(recorded.directory))
        if not layout.directory.exists():
            self._end(layout)
            return
        if not self._is_recorded(layout, recorded, report):
            return
        async with exclusive(layout, report) as waited:
            # The run that was waited for may have removed the cluster, and another stack may have made one there since.
            if waited and layout.directory.exists() and not self._is_recorded(layout, recorded, report):
                return
            left = self._remove(layout)
        directories.clear_up(layout, left, report)

    def _is_recorded(self, layout: Layout, recorded: RecordedControlPlane, report: Reporter) -> bool:
        """Whether what is at a cluster's place is the recorded cluster, or what is left of it."""
        directories.require_own(layout)
        owner = layout.note().get("owner")
        if owner is not None and not same_owner(owner, recorded.owner):
            report.warn(directories.not_ours(layout, owner))
            return False
        if owner is None and not layout.kwok_file.exists() and layout.foreign():
            raise ProviderError(
                f"{layout.directory} does not look like a cluster of ours; it is left alone: remove it by hand"
            )
        return True

    def _remove(self, layout: Layout) -> list[str]:
        """End every process of the cluster and remove its files; returns the names of foreign files, which are left."""
        layout.mark_removed()
        self._end(layout)
        return directories.remove(layout)

    def _end(self, layout: Layout) -> None:
        """End every process of the cluster."""
        processes.end(kwokctl.setting_up(layout.home, layout.name))
        processes.end([pid for group in processes.running(layout.directory).values() for pid in group])

"""A stack's `autoscaler` alongside a control plane of the runtime kwok: a process, with what it needs in the cluster.

It connects to the API server with the administrator's certificate, but acts as a user of its own, with only its roles.
"""

from __future__ import annotations

import shutil
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from kumulus.extras.scaling import NAMES, applying, registry
from kumulus.extras.scaling.descriptor import AutoscalerDescriptor, AutoscalerPlace
from kumulus.host import files
from kumulus.host.ports import Claims
from kumulus.nodes.reporter import Reporter
from kumulus.runtimes.kwok import components
from kumulus.runtimes.kwok.addition import Addition, Options
from kumulus.runtimes.kwok.layout import Layout, dump

if TYPE_CHECKING:
    from kumulus.kube import Client

_KUBECONFIG = "kubeconfig.yaml"
_NAMES = frozenset(each.name for name in NAMES for each in registry.get(name).programs)


class Scaling(Addition):
    """The autoscaler that a stack's section `autoscaler` asks for."""

    names = _NAMES

    def asked(self, options: Options) -> bool:
        return bool(options.get("autoscaler"))

    def fingerprints(self, options: Options) -> dict[str, str]:
        found = registry.autoscaler_of(options)
        if not found:
            return {}
        autoscaler, asked = found
        place = AutoscalerPlace(Path("/nowhere"), Path("/nowhere"), dict.fromkeys(_ports(autoscaler), 0))
        contents = autoscaler.files(asked, place)
        # Karpenter's has the form that it has always had, so that an update of Kumulus restarts nothing.
        return {
            each.name: components.fingerprint(
                [
                    contents,
                    each.environment(asked, place),
                    *([each.arguments(asked, place)] if each.arguments(asked, place) else []),
                    *([asked["binary"]] if asked.get("binary") and each is autoscaler.programs[0] else []),
                ]
            )
            for each in autoscaler.programs
        }

    def objects(self, options: Options) -> Any:
        return options.get("autoscaler")

    def stages(self, options: Options) -> list[dict[str, Any]]:
        """See :meth:`Addition.stages`: those for the autoscaler's nodes."""
        found = registry.autoscaler_of(options)
        return found[0].stages(found[1]) if found else []

    def described(self, old: Options, new: Options) -> list[str]:
        before, after = registry.autoscaler_of(old), registry.autoscaler_of(new)
        if before == after:
            return []
        if after is None:
            assert before is not None
            goes = "the nodes that it has made and its kinds" if before[0].nodes else ""
            return [
                f"autoscaler: {before[0].name} goes, {f'with {goes}' if goes else 'node groups have their replicas'}"
            ]
        name, makes = after[0].name, after[0].nodes
        if before is None:
            means = "the nodes that it makes are not the stack's" if makes else "it resizes groups with maxReplicas"
            return [f"autoscaler: {name} is started; {means}"]
        restarted = self.fingerprints(old) != self.fingerprints(new)
        return [f"autoscaler: {name} {'is restarted; its nodes stay' if restarted else 'has its pools changed'}"]

    def options_of(self, components: Collection[str]) -> dict[str, Any]:
        there = [name for name in NAMES if registry.get(name).programs[0].name in components]
        return {"autoscaler": {"name": there[0]}} if there else {}

    def configured(self, settings: dict[str, Any], layout: Layout, options: Options, claims: Claims) -> dict[str, Any]:
        found = registry.autoscaler_of(options)
        if not found:
            return components.replaced(settings, _NAMES)
        autoscaler, asked = found
        known, named = layout.ports(), _ports(autoscaler)
        allotted = {key: known.get(_port_key(*each)) or claims.take() for key, each in named.items()}
        place = _place(layout, autoscaler, allotted)
        definitions = []
        for each in autoscaler.programs:
            components.link(layout, each.name, each.executable(asked))
            own = {called: allotted[key] for key, (name, called) in named.items() if name == each.name}
            definitions.append(
                components.definition(
                    layout,
                    each.name,
                    each.arguments(asked, place),
                    own,
                    links=("kube-apiserver", "kwok-controller", *each.after),
                    environment=each.environment(asked, place),
                )
            )
        return components.replaced(settings, _NAMES, *definitions)

    def write(self, layout: Layout, options: Options) -> None:
        """See :meth:`Addition.write`: with its own kubeconfig; the files of all other autoscalers are removed."""
        found = registry.autoscaler_of(options)
        for name in NAMES:
            if not found or found[0].name != name:
                shutil.rmtree(layout.directory / name, ignore_errors=True)
        if not found:
            return
        autoscaler, asked = found
        known = layout.ports()
        ports = {key: known[_port_key(name, called)] for key, (name, called) in _ports(autoscaler).items()}
        place = _place(layout, autoscaler, ports)
        place.folder.mkdir(mode=0o700, exist_ok=True)
        kubeconfig = yaml.safe_load(layout.kubeconfig.read_text())
        for user in kubeconfig["users"]:
            user["user"]["as"] = autoscaler.user
        files.write(place.kubeconfig, dump([kubeconfig]), mode=0o600)
        for name, content in autoscaler.files(asked, place).items():
            files.write(place.folder / name, content)

    def has_kinds(self, options: Options) -> bool:
        return self.asked(options)

    async def define(self, client: Client, layout: Layout, options: Options) -> None:
        await applying.apply(client, options)

    async def apply(self, client: Client, layout: Layout, options: Options) -> None:
        await applying.apply(client, options)

    def resumes(self, options: Options) -> str | None:
        """See :meth:`Addition.resumes`: the machines on their way are lost with the process."""
        found = registry.autoscaler_of(options)
        return found[0].programs[0].name if found and found[0].forget else None

    async def resume(self, client: Client, options: Options, report: Reporter) -> None:
        found = registry.autoscaler_of(options)
        if found and found[0].forget and (lost := await found[0].forget(client)):
            report.info(f"{lost:,} machines were on their way when the autoscaler ended; it asks for them again")


def _ports(autoscaler: AutoscalerDescriptor) -> dict[str, tuple[str, str]]:
    """The ports of an autoscaler, by their keys in its place, each with its program and its name in the program."""
    return {
        called if each is autoscaler.programs[0] else f"{each.name}/{called}": (each.name, called)
        for each in autoscaler.programs
        for called in each.ports
    }


def _port_key(program: str, called: str) -> str:
    """The name of a program's port among those of its cluster (:meth:`Layout.ports`)."""
    return program if called == "http" else f"{program} ({called})"


def _place(layout: Layout, autoscaler: AutoscalerDescriptor, ports: Mapping[str, int]) -> AutoscalerPlace:
    folder = layout.directory / autoscaler.name
    return AutoscalerPlace(folder, folder / _KUBECONFIG, ports, layout.kubeconfig, layout.directory / "pki")


ADDITION = Scaling()

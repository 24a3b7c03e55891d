"""A stack's `autoscaler` as one more process of a cluster, with what it needs in the cluster.

It connects to the API server with the administrator's certificate, but acts as a user of its own, with only its roles.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from kumulus.extras.scaling import registry
from kumulus.extras.scaling.descriptor import Autoscaler, Place
from kumulus.host import files
from kumulus.runtimes.kwok import components
from kumulus.runtimes.kwok.layout import Layout, dump

if TYPE_CHECKING:
    from kumulus.kube import Client

_KUBECONFIG = "kubeconfig.yaml"


def stages(options: Mapping[str, Any]) -> list[dict[str, Any]]:
    """KWOK's stages for the autoscaler's nodes; none without an autoscaler."""
    found = registry.autoscaler_of(options)
    return found[0].stages(found[1]) if found else []


def fingerprints(options: Mapping[str, Any]) -> dict[str, str]:
    """For each of the autoscaler's processes, a hash of everything that decides how it runs, except its place."""
    found = registry.autoscaler_of(options)
    if not found:
        return {}
    autoscaler, asked = found
    place = Place(Path("/nowhere"), Path("/nowhere"), dict.fromkeys(ports(autoscaler), 0))
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


def names() -> set[str]:
    """The processes of all known autoscalers."""
    return {each.name for name in registry.NAMES for each in registry.get(name).programs}


def ports(autoscaler: Autoscaler) -> dict[str, tuple[str, str]]:
    """The ports of an autoscaler, by their keys in its place, each with its program and its name in the program."""
    return {
        called if each is autoscaler.programs[0] else f"{each.name}/{called}": (each.name, called)
        for each in autoscaler.programs
        for called in each.ports
    }


def described(old: Mapping[str, Any], new: Mapping[str, Any]) -> list[str]:
    """What a change of the section means, for people; [] when there is no change."""
    before, after = registry.autoscaler_of(old), registry.autoscaler_of(new)
    if before == after:
        return []
    if after is None:
        assert before is not None
        goes = "with the nodes that it has made and its kinds" if before[0].nodes else "node groups have their replicas"
        return [f"autoscaler: {before[0].name} goes, {goes}"]
    if before is None:
        means = (
            "the nodes that it makes are not the stack's" if after[0].nodes else "it resizes groups with maxReplicas"
        )
        return [f"autoscaler: {after[0].name} is started; {means}"]
    restarted = fingerprints(old) != fingerprints(new)
    return [f"autoscaler: {after[0].name} {'is restarted; its nodes stay' if restarted else 'has its pools changed'}"]


def with_component(
    settings: dict[str, Any], layout: Layout, options: Mapping[str, Any], allotted: Mapping[str, int]
) -> dict[str, Any]:
    """Kwokctl's configuration with the autoscaler's processes among the components that it starts, or with none.

    Args:
        settings: the ``KwokctlConfiguration`` that kwokctl saved.
        allotted: the ports that the processes listen on, by their keys in :func:`ports`.
    """
    found = registry.autoscaler_of(options)
    if not found:
        return components.replaced(settings, names())
    autoscaler, asked = found
    place = _place(layout, autoscaler, allotted)
    definitions = []
    for each in autoscaler.programs:
        components.link(layout, each.name, each.executable(asked))
        own = {called: allotted[key] for key, (name, called) in ports(autoscaler).items() if name == each.name}
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
    return components.replaced(settings, names(), *definitions)


def write(layout: Layout, options: Mapping[str, Any]) -> None:
    """Write what the autoscaler reads, including its own kubeconfig; remove the files of all other autoscalers.

    Raises:
        OSError: the disk is full, or the like.
    """
    found = registry.autoscaler_of(options)
    for name in registry.NAMES:
        if not found or found[0].name != name:
            shutil.rmtree(layout.directory / name, ignore_errors=True)
    if not found:
        return
    autoscaler, asked = found
    known = layout.ports()
    place = _place(
        layout, autoscaler, {key: known[port_key(name, called)] for key, (name, called) in ports(autoscaler).items()}
    )
    place.folder.mkdir(mode=0o700, exist_ok=True)
    kubeconfig = yaml.safe_load(layout.kubeconfig.read_text())
    for user in kubeconfig["users"]:
        user["user"]["as"] = autoscaler.user
    files.write(place.kubeconfig, dump([kubeconfig]), mode=0o600)
    for name, content in autoscaler.files(asked, place).items():
        files.write(place.folder / name, content)


def port_key(program: str, called: str) -> str:
    """The name of a program's port among those of its cluster (:meth:`Layout.ports`)."""
    return program if called == "http" else f"{program} ({called})"


def forgetful(options: Mapping[str, Any]) -> str | None:
    """The autoscaler's process whose end loses the machines on their way, if there is one (:func:`forget`)."""
    found = registry.autoscaler_of(options)
    return found[0].programs[0].name if found and found[0].forget else None


async def forget(client: Client, options: Mapping[str, Any]) -> int:
    """Have an autoscaler that has ended ask again for the machines that were on their way; returns how many."""
    found = registry.autoscaler_of(options)
    return await found[0].forget(client) if found and found[0].forget else 0


def _place(layout: Layout, autoscaler: Autoscaler, ports: Mapping[str, int]) -> Place:
    folder = layout.directory / autoscaler.name
    return Place(folder, folder / _KUBECONFIG, ports, layout.kubeconfig, layout.directory / "pki")

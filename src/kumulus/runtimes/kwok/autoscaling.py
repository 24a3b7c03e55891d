"""A stack's `autoscaler` as one more process of a cluster, with what it needs in the cluster.

It reaches the API server by the administrator's certificate, but as a user of its own, with the roles of that alone.
"""

from __future__ import annotations

import asyncio
import shutil
import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from kumulus.autoscalers import registry
from kumulus.autoscalers.descriptor import Autoscaler, Place
from kumulus.cluster.errors import ProviderError
from kumulus.cluster.faults import offerings
from kumulus.kube import ApiError, objects
from kumulus.kube.media import MERGE_PATCH
from kumulus.model.offer_effects import ANNOTATION
from kumulus.runtimes.kwok import components
from kumulus.runtimes.kwok.layout import Layout, dump
from kumulus.surroundings import files

if TYPE_CHECKING:
    from kumulus.kube import Client

LABEL = "kumulus.io/autoscaler"
_KUBECONFIG = "kubeconfig.yaml"
_DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
_COLLECTIONS = {"KWOKNodeClass": "kwoknodeclasses"}
_PATIENCE = 30.0


def stages(options: Mapping[str, Any]) -> list[dict[str, Any]]:
    """What KWOK is to do to the autoscaler's nodes; none without one."""
    found = registry.asked_of(options)
    return found[0].stages(found[1]) if found else []


def fingerprints(options: Mapping[str, Any]) -> dict[str, str]:
    """For each of the autoscaler's processes a hash of everything that decides how it runs, but where."""
    found = registry.asked_of(options)
    if not found:
        return {}
    autoscaler, asked = found
    place = Place(Path("/nowhere"), Path("/nowhere"), dict.fromkeys(ports(autoscaler), 0))
    files = autoscaler.files(asked, place)
    # What Karpenter's has always been, so that an update of Kumulus restarts nothing.
    return {
        each.name: components.fingerprint(
            [
                files,
                each.environment(asked, place),
                *([each.arguments(asked, place)] if each.arguments(asked, place) else []),
                *([asked["binary"]] if asked.get("binary") and each is autoscaler.programs[0] else []),
            ]
        )
        for each in autoscaler.programs
    }


def names() -> set[str]:
    """The processes of all autoscalers that there may be."""
    return {each.name for name in registry.NAMES for each in registry.get(name).programs}


def ports(autoscaler: Autoscaler) -> dict[str, tuple[str, str]]:
    """The ports of an autoscaler, as its place has them, each with its program's name and what it is called there."""
    return {
        called if each is autoscaler.programs[0] else f"{each.name}/{called}": (each.name, called)
        for each in autoscaler.programs
        for called in each.ports
    }


def described(old: Mapping[str, Any], new: Mapping[str, Any]) -> list[str]:
    """What a change of the section means, for people; [] when there is none."""
    before, after = registry.asked_of(old), registry.asked_of(new)
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
        layout: the cluster.
        options: the cluster's.
        allotted: the ports that they listen on, by their keys in :func:`ports`.

    Raises:
        toolchain.ToolMissing: it is not built; the message says how to get it.
    """
    found = registry.asked_of(options)
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
    """Write what the autoscaler reads, its own kubeconfig among it; without one, remove it.

    Raises:
        OSError: the disk is full, or the like.
    """
    found = registry.asked_of(options)
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
    """What a port of a program is called among those of its cluster (:meth:`Layout.ports`)."""
    return program if called == "http" else f"{program} ({called})"


async def apply(client: Client, options: Mapping[str, Any]) -> None:
    """Make what the autoscaler needs in the cluster as it is wanted, and take away what it does not need any more.

    Without an autoscaler, what one had goes: its nodes, all objects of its kinds and the kinds.

    Raises:
        ApiError, Unreachable: the server refused.
        toolchain.ToolMissing: the autoscaler is not built.
    """
    found = registry.asked_of(options)
    for name in registry.NAMES:
        if not found or found[0].name != name:
            await _remove(client, registry.get(name))
    if not found:
        return
    autoscaler, asked = found
    wanted = autoscaler.objects(asked)
    for manifest in wanted:
        marked = {**manifest["metadata"], "labels": {**manifest["metadata"].get("labels", {}), LABEL: autoscaler.name}}
        await _put(client, {**manifest, "metadata": marked})
    kept = {f"{_collection(each)}/{each['metadata']['name']}" for each in wanted}
    for collection in autoscaler.instances:
        for name in await objects.names(client, collection, {"labelSelector": f"{LABEL}={autoscaler.name}"}):
            if f"{collection}/{name}" not in kept:
                await objects.remove(client, f"{collection}/{name}")


def forgetful(options: Mapping[str, Any]) -> str | None:
    """The process of the autoscaler with which machines on their way are lost, if there is one (:func:`forget`)."""
    found = registry.asked_of(options)
    return found[0].programs[0].name if found and found[0].forget else None


async def forget(client: Client, options: Mapping[str, Any]) -> int:
    """Have an autoscaler that has ended ask anew for the machines that were on their way; returns how many.

    Raises:
        ApiError, Unreachable: the server refused, or gave no answer.
    """
    found = registry.asked_of(options)
    return await found[0].forget(client) if found and found[0].forget else 0


async def _put(client: Client, manifest: dict[str, Any]) -> None:
    collection, name = _collection(manifest), manifest["metadata"]["name"]
    for last in (False, True):
        try:
            await objects.replace(client, collection, await _with_offerings(client, f"{collection}/{name}", manifest))
            break
        except ApiError as error:
            # Changed by the autoscaler, which writes the status of its pools, between the look and the write.
            if last or error.status != 409:
                raise
    if manifest["kind"] == "CustomResourceDefinition":
        give_up = time.monotonic() + _PATIENCE
        while not await _established(client, f"{collection}/{name}"):
            if time.monotonic() > give_up:
                raise ProviderError(f"{name} is not served {_PATIENCE:.0f} s after it was made; run `pulumi up` again")
            await asyncio.sleep(0.05)


async def _with_offerings(client: Client, path: str, manifest: dict[str, Any]) -> dict[str, Any]:
    """A node class with what faults make of its offerings: that is theirs to change."""
    if not path.startswith(offerings.CLASSES):
        return manifest
    there = await objects.find(client, path)
    written = (there or {}).get("metadata", {}).get("annotations", {}).get(ANNOTATION)
    if written is None:
        return manifest
    metadata = manifest["metadata"]
    annotations = {**metadata.get("annotations", {}), ANNOTATION: written}
    return {**manifest, "metadata": {**metadata, "annotations": annotations}}


async def _established(client: Client, path: str) -> bool:
    found = await client.get(path)
    if not objects.is_established(found):
        return False
    spec = found["spec"]
    version = next(each["name"] for each in spec["versions"] if each["storage"])
    return await objects.find(client, f"/apis/{spec['group']}/{version}/{spec['names']['plural']}") is not None


async def _remove(client: Client, autoscaler: Autoscaler) -> None:
    """Take away the nodes of an autoscaler that has ended, its objects and its kinds; those of another's stay."""
    ours = {"labelSelector": f"{LABEL}={autoscaler.name}"}
    if not await objects.names(client, _ROLES[-1], ours) and not await objects.names(client, _DEFINITIONS, ours):
        return
    if await objects.names(client, _DEFINITIONS, ours):
        for collection in autoscaler.instances:
            await _freed(client, collection, await objects.names(client, collection))
    if autoscaler.nodes:
        made = await objects.names(client, "/api/v1/nodes", {"labelSelector": autoscaler.nodes})
        await _freed(client, "/api/v1/nodes", made)
    for collection in (*_ROLES, _DEFINITIONS):
        for name in await objects.names(client, collection, ours):
            await objects.remove(client, f"{collection}/{name}")


_ROLES = (
    "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings",
    "/apis/rbac.authorization.k8s.io/v1/clusterroles",
)


async def _freed(client: Client, collection: str, names: Iterable[str]) -> None:
    """Delete objects whose finalizers nobody takes away any more."""
    for name in names:
        path = f"{collection}/{name}"
        await objects.remove(client, path)
        try:
            await client.write("PATCH", path, {"metadata": {"finalizers": None}}, content_type=MERGE_PATCH)
        except ApiError as error:
            if error.status != 404:
                raise


def _collection(manifest: Mapping[str, Any]) -> str:
    kind = manifest["kind"]
    return f"/apis/{manifest['apiVersion']}/{_COLLECTIONS.get(kind, kind.lower() + 's')}"


def _place(layout: Layout, autoscaler: Autoscaler, ports: Mapping[str, int]) -> Place:
    folder = layout.directory / autoscaler.name
    return Place(folder, folder / _KUBECONFIG, ports, layout.kubeconfig, layout.directory / "pki")
